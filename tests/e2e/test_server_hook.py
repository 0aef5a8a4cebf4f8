"""`hooks/update`: what a plain git server lets into refs/gitcp/."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import gitcp
from gitcp.sync import push_address
from tests.support.clones import save
from tests.support.crypt import Key, encrypt_to, reads_with
from tests.support.gitrepo import git, git_line
from tests.support.inprocess import fails, ok

HOOK = Path(__file__).resolve().parents[2] / "hooks" / "update"
REF = "refs/gitcp/s/main/main"


@pytest.fixture
def server(hub) -> Path:
    shutil.copy(HOOK, hub / "hooks" / "update")
    git(hub, "config", "receive.fsckObjects", "true")
    return hub


def tried(repo: Path, *specs: str) -> str:
    """Pushes by plain git; returns what the server said, empty if it took it."""
    done = subprocess.run(
        ["git", "push", "--force", "origin", *specs],
        cwd=repo,
        env=os.environ,
        capture_output=True,
        check=False,
    )
    said = done.stderr.decode()
    assert (done.returncode == 0) == ("rejected" not in said), said
    return said if done.returncode else ""


def forged(repo: Path, start: str, *changes: tuple[bytes, bytes]) -> str:
    raw = git(repo, "cat-file", "commit", start)
    for old, new in changes:
        assert old in raw
        raw = raw.replace(old, new)
    args = ("hash-object", "--literally", "-t", "commit", "-w", "--stdin")
    return git(repo, *args, input=raw).decode().strip()


def test_what_gitcp_pushes_is_taken(ann, server, bob):
    save(ann, a_py=b"1")
    ok(ann, "push")
    save(ann, a_py=b"2")
    ok(ann, "fork", "1", "side", "--no-switch")
    ok(ann, "fork", "last", "A name/with é", "--no-switch")
    assert {one["result"] for one in ok(ann, "push")["branches"]} == {
        "created",
        "fast-forward",
    }
    ok(bob, "pull")
    assert ok(bob, "verify")["ok"]


def test_other_refs_are_none_of_its_business(ann, server):
    git(ann, "commit", "-q", "--allow-empty", "-m", "x")
    assert not tried(ann, "HEAD:refs/heads/main", "HEAD~1:refs/heads/other")
    assert not tried(ann, ":refs/heads/other", "HEAD~1:refs/heads/main")


def test_a_session_is_neither_deleted_nor_taken_back(ann, server):
    first = save(ann, a_py=b"1")["commit"]
    save(ann, a_py=b"2")
    ok(ann, "push")
    tip = git_line(server, "rev-parse", REF)
    assert "not deleted" in tried(ann, f":{REF}")
    assert "does not go on" in tried(ann, f"{first}:{REF}")
    assert git_line(server, "rev-parse", REF) == tip
    git(server, "config", "gitcp.allowPruned", "true")
    assert not tried(ann, f"{first}:{REF}")
    git(server, "config", "gitcp.allowDelete", "true")
    assert not tried(ann, f":{REF}")


def test_only_what_is_a_branch_of_a_session_comes_in(ann, server):
    save(ann, a_py=b"1")
    for ref in (
        "refs/gitcp/s/main",
        "refs/gitcp/s/main/main/more",
        "refs/gitcp/r/origin/main/main",
        "refs/gitcp/s/Main/main",
        "refs/gitcp/s/-x/main",
        "refs/gitcp/s/a.b/main",
    ):
        assert "no branch of a session" in tried(ann, f"{REF}:{ref}"), ref
    assert "another branch" in tried(ann, f"{REF}:refs/gitcp/s/main/other")
    assert "no checkpoint" in tried(ann, f"HEAD:{REF}")
    blob = git(ann, "hash-object", "-w", "--stdin", input=b"x").decode().strip()
    assert "must be a commit" in tried(ann, f"{blob}:{REF}")
    assert git(server, "for-each-ref", "refs/gitcp") == b""


def test_a_line_that_is_not_linear_or_not_whole_stays_out(ann, server):
    save(ann, a_py=b"1")
    save(ann, a_py=b"2")
    tip = git_line(ann, "rev-parse", REF)
    first = git_line(ann, "rev-parse", f"{REF}~1")
    head = git_line(ann, "rev-parse", "HEAD")
    parent = f"parent {first}\n".encode()
    two = forged(ann, tip, (parent, parent + f"parent {head}\n".encode()))
    assert "more than one parent" in tried(ann, f"{two}:{REF}")
    gap = forged(ann, tip, (b"Gitcp-Seq: 2", b"Gitcp-Seq: 3"))
    assert "number before" in tried(ann, f"{gap}:{REF}")
    beheaded = forged(ann, tip, (parent, b""))
    assert "first checkpoint is missing" in tried(ann, f"{beheaded}:{REF}")
    onto = forged(ann, tip, (parent, f"parent {head}\n".encode()))
    assert "not the first" in tried(ann, f"{onto}:{REF}")
    tree = git_line(ann, "rev-parse", f"{tip}^{{tree}}")
    bare = git_line(ann, "rev-parse", "HEAD^{tree}")
    empty = forged(ann, tip, (tree.encode(), bare.encode()))
    assert "without a record" in tried(ann, f"{empty}:{REF}")
    named = forged(ann, tip, (b"Gitcp-Checkpoint: ", b"Gitcp-Checkpoint: X"))
    assert "no id" in tried(ann, f"{named}:{REF}")
    assert git(server, "for-each-ref", "refs/gitcp") == b""
    assert not tried(ann, f"{tip}:{REF}")


def test_gitcp_says_why_the_server_refused(ann, server, bob):
    (server / "hooks" / "update").write_text("#!/bin/sh\necho no way >&2; exit 1\n")
    save(ann, a_py=b"1")
    said = fails(ann, 12, "push")
    assert "(hook declined): no way" in said
    assert "ask the administrator of" in said
    # Each ref gets the lines that name it, and none of what only repeats git's verdict.
    save(ann, "-s", "main A", a_py=b"2")
    (server / "hooks" / "update").write_text(
        "#!/bin/sh\necho no $1 for you | tr % . >&2; echo hm >&2; echo why >&2; exit 1\n"
    )
    said = fails(ann, 12, "push")
    for name, ref in (("main", "main"), ("main A", "main.20.41")):
        why = f"{name}/main: [remote rejected] (hook declined): no refs/gitcp/s/{ref}/main for you"
        assert f"{why};" in f"{said};".replace("\n", ";")
    assert "error: hook declined" not in said
    said = fails(ann, 12, "push", "origin", "main A")
    assert "no refs/gitcp/s/main.20.41/main for you; hm; why" in said
    # Where it is not known which of them it is about, it is not said of any.
    (server / "hooks" / "update").write_text(
        "#!/bin/sh\necho alpha >&2; echo beta >&2; exit 1\n"
    )
    assert "alpha" not in fails(ann, 12, "push")


@pytest.mark.parametrize("side", ["uploadpack", "receive"])
def test_refs_hidden_on_one_side_only_are_named_as_the_reason(
    ann, server, side, monkeypatch
):
    monkeypatch.setattr(push_address, "_TRIES_UNMOVED", 1)
    save(ann, a_py=b"1")
    ok(ann, "push")
    save(ann, a_py=b"2")
    git(server, "config", f"{side}.hideRefs", "refs/gitcp")
    said = fails(ann, 12, "push")
    assert "hides it from a fetch" in said
    assert "remove uploadpack.hideRefs and receive.hideRefs" in said
    git(server, "config", "--unset", f"{side}.hideRefs")
    ok(ann, "push")


# --- ledgers of steps ---------------------------------------------------------------

LEDGER = "refs/gitcp/fx/job"


def stepped(repo: Path, *names: str) -> gitcp.Session:
    session = gitcp.open(repo).session("job")
    for name in names:
        session.step(name, str.upper, name * (5_000 if name == "large" else 1))
    session.flush()
    return session


def test_what_steps_did_is_taken_and_only_grows(ann, server, bob):
    stepped(ann, "one", "large").save()
    ok(ann, "push")
    ok(bob, "pull")
    stepped(bob, "bob's")
    stepped(ann, "ann's")
    ok(bob, "push")
    ok(ann, "pull")
    assert git(ann, "rev-list", "--merges", LEDGER)
    ok(ann, "push")
    stepped(ann, "more")
    assert ok(ann, "push")["ledgers"][0]["result"] == "fast-forward"
    tip = git_line(server, "rev-parse", LEDGER)
    assert "not deleted" in tried(ann, f":{LEDGER}")
    assert "does not go on" in tried(ann, f"{LEDGER}~1:{LEDGER}")
    assert git_line(server, "rev-parse", LEDGER) == tip
    git(server, "config", "gitcp.allowPruned", "true")
    assert not tried(ann, f"{LEDGER}~1:{LEDGER}")


def test_what_is_no_ledger_stays_out(ann, server):
    stepped(ann, "one", "two").save()
    tip = git_line(ann, "rev-parse", LEDGER)
    for ref in ("fx/a/b", "fx/-x", "fx/Upper", "rfx/origin/job", "efx/origin/job"):
        assert "is no" in tried(ann, f"{LEDGER}:refs/gitcp/{ref}"), ref
    assert "another session" in tried(ann, f"{LEDGER}:refs/gitcp/fx/other")
    assert "not of a ledger" in tried(ann, f"HEAD:{LEDGER}")
    assert "not of a ledger" in tried(ann, f"refs/gitcp/s/job/main:{LEDGER}")
    parent = git_line(ann, "rev-parse", f"{tip}~1")
    head = git_line(ann, "rev-parse", "HEAD")
    line = f"parent {parent}\n".encode()
    wrong = {
        "after 0": (line, b""),
        "after 3": (b'{"n":4,', b'{"n":5,'),
        "where it says": (b"Gitcp-Last: 4", b"Gitcp-Last: 5"),
        "no record": (b'{"n":4,', b'more\n{"n":4,'),
        "does not join": (line, line + line.replace(parent.encode(), tip.encode())),
        "not of a ledger": (line, f"parent {head}\n".encode()),
        # git's own look at objects, or else the hook's: clients read on behind it.
        "NUL byte": (b'{"n":4,', b'\0\n{"n":4,'),
    }
    for said, change in wrong.items():
        assert said in tried(ann, f"{forged(ann, tip, change)}:{LEDGER}"), said
    # One that pretends to be the end of the list.
    end = forged(ann, tip, (b'{"n":4,', b"\x02" + tip.encode() + b'\x02end\n{"n":9,'))
    assert "no record" in tried(ann, f"{end}:{LEDGER}")
    assert git(server, "for-each-ref", "refs/gitcp") == b""
    assert not tried(ann, f"{tip}:{LEDGER}")
    again = forged(ann, tip, (b'{"n":4,', b'{"n":5,'))
    assert "does not go on" in tried(ann, f"{again}:{LEDGER}")


def test_a_step_that_no_client_could_read_blocks_no_session(ann, server, bob):
    """Once it is there no clone could pull the ledger, nor any branch of its session."""
    stepped(ann, "one", "large").save()
    value = b'"value":"TWO"'
    session = stepped(ann, "two")
    tip = git_line(ann, "rev-parse", LEDGER)
    message = git(ann, "log", "-1", "--format=%B", tip)
    line = next(one for one in message.split(b"\n") if value in one)
    head, ident = line.split(b'"kind"')[0], json.loads(line)["id"].encode()
    moment = json.loads(line)["at"].encode()
    number = b"%d" % json.loads(line)["n"]
    back = head + b'"kind":"back","branch":"main","id":"%b","of":"main"' % ident
    for bad in (
        *(
            line.replace(b'"kind":"result"', b'"kind":"%b"' % one)
            for one in (b"", b"x")
        ),
        *(
            line.replace(moment, one)
            for one in (b"x", b"2026-02-30T00:00:00Z", b"2026-01-01T24:00:00Z")
        ),
        *(
            line.replace(b'"main"', b'"%b"' % one)
            for one in (b"", b"\\ud800", b"a" * 1001)
        ),
        *(
            line.replace(value, b'"value":%b' % one)
            for one in (
                *(b"", b"[", b"nul", b"01", b"[1,]", b"{1:2}", b" 1", b"1 2", b"[1]2"),
                *(b'"\xff"', b'"a" "b"', b"{}}", b"\x01", b"[" * 999 + b"]" * 999),
            )
        ),
        *(
            line.replace(value, one + b"," + value)
            for one in (
                b'"effect":"odd"',
                b'"attempt":"1"',
                b'"policy":""',
                b'"reads":[]',
                b'"reads":["a",]',
                b'"undo":{"command":["a"],}',
                b'"undo":{"more":1}',
                b'"more":1',
                b'"step":"again"',
            )
        ),
        line.replace(value, value + b',"size":9'),
        line.replace(ident, b"f" * 12),
        line + b"\r",
        line + b"\n\nGitcp-More: x\n",
        b"Gitcp-More: x\n" + line,
        back + b',"upto":%b}' % number,
        back + b',"ledger":"%b"}' % (b"f" * len(tip)),
    ):
        assert bad != line
        said = tried(ann, f"{forged(ann, tip, (line, bad))}:{LEDGER}")
        assert "hook declined" in said, bad
    for change in (
        (b"Gitcp-Version: 1", b"Gitcp-Version: 2"),
        (b"\n\n" + line[:9], b"\n" + line[:9]),
        (b"Gitcp-Version: 1\n", b"Gitcp-Version: 1\n\n\n"),
    ):
        assert "hook declined" in tried(ann, f"{forged(ann, tip, change)}:{LEDGER}")
    assert git(server, "for-each-ref", "refs/gitcp") == b""
    for text in (
        b'[1,{"a":[true,null,-2.5e3]}]',
        b'"a\\"}, \\ud83d"',
        b"[" * 99 + b"]" * 99,
    ):
        good = forged(ann, tip, (value, b'"value":' + text))
        assert not tried(ann, f"{good}:refs/gitcp/fx/job")
        git(server, "update-ref", "-d", LEDGER)
    session.save()
    ok(ann, "push")
    ok(bob, "pull")
    assert ok(bob, "verify")["ok"]


def test_a_large_value_of_a_step_is_the_file_that_its_record_names(ann, server):
    stepped(ann, "large")
    tip = git_line(ann, "rev-parse", LEDGER)
    tree = git_line(ann, "rev-parse", f"{tip}^{{tree}}").encode()
    _, _, blob, name = git(ann, "ls-tree", tip).split()
    size = git_line(ann, "cat-file", "-s", blob.decode())
    other = git(ann, "hash-object", "-w", "--stdin", input=b"x" * int(size)).strip()
    for entries in (
        b"",
        b"100755 blob %b\t%b\n" % (blob, name),
        b"120000 blob %b\t%b\n" % (blob, name),
        b"100644 blob %b\t1%b\n" % (blob, name),
        b"100644 blob %b\t%b\n" % (other, name),
        b"100644 blob %b\t%b\n100644 blob %b\tmore\n" % (blob, name, blob),
    ):
        wrong = git(ann, "mktree", input=entries).strip()
        said = tried(ann, f"{forged(ann, tip, (tree, wrong))}:{LEDGER}")
        assert "hook declined" in said, entries
    first = git_line(ann, "rev-parse", f"{tip}~1")
    none = git_line(ann, "rev-parse", f"{first}^{{tree}}").encode()
    assert "no record names" in tried(
        ann, f"{forged(ann, first, (none, tree))}:{LEDGER}"
    )
    assert not tried(ann, f"{tip}:{LEDGER}")


def test_encrypted_pages_are_taken_and_only_grow(ann, server, bob, tmp_path):
    pytest.importorskip("pyrage", reason="the extra gitcp[crypt] is not installed")
    key = Key(tmp_path, "key")
    for repo in (ann, bob):
        encrypt_to(repo, key)
        reads_with(repo, key)
    stepped(ann, "one", "large").save()
    ok(ann, "push")
    ok(bob, "pull")
    stepped(bob, "bob's")
    stepped(ann, "ann's")
    ok(bob, "push")
    ok(ann, "pull")
    ok(ann, "push")
    tip = git_line(server, "rev-parse", LEDGER)
    mine = git_line(ann, "rev-parse", LEDGER)
    forms = "refs/gitcp/efx/origin/job"
    assert git_line(ann, "rev-parse", forms) == tip
    assert "does not go on" in tried(ann, f"{forms}~1:{LEDGER}")
    last = git(ann, "log", "-1", "--format=%(trailers:key=Gitcp-Last,valueonly)", tip)
    said = b"Gitcp-Last: " + last.strip()
    more = b"parent %b\n" % tip.encode()
    parents = [f"parent {one}\n".encode() for one in parents_of(ann, tip)]
    plain = f"Gitcp-Encrypted: {mine}\n".encode()
    record = b'{"n":%d,"at":"","kind":"intent","branch":"main"}\n' % (int(last) + 1)
    grown = ((parents[0], more), (parents[1], b""))
    wrong = {
        "go on from what": (*grown, (said, said)),
        "mixes what is encrypted": (*grown, (plain, b"")),
        "no record": (*grown, (said, said + b"0"), (b"ledger\n", b"ledger\n\nmore\n")),
        "are not encrypted": (
            *grown, (said, said + b"0"), (b"ledger\n", b"ledger\n\n" + record)
        ),
        "two parents": (*grown, (more, more + b"".join(parents))),
        "another session": (*grown, (b"Ledger: job", b"Ledger: other")),
        "not of a ledger": (*grown, (b"committer gitcp", b"committer other")),
    }  # fmt: skip
    for words, changes in wrong.items():
        assert words in tried(ann, f"{forged(ann, tip, *changes)}:{LEDGER}"), words
    # Nor does a plaintext page go on from an encrypted one, on either side of a join.
    on_top = forged(
        ann,
        mine,
        *zip(map(parent_line, parents_of(ann, mine)), (more, b""), strict=True),
    )
    assert "mixes what is encrypted" in tried(ann, f"{on_top}:{LEDGER}")
    assert git_line(server, "rev-parse", LEDGER) == tip
    good = forged(ann, tip, *grown, (said, said + b"0"))
    assert not tried(ann, f"{good}:{LEDGER}")


def parents_of(repo: Path, oid: str) -> list[str]:
    return git_line(repo, "log", "-1", "--format=%P", oid).split()


def parent_line(oid: str) -> bytes:
    return f"parent {oid}\n".encode()


# --- what a stranger pushes to get past it -------------------------------------------


def record_of(repo: Path, commit: str) -> bytes:
    return git(repo, "cat-file", "blob", f"{commit}:.gitcp/checkpoint.json")


def with_record(repo: Path, start: str, raw: bytes) -> str:
    """The same commit with another checkpoint.json."""
    blob = git(repo, "hash-object", "-w", "--stdin", input=raw).decode().strip()
    index = repo.parent / "forging-index"
    index.unlink(missing_ok=True)
    env = {**os.environ, "GIT_INDEX_FILE": str(index)}
    git(repo, "read-tree", start, env=env)
    info = f"100644,{blob},.gitcp/checkpoint.json"
    git(repo, "update-index", "--add", "--cacheinfo", info, env=env)
    tree = git(repo, "write-tree", env=env).strip()
    old = git_line(repo, "rev-parse", f"{start}^{{tree}}").encode()
    return forged(repo, start, (old, tree))


def test_a_replaced_commit_is_seen_as_it_is(ann, server):
    """The replacement was what the hook looked at, and a session was rewritten."""
    save(ann, a_py=b"1")
    ok(ann, "push")
    first = git_line(ann, "rev-parse", REF)
    evil = forged(ann, first, (b"gitcp@localhost> ", b"gitcp@localhost> 1"))
    child = save(ann, a_py=b"2")["commit"]
    assert "would replace" in tried(ann, f"{child}:refs/replace/{first}")
    # One that came another way, or before, changes nothing either.
    git(server, "fetch", "-q", ann, child)
    git(server, "fetch", "-q", ann, f"+{evil}:refs/tmp/evil")
    git(server, "update-ref", f"refs/replace/{evil}", child)
    assert "does not go on" in tried(ann, f"{evil}:{REF}")
    assert git_line(server, "rev-parse", REF) == first
    assert not tried(ann, f"HEAD:refs/replace/{git_line(ann, 'rev-parse', 'HEAD')}")


@pytest.mark.parametrize(
    "ref",
    ["refs/GITCP/s/main/main", "refs/Gitcp/s/x/y", "refs/git\u200ccp/s/main/main"],
)
def test_another_spelling_of_a_ref_is_refused(ann, server, ref):
    save(ann, a_py=b"1")
    assert "another spelling" in tried(ann, f"{REF}:{ref}")
    assert "another spelling" in tried(ann, f"HEAD:refs/Replace/{'0' * 40}")


def test_an_encoding_changes_nothing(ann, server):
    """`git log` translated the message first: clients read the bytes."""
    save(ann, a_py=b"1")
    tip = git_line(ann, "rev-parse", REF)
    head = b"committer gitcp <gitcp@localhost>"
    raw = git(ann, "cat-file", "commit", tip)
    line = raw[raw.index(head) : raw.index(b"\n\n")]
    # In UTF-7 these are the letters of a trailer.
    utf7 = forged(
        ann,
        tip,
        (line, line + b"\nencoding UTF-7"),
        (b"Gitcp-Checkpoint: ", b"+AEc-itcp-Checkpoint: "),
    )
    assert "no checkpoint" in tried(ann, f"{utf7}:{REF}")
    # A second committer, and a message with NUL, are read as clients read them.
    other = line.replace(head, b"committer Mallory <m@x>")
    two = forged(ann, tip, (line, other + b"\n" + line))
    git(server, "config", "receive.fsckObjects", "false")
    assert "no checkpoint" in tried(ann, f"{two}:{REF}")
    null = forged(ann, tip, (b"Gitcp-Seq: 1", b"\0\nGitcp-Seq: 1\0"))
    assert "no number" in tried(ann, f"{null}:{REF}")
    for said in (b"zz", b"0" * 40):
        late = forged(ann, tip, (line, line + b"\nparent " + said))
        assert "a parent where none" in tried(ann, f"{late}:{REF}")
    assert git(server, "for-each-ref", "refs/gitcp") == b""


FIELDS = (
    (b'"format": 1', b'"format": 2'),
    (b'"seq": 1', b'"seq": 2'),
    (b'"seq": 1', b'"seq": 1.0'),
    (b'"seq": 1', b'"seq": "1"'),
    (b'"session": "main"', b'"session": "other"'),
    (b'"branch": "main"', b'"branch": null'),
    (b'"created": "2', b'"created": "\\u001b2'),
    (b'"trigger": "manual"', b'"trigger": ["manual"]'),
    (b'"skipped": 0', b'"skipped": -1'),
    (b'"skipped": 0', b'"skipped": 99999999999999999999'),
    (b'"note": null', b'"note": "\xff"'),
    (b'"note": null', b'"note": "\xed\xa0\x80"'),
    (b'"note": null', b'"note": "\\ud800"'),
    (b'"note": null', b'"note": nul'),
    (b'"note": null', b'"note": "a\tb"'),
    (b'"note": null', b'"note": null,\n  "note": null'),
    (b'"note": null', b'"note": {}'),
    (b'"note": null,\n', b""),
    (b'"added": ', b'"addde": '),
    (b'"files": {', b'"files": [{'),
    (b'"position": null', b'"position": {"a":'),
    (b"\n}\n", b",\n}\n"),
    (b"\n}\n", b"\n}\n}\n"),
    (b"\n}\n", b"\n"),
    *(
        (b'"created": "', b'"created": "%b",\n  "was": "' % one)
        for one in (
            b"2026-02-30T00:00:00Z",
            b"2025-02-29T00:00:00Z",
            b"2026-13-01T00:00:00Z",
            b"2026-01-00T00:00:00Z",
            b"2026-04-31T00:00:00Z",
            b"2026-01-01T24:00:00Z",
            b"2026-01-01T00:00:60Z",
            b"2026-01-01T00:00:00.0000000001Z",
            b"1969-12-31T23:59:59Z",
            b"9999-01-01T00:00:00Z",
        )
    ),
    *(
        (b'"%b": null' % name, b'"%b": "%b"' % (name, one))
        for name in (b"restored_from", b"replaced", b"forked_from")
        for one in (b"abc", b"0" * 40)
    ),
    *(
        (b'"position": null', b'"position": %b' % one)
        for one in (
            b'"\\ud83d"',
            b'"\\ude00\\ud83d"',
            b'{\n    "\\ud800": 1\n  }',
            b"".join(b"[\n" + b"  " * (2 + at) for at in range(950))
            + b"1"
            + b"".join(b"\n" + b"  " * (950 - at) + b"]" for at in range(950)),
        )
    ),
    *(
        (b"\n}\n", b",\n  %b\n}\n" % one)
        for one in (
            b'"more": "\\ud800"',
            b'"\\ud800": 1',
            b'"\\u0073kipped": "x"',
            b'"converted": null',
            b'"converted": [\n    1\n  ]',
            b'"converted": [\n    {\n      "from": "sha1"\n    }\n  ]',
            b'"converted": [\n    {\n      "from": "x",\n      "base": "ab"\n    }\n  ]',
        )
    ),
    (b'"deleted": ', b'"\\u0074ree": 5,\n    "deleted": '),
    (b'"commit": "', b'"commit": "abc'),
    (b'"operation": null', b'"operation": "Merge"'),
    (b'"operation": null', b'"operation": "a-very-long-operation"'),
    (b'"seal": ', b'"seel": '),
)


def test_a_record_that_no_client_could_read_blocks_no_branch(ann, server, bob):
    """Once it is there no other clone could push to that branch, or pull it."""
    made = save(ann, a_py=b"1")
    tip = git_line(ann, "rev-parse", REF)
    whole = record_of(ann, tip)
    bad = [b'{"format":1}\n', b"", b"[]\n", b"{}\n", whole[:-3], whole + b"x"]
    for old, new in FIELDS:
        assert whole.count(old) >= 1, old
        bad.append(whole.replace(old, new, 1))
    bad.append(whole.replace(made["id"].encode(), b"0" * 12))
    for raw in bad:
        said = tried(ann, f"{with_record(ann, tip, raw)}:{REF}")
        assert "record" in said, raw
    assert git(server, "for-each-ref", "refs/gitcp") == b""
    assert not tried(ann, f"{tip}:{REF}")
    ok(bob, "pull")
    assert ok(bob, "verify")["ok"]


def test_a_record_of_other_files_than_are_in_it_is_refused(ann, server, bob):
    save(ann, a_py=b"1")
    ok(ann, "push")
    save(ann, **{"a_py": b"2", "odd é \n name": b"x"})
    (ann / "empty").mkdir()
    save(ann, sub_x=b"3")
    tip = git_line(ann, "rev-parse", REF)
    whole = record_of(ann, tip)
    tree = json.loads(whole)["files"]["tree"].encode()
    other = json.loads(record_of(ann, f"{tip}~1"))["files"]["tree"].encode()
    assert tree != other
    for wrong in (whole.replace(tree, other), whole.replace(b'"%s"' % tree, b"null")):
        assert "other files than" in tried(ann, f"{with_record(ann, tip, wrong)}:{REF}")
    assert not tried(ann, f"{tip}:{REF}")
    # What was made to compare is not kept.
    assert not list(server.glob("gitcp-update*"))
    ok(bob, "pull")
    assert ok(bob, "verify")["ok"]


def with_own(repo: Path, start: str, name: str, raw: bytes) -> bytes:
    """The tree of a checkpoint with one more file of gitcp's own."""
    blob = git(repo, "hash-object", "-w", "--stdin", input=raw).strip()
    own = git(repo, "ls-tree", f"{start}:.gitcp")
    own += b"100644 blob %b\t%b\n" % (blob, name.encode())
    made = git(repo, "mktree", input=own).strip()
    there = git_line(repo, "rev-parse", f"{start}:.gitcp").encode()
    whole = git(repo, "ls-tree", start).replace(there, made)
    return git(repo, "mktree", input=whole).strip()


def test_lists_that_no_client_could_read_block_no_branch(ann, server, bob):
    save(ann, a_py=b"1")
    tip = git_line(ann, "rev-parse", REF)
    counted = record_of(ann, tip).replace(b'"skipped": 0', b'"skipped": 1')
    one = with_record(ann, tip, counted)
    assert "other skipped paths" in tried(ann, f"{one}:{REF}")
    good = [
        b'{"path":"a\\n/.b","reason":"too-large"}\n',
        b'{"path":"?","path_b64":"/2E=","reason":"x"}\n',
        b'{"path":"?","reason":"x","path_b64":"/2E="}\n',
    ]
    bad = [
        *(good[0] * 2, b"junk\n", good[0] + b"\n", b"", good[0].replace(b"a", b"\xff")),
        *(
            b'{"path":"%b","reason":"x"}\n' % path
            for path in (
                b"",
                b"../x",
                b"a//b",
                b"a/.",
                b"\\u0000",
                b"\\u002e",
                b"\\ud800",
            )
        ),
        *(
            b'{"path":"?","path_b64":"%b","reason":"x"}\n' % path
            for path in (b"Li4veA==", b"AGE=", b"YWI", b"")
        ),
    ]
    lists = [("skipped.jsonl", one, raw, False) for raw in bad]
    lists += [("skipped.jsonl", one, raw, True) for raw in good]
    for path in (
        b"../x",
        b"/x",
        b"a/./b",
        b".git/x",
        b"a/.GIT. ",
        b"x" * 256,
        b"a\\.git",
    ):
        lists.append(("empty-dirs.txt", tip, b"ok\0%b\0" % path, False))
    lists.append(("empty-dirs.txt", tip, "a\n\u00e9/.b\0c\0".encode(), True))
    for number, (name, start, raw, sound) in enumerate(lists):
        tree = with_own(ann, start, name, raw)
        old = git_line(ann, "rev-parse", f"{start}^{{tree}}").encode()
        said = tried(ann, f"{forged(ann, start, (old, tree))}:{REF}")
        assert ("hook declined" in said) != sound, (number, raw, said)
        if sound:
            ok(bob, "pull")
            git(server, "update-ref", "-d", REF)
    raw = git(ann, "cat-file", "commit", tip)
    gap = raw[raw.index(b"\n\n") :]
    large = forged(ann, tip, (gap, b"\n\n" + b"x" * (4 << 20) + gap))
    assert "too large" in tried(ann, f"{large}:{REF}")
    assert not tried(ann, f"{tip}:{REF}")


def test_checkpoints_without_files_are_taken(ann, server, tmp_path):
    bare = tmp_path / "nothing"
    git(tmp_path, "init", "-q", str(bare))
    git(bare, "remote", "add", "origin", str(server))
    ok(bare, "save", "--allow-empty")
    ok(bare, "push")


@pytest.mark.parametrize("awk", ["mawk", "gawk", "busybox awk", "original-awk"])
def test_each_awk_takes_what_gitcp_writes(ann, server, bob, awk, tmp_path):
    """Whatever a name, a note, a position or a label is."""
    if shutil.which(awk.split()[0]) is None:
        pytest.skip(f"{awk} is not installed")
    program = tmp_path / "bin" / "awk"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {awk} "$@"\n')
    program.chmod(0o755)
    hook = server / "hooks" / "update"
    body = hook.read_text().partition("\n")[2]
    hook.write_text(f"#!/bin/sh\nPATH={program.parent}:$PATH\n{body}")
    odd = 'a "b"\\\n\t\x01é\U0001f642/-%'
    session = gitcp.open(ann).session(f"-{odd}", f"{odd}x" * 30)
    for number in range(3):
        session.save(
            messages=[{"n": number}],
            note=f"{odd}\x7f\u2028" * number or None,
            label=f"l{number}{odd}",
            trigger=odd,
            position={odd: [1.5e9, -2, {}, [], [[odd, None, True]], {"x": {"y": "]"}}]},
            metadata={"a,": '",\\', "}": "{"},
            decisions=[gitcp.Decision(odd, why=odd, kind="task")],
            allow_empty=True,
        )
    ok(ann, "push")
    ok(bob, "pull")
    assert ok(bob, "verify")["ok"]
    tip = git_line(ann, "for-each-ref", "--format=%(objectname)", "refs/gitcp/s")
    raw = record_of(ann, tip)
    git(server, "config", "gitcp.allowPruned", "true")
    (ref,) = git(ann, "for-each-ref", "--format=%(refname)", "refs/gitcp/s").split()
    bad = with_record(ann, tip, raw.replace(b'"seq": 3', b'"seq": 4'))
    assert "record of another number" in tried(ann, f"{bad}:{ref.decode()}")
    counted = with_record(ann, tip, raw.replace(b'"skipped": 0', b'"skipped": 1'))
    climbs = b'{"path":"?","path_b64":"Li4veA==","reason":"x"}\n'
    tree = with_own(ann, counted, "skipped.jsonl", climbs)
    old = git_line(ann, "rev-parse", f"{counted}^{{tree}}").encode()
    bad = forged(ann, counted, (old, tree))
    assert "other skipped paths" in tried(ann, f"{bad}:{ref.decode()}")
