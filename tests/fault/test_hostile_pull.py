"""What a remote may send: objects, trees, names and ledgers that a pull must refuse.

The objects are made by `tests.support.forge`: git itself would not write most of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gitcp.format.chunked import ChunkedName
from tests.support.clones import clone, refs, results, save
from tests.support.forge import Entry, Forge, number, object_id, record, trailers
from tests.support.gitrepo import (
    git,
    git_line,
    gitcp_argv,
    gitcp_environment,
    run_gitcp,
    tree_bytes,
)
from tests.support.inprocess import fails, invoke, ok

REF = "refs/gitcp/s/evil/main"
FILE, LINK, TREE, MODULE = b"100644", b"120000", b"40000", b"160000"
ZWNJ = "\u200c".encode()


@pytest.fixture
def forge() -> Forge:
    return Forge()


def state(repo: Path) -> object:
    git_dir = repo / ".git"
    return (
        refs(repo),
        sorted(path.name for path in (git_dir / "objects").rglob("*")),
        tree_bytes(repo),
    )


def refused(repo: Path, *args: str) -> str:
    """Pulls what must not come; everything stays as it was."""
    before = state(repo)
    done = invoke(repo, "pull", *args)
    said = done.stderr.decode("utf-8", "backslashreplace")
    assert done.returncode in {15, 16, 19, 21}, (done.returncode, said)
    assert "gitcp: " in said
    assert "Traceback" not in said
    assert state(repo) == before
    assert list((repo / ".git" / "gitcp").glob("tmp/*")) == []
    return said


def names(*found: bytes) -> dict[str, bytes]:
    return {repr(name): name for name in found}


# Table (e) of what other tools let pass; each has to stop before it is adopted.
BAD_NAMES = names(
    b".git",
    b".GIT",
    b".gIt",
    b"git~1",
    b"GIT~2",
    b".git ",
    b".git.",
    b".git . .",
    b".git::$INDEX_ALLOCATION",
    b".git:x",
    b".git\\x",
    b"a\\.git\\hooks",
    b"..\\outside",
    b"a\\..\\b",
    b".g" + ZWNJ + b"it",
    b".gi\xe2\x80\xaat",
    b".g\xe2\x80\x8dit",
    b"..",
    b".",
    b"",
    b"a/b",
    b"a/../../x",
    b"/abs",
    b"../x",
    b"n" * 300,
)


@pytest.mark.parametrize("name", BAD_NAMES.values(), ids=BAD_NAMES)
@pytest.mark.parametrize("below", [False, True], ids=["root", "below"])
def test_a_bad_name_is_refused(forge, hub, bob, name, below):
    entries: list[Entry] = [(FILE, name, forge.blob(b"x"))]
    if below:
        entries = [(TREE, b"sub", forge.tree(entries))]
    forge.into(hub, {REF: forge.checkpoint(entries)})
    refused(bob)


def shapes(forge: Forge) -> dict[str, list[Entry]]:
    blob, link = forge.blob(b"x"), forge.blob(b"/etc")
    inner = forge.tree([(FILE, b"f", blob)])
    nowhere = b"\x11" * 20
    long = forge.tree([(FILE, b"f", blob)])
    for _ in range(20):
        long = forge.tree([(TREE, b"n" * 250, long)])
    return {
        "a link and a directory of one name": [
            (LINK, b"d", link),
            (TREE, b"d", inner),
        ],
        "one name twice": [(FILE, b"f", blob), (FILE, b"f", link)],
        "names out of order": [(FILE, b"z", blob), (FILE, b"a", blob)],
        "mode 100755 with setuid": [(b"104755", b"f", blob)],
        "mode 100666": [(b"100666", b"f", blob)],
        "mode 0": [(b"0", b"f", blob)],
        "a mode with a zero before it": [(b"0100644", b"f", blob)],
        "a mode with an underscore": [(b"100_644", b"f", blob)],
        "a blob as a directory": [(TREE, b"d", blob)],
        "a tree as a file": [(FILE, b"f", inner)],
        "a missing blob": [(FILE, b"f", nowhere)],
        "a missing tree": [(TREE, b"d", nowhere)],
        ".gitmodules as a link": [(LINK, b".gitmodules", link)],
        "a link of 5,000 bytes": [(LINK, b"l", forge.blob(b"a/" * 2500))],
        "a path of 5,000 bytes": [(TREE, b"p", long)],
        "a module as .git": [(MODULE, b".git", nowhere)],
    }


@pytest.mark.parametrize("what", shapes(Forge()))
def test_a_bad_tree_is_refused(forge, hub, bob, what):
    forge.into(hub, {REF: forge.checkpoint(shapes(forge)[what])})
    refused(bob)


def test_what_is_only_odd_comes_and_comes_back(forge, hub, bob):
    """Names that are legal here: a checkpoint of one's own may hold them, too."""
    odd = [b"--force", b"\x1b[31m", b"CON", b"\xff\xfe", b"a\nb", b"gitx", b"nul.txt"]
    blob = forge.blob(b"x")
    forge.into(
        hub, {REF: forge.checkpoint([(FILE, name, blob) for name in sorted(odd)])}
    )
    assert results(bob, "pull") == {"evil/main": ("created", "main")}
    ok(bob, "restore", "evil:1", "--to", "out", "--yes")
    assert set(tree_bytes(bob / "out")) == set(odd)


@pytest.mark.parametrize(
    "name", [b".git", b".git::$INDEX_ALLOCATION", b"..", b".g" + ZWNJ + b"it"]
)
def test_what_came_past_the_pull_is_not_restored(forge, bob, name):
    """Plain git brought it: restore judges again."""
    inner = forge.tree([(FILE, name, forge.blob(b"x"))])
    tip = forge.checkpoint([(TREE, b"sub", inner)])
    forge.into(bob / ".git", {REF: tip})
    before = tree_bytes(bob)
    assert "must not be restored" in fails(bob, 19, "restore", "evil:1", "--yes")
    assert "must not be restored" in fails(bob, 19, "restore", "evil:1", "--to", "out")
    after = {path: node for path, node in tree_bytes(bob).items() if path != b"out"}
    assert after == before


# --- records ----------------------------------------------------------------------

DEEP = b"[" * 100_000 + b"]" * 100_000
RECORDS = {
    "empty": b"",
    "cut": record(None)[:100],
    "not UTF-8": record(None).replace(b"hello", b"\xff\xfe"),
    "a list": b"[]",
    "nested 100,000 deep": record(None).replace(
        b'"position": null', b'"position": ' + DEEP
    ),
    "a huge number": record(None).replace(b'"seq": 1', b'"seq": ' + b"9" * 5000),
    "a wrong type": record(None, seq="1"),
    "a key twice": record(None).replace(b'"seq": 1', b'"seq": 1, "seq": 7'),
    "another session": record(None, session="main"),
    "a name that is empty": record(None, session=""),
    "a name too long": record(None, session="n" * 2000),
    "another tree": record(b"\x22" * 20),
    "an unknown version": record(None, format=99),
    "more skipped than listed": record(None, skipped=3),
    "an origin that is not an origin": record(None, origin=[1]),
    "a conversation that is not there": record(
        None,
        conversation={
            "source": "main",
            "kind": "messages",
            "messages": 1,
            "bytes": 1,
            "segments": 1,
            "digest": "0",
        },
    ),
}


@pytest.mark.parametrize("what", RECORDS)
def test_a_bad_record_is_one_error(forge, hub, bob, what):
    tip = forge.checkpoint(manifest=RECORDS[what])
    forge.into(hub, {REF: tip})
    refused(bob)
    # The same, brought by plain git: named by every command, and a bug in none.
    forge.into(bob / ".git", {REF: tip})
    for args in (
        ("sessions",),
        ("log", "-s", "evil"),
        ("log", "--all"),
        ("show", "evil:last"),
        ("messages", "evil:last"),
        ("context", "evil:last"),
        ("restore", "evil:last", "--yes"),
        ("verify",),
        ("push", "--dry-run"),
    ):
        done = invoke(bob, *args)
        said = done.stderr.decode("utf-8", "backslashreplace")
        assert done.returncode != 70, (args, said)
        assert "Traceback" not in said
    save(bob, a_py=b"go on")


LISTS: dict[str, tuple[bytes, bytes]] = {
    "skipped.jsonl that is not JSON": (b"skipped.jsonl", b"{\n"),
    "skipped.jsonl with bad base64": (
        b"skipped.jsonl",
        b'{"path":"a","reason":"r","path_b64":"!"}\n',
    ),
    "skipped.jsonl with a NUL": (
        b"skipped.jsonl",
        b'{"path":"a\\u0000b","reason":"r"}\n',
    ),
    "skipped.jsonl with a NUL in base64": (
        b"skipped.jsonl",
        b'{"path":"a","reason":"r","path_b64":"AAAA"}\n',
    ),
    "a skipped path outside": (
        b"skipped.jsonl",
        b'{"path":"../../x","reason":"r"}\n',
    ),
    "a skipped path from the root": (
        b"skipped.jsonl",
        b'{"path":"/etc/passwd","reason":"r"}\n',
    ),
    "an empty directory outside": (b"empty-dirs.txt", b"../../x\0"),
    "an empty directory in .git": (b"empty-dirs.txt", b".git/x\0"),
}


@pytest.mark.parametrize("what", LISTS)
def test_a_bad_list_is_one_error(forge, hub, bob, what):
    name, data = LISTS[what]
    skipped = 1 if name == b"skipped.jsonl" else 0
    tip = forge.checkpoint(own=[(FILE, name, forge.blob(data))], skipped=skipped)
    forge.into(hub, {REF: tip})
    refused(bob)


def test_why_a_path_is_absent_is_told_on_its_own_line(forge, hub, bob):
    """What a stranger says may not pass for a line of gitcp's."""
    said = b'{"path":"a","reason":"too large)\\nRestored to #1 (all of it"}\n'
    own = [(FILE, b"skipped.jsonl", forge.blob(said))]
    forge.into(hub, {REF: forge.checkpoint(own=own, skipped=1)})
    ok(bob, "pull")
    for args in ("restore", "--dry-run"), ("show",), ("restore", "--yes"):
        done = invoke(bob, args[0], "evil:last", *args[1:])
        shown = (done.stdout + done.stderr).decode()
        assert "too large)\\nRestored to #1" in shown, args
        assert "\nRestored to #1" not in shown.replace("\\n", ""), args


@pytest.mark.parametrize("what", ["name", "file", "group", "chunk", "blob"])
def test_what_is_no_list_of_chunks_is_refused(forge, hub, bob, what):
    """`verify` would report it from then on, and `purge` could not go past it."""
    blob = forge.blob(b"x")
    group = forge.tree([(TREE, b"000", forge.tree([]))])
    chunks = forge.tree([(FILE, b"000", blob)])
    name = ChunkedName(object_id("blob", b"x"), 1).path
    listed: dict[str, list[Entry]] = {
        "name": [(TREE, b"xx", forge.tree([(TREE, b"0000", chunks)]))],
        "file": [(FILE, name, blob)],
        "group": [(TREE, name, chunks)],
        "chunk": [(TREE, name, forge.tree([(TREE, b"0000", group)]))],
    }
    own = (
        (FILE, b"chunks", blob)
        if what == "blob"
        else (TREE, b"chunks", forge.tree(listed[what]))
    )
    forge.into(hub, {REF: forge.checkpoint(own=[own], format=3)})
    refused(bob)
    assert invoke(bob, "verify").returncode == 0


def test_a_bad_log_is_one_error(forge, hub, bob):
    meta = {
        "format": 1,
        "name": "main",
        "kind": "decisions",
        "messages": 1,
        "bytes": 3,
        "segments": 1,
        "digest": "00" * 32,
    }
    changes: list[dict[str, object]] = [
        {"bytes": 4},
        {"segments": 2},
        {"kind": 7},
        {"name": "../x"},
        {"digest": "zz"},
    ]
    for at, change in enumerate(changes):
        raw = json.dumps({**meta, **change}).encode()
        segment = forge.tree([(FILE, b"00.jsonl", forge.blob(b"{}\n"))])
        source = forge.tree(
            [(TREE, b"0000", segment), (FILE, b"meta.json", forge.blob(raw))]
        )
        log = forge.tree([(TREE, b"decisions", forge.tree([(TREE, b"main", source)]))])
        tip = forge.checkpoint(own=[(TREE, b"log", log)], note=str(at))
        forge.into(hub, {REF: tip})
        refused(bob)


# --- lines ------------------------------------------------------------------------


def test_a_line_that_is_none_is_refused(forge, hub, bob):
    first = forge.checkpoint()
    other = forge.checkpoint(note="other")
    project = bytes.fromhex(git_line(hub, "rev-parse", "main"))
    root = forge.tree([])
    merged = forge.commit(root, [first, other], trailers(seq=2))
    cases = {
        "two parents": merged,
        "a number left out": forge.checkpoint(parent=first, seq=3),
        "no first one": forge.checkpoint(seq=2),
        "on the project's history": forge.checkpoint(parent=project, seq=2),
        "no record": forge.commit(root, [], trailers()),
        "no trailers": forge.commit(root, [], b"hello\n"),
        "a blob": forge.blob(b"x"),
        "a tree": root,
        "another branch": forge.checkpoint(branch="other"),
    }
    for what, tip in cases.items():
        forge.into(hub, {REF: tip})
        assert refused(bob), what


def test_only_what_is_sound_is_adopted(forge, ann, hub, bob):
    """An evil remote: symbolic refs, blobs, other namespaces, names that clash."""
    save(ann, "-s", "good", a_py=b"good")
    ok(ann, "push")
    good = bytes.fromhex(git_line(hub, "rev-parse", "refs/gitcp/s/good/main"))
    forge.into(
        hub,
        {
            "refs/gitcp/s/blob/main": forge.blob(b"x"),
            "refs/gitcp/s/git/main": forge.checkpoint(
                [(FILE, b".git", forge.blob(b"x"))], session="git"
            ),
            "refs/gitcp/s/stolen/main": good,
            "refs/gitcp/s/good/other": good,
            "refs/gitcp/s/clash": good,
            "refs/gitcp/s/deep/a/b": good,
            "refs/gitcp/s/Upper/main": good,
            "refs/gitcp/s/r\u202etl/main": good,
            "refs/gitcp/r/origin/good/main": good,
            "refs/gitcp/fx/alone": good,
            "refs/gitcp/fx/D/F": good,
            "refs/heads/gitcp": good,
        },
    )
    git(hub, "symbolic-ref", "refs/gitcp/s/sym/main", "refs/gitcp/s/good/main")
    mine = [one for one in refs(bob).splitlines() if b"refs/gitcp/" not in one]
    done = invoke(bob, "pull", "--json")
    assert done.returncode == 3, done.stderr
    found = {
        (one["session"], one["branch"]): one["result"]
        for one in json.loads(done.stdout)["branches"]
    }
    assert found.pop(("good", "main")) == "created"
    assert set(found.values()) == {"rejected"}
    here = [line.split()[-1].decode() for line in refs(bob).splitlines()]
    assert [one for one in here if one.startswith("refs/gitcp/")] == [
        "refs/gitcp/r/origin/good/main",
        "refs/gitcp/s/good/main",
    ]
    assert [one for one in refs(bob).splitlines() if b"refs/gitcp/" not in one] == mine
    assert ok(bob, "verify")["ok"]
    # What was refused left nothing behind either.
    listed = git(bob, "cat-file", "--batch-all-objects", "--batch-check")
    assert forge.blob(b"x").hex().encode() not in listed


def test_a_line_replaced_there_is_a_fork_and_a_warning(forge, ann, hub, bob):
    save(ann, "-s", "evil", a_py=b"1")
    ok(ann, "push")
    ok(bob, "pull")
    ours = git_line(bob, "rev-parse", REF)
    forge.into(hub, {REF: forge.checkpoint(note="replaced")})
    said = invoke(bob, "pull")
    assert said.returncode == 0
    assert b"rewound on origin" in said.stderr
    assert b"evil/main as main~origin" in said.stdout
    assert git_line(bob, "rev-parse", REF) == ours
    assert ok(bob, "verify")["ok"]
    before = refs(bob)
    assert results(bob, "pull") == {"evil/main": ("up-to-date", "main~origin")}
    assert refs(bob) == before


MAIN = "refs/gitcp/s/main/main"


@pytest.fixture
def seen(ann, hub, bob):
    """Two checkpoints that both clones and the remote have; returns the first."""
    first: str = save(ann, a_py=b"1")["commit"]
    save(ann, a_py=b"2")
    ok(ann, "push")
    ok(bob, "pull")
    return first


def push_of(repo: Path) -> dict[str, tuple[str, str | None]]:
    return {
        f"{one['session']}/{one['branch']}": (one["result"], one["reason"])
        for one in ok(repo, "push")["branches"]
    }


def here(repo: Path) -> dict[str, str]:
    found = ok(repo, "remote-sessions")["sessions"]
    return {
        f"{one['name']}/{branch['name']}": branch["here"]
        for one in found
        for branch in one["branches"]
    }


def test_a_push_says_that_the_remote_was_taken_back(seen, hub, bob):
    git(hub, "update-ref", MAIN, seen)
    assert here(bob) == {"main/main": "taken-back"}
    said = "the remote had rewound it"
    assert push_of(bob) == {"main/main": ("fast-forward", said)}
    # It has all of it again.
    assert here(bob) == {"main/main": "same"}
    save(bob, a_py=b"3")
    assert push_of(bob) == {"main/main": ("fast-forward", None)}


def test_a_push_says_that_a_branch_had_gone(seen, hub, bob):
    git(hub, "update-ref", "-d", MAIN)
    assert push_of(bob) == {"main/main": ("created", "the remote had removed it")}
    assert push_of(bob) == {"main/main": ("up-to-date", None)}


def test_a_pull_says_that_a_branch_has_gone(seen, ann, hub, bob):
    save(ann, "-s", "other", a_py=b"3")
    ok(ann, "push")
    ok(bob, "pull")
    before = refs(bob)
    git(hub, "update-ref", "-d", MAIN)
    for _ in range(2):
        done = invoke(bob, "pull", "--json")
        assert json.loads(done.stdout)["gone"] == ["main/main"]
        assert b"origin had main/main and removed it" in done.stderr
        # Who asks for a part is told of that part.
        assert ok(bob, "pull", "origin", "other")["gone"] == []
    assert refs(bob) == before
    # It comes back older: what was seen of it is not forgotten.
    git(hub, "update-ref", MAIN, seen)
    done = invoke(bob, "pull", "--json")
    assert json.loads(done.stdout)["rewound"] == ["main/main"]
    assert b"rewound on origin" in done.stderr


def test_another_line_in_its_place_is_never_taken_for_it(seen, forge, hub, bob):
    forge.into(hub, {MAIN: forge.checkpoint(session="main", note="replaced")})
    ours = git_line(bob, "rev-parse", MAIN)
    there = git_line(hub, "rev-parse", MAIN)
    # Before a pull it may be more of the same: a push leaves it alone.
    pushed = invoke(bob, "push")
    assert b"it has more checkpoints: pull" in pushed.stdout
    assert git_line(hub, "rev-parse", MAIN) == there
    done = invoke(bob, "pull", "--json")
    assert json.loads(done.stdout)["rewound"] == ["main/main"]
    assert git_line(bob, "rev-parse", MAIN) == ours
    assert here(bob) == {"main/main": "forked"}
    assert "has diverged" in fails(bob, 3, "push")
    assert git_line(hub, "rev-parse", MAIN) == there


# --- bombs ------------------------------------------------------------------------

MIB = 1 << 20


def import_refused(repo: Path, bundle: Path, **settings: str) -> str:
    """Imports as a process; checks its largest memory and what it left on the disk."""
    for name, value in settings.items():
        git(repo, "config", f"gitcp.{name}", value)
    before = state(repo)
    script = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:])\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n"
        "print(used, flush=True)\n"
        "sys.exit(done.returncode)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *gitcp_argv("import", bundle)],
        cwd=repo,
        env=gitcp_environment(),
        capture_output=True,
        check=False,
        timeout=240,
    )
    said = done.stderr.decode("utf-8", "backslashreplace")
    assert done.returncode in {15, 19, 21}, (done.returncode, said)
    assert "Traceback" not in said
    assert int(done.stdout.split()[-1]) < 512 * 1024, "KiB of memory"
    assert state(repo) == before
    assert list((repo / ".git" / "gitcp").glob("tmp/*")) == []
    return said


def test_a_file_of_zeros_is_stopped(forge, bob, tmp_path):
    tip = forge.checkpoint([(FILE, b"zeros", forge.zeros(64 * MIB))])
    bundle = forge.bundle(tmp_path / "b", {REF: tip})
    assert bundle.stat().st_size < MIB
    said = import_refused(bob, bundle, pullMaxFile="32m")
    assert "gitcp.pullMaxFile" in said


@pytest.mark.slow
def test_a_gigabyte_of_zeros_is_stopped_by_default(forge, bob, tmp_path):
    tip = forge.checkpoint([(FILE, b"zeros", forge.zeros(1 << 30))])
    bundle = forge.bundle(tmp_path / "b", {REF: tip})
    assert "gitcp.pullMaxFile" in import_refused(bob, bundle)


def test_a_pull_is_stopped_while_it_grows(forge, hub, bob):
    blob = forge.blob(os.urandom(3 * MIB))
    forge.into(hub, {REF: forge.checkpoint([(FILE, b"large", blob)])})
    git(bob, "config", "gitcp.pullMaxSize", "1m")
    assert "gitcp.pullMaxSize" in refused(bob)


def test_a_chain_of_deltas_that_explodes_is_stopped(forge, bob, tmp_path):
    """64 KiB, sixteen times over, four times: 4 GiB from a few hundred bytes."""
    piece = 1 << 16
    length = piece
    oid = forge.blob(bytes(length))
    for _ in range(4):
        step = min(length, 0xFF0000)
        times = length * 16 // step
        copy = bytes([0x80 | 0x70]) + step.to_bytes(3, "little")
        delta = number(length) + number(step * times) + copy * times
        forge.delta(oid, delta)
        length = step * times
        if length > 1 << 28:
            # More than memory may hold: its id is never computed.
            break
        oid = object_id("blob", bytes(length))
    tip = forge.checkpoint([(FILE, b"f", forge.blob(b"x"))])
    bundle = forge.bundle(tmp_path / "b", {REF: tip})
    assert bundle.stat().st_size < MIB
    import_refused(bob, bundle)


def test_a_directory_of_many_names_is_stopped(forge, bob, tmp_path):
    blob = forge.blob(b"x")
    tip = forge.checkpoint([(FILE, b"%07d" % at, blob) for at in range(600_000)])
    said = import_refused(bob, forge.bundle(tmp_path / "b", {REF: tip}))
    assert "too many names" in said


def test_a_directory_that_lies_deep_is_stopped(forge, bob, tmp_path):
    tree = forge.tree([(FILE, b"f", forge.blob(b"x"))])
    for _ in range(10_000):
        tree = forge.tree([(TREE, b"d", tree)])
    tip = forge.checkpoint([(TREE, b"d", tree)])
    said = import_refused(bob, forge.bundle(tmp_path / "b", {REF: tip}))
    # gitcp's limit, or that of git since 2.43.
    assert "deep" in said or "tree depth" in said


def commits(forge: Forge, count: int) -> bytes:
    tip = forge.checkpoint()
    root = forge.tree([])
    for seq in range(2, count + 2):
        tip = forge.commit(root, [tip], trailers(seq=seq))
    return tip


def test_many_commits_are_stopped(forge, bob, tmp_path):
    bundle = forge.bundle(tmp_path / "b", {REF: commits(forge, 3_000)})
    said = import_refused(bob, bundle, pullMaxObjects="2000")
    assert "objects, more than gitcp.pullMaxObjects" in said
    assert "commits, more than" in import_refused(bob, bundle, pullMaxObjects="4000")


@pytest.mark.slow
def test_a_million_commits_are_stopped_by_default(forge, bob, tmp_path):
    bundle = forge.bundle(tmp_path / "b", {REF: commits(forge, 1_000_000)})
    assert "gitcp.pullMaxObjects" in import_refused(bob, bundle)


def test_a_clone_goes_on_after_every_refusal(forge, ann, hub, bob):
    forge.into(hub, {REF: forge.checkpoint([(FILE, b".git", forge.blob(b"x"))])})
    refused(bob)
    save(ann, "-s", "good", a_py=b"good")
    ok(ann, "push", "origin", "good")
    assert results(bob, "pull", "origin", "good") == {"good/main": ("created", "main")}
    save(bob, a_py=b"more")
    assert run_gitcp(bob, "verify").returncode == 0
    assert clone(hub, "carl").is_dir()


def junk_for(forge: Forge, content: bytes) -> tuple[ChunkedName, Entry]:
    """A list of chunks that says it is a content, and is not."""
    name = ChunkedName(object_id("blob", content), len(content))
    group = forge.tree([(FILE, b"000", forge.blob(b"EVIL"))])
    return name, (TREE, name.path, forge.tree([(TREE, b"0000", group)]))


@pytest.mark.parametrize(
    ("how", "pointer"),
    [
        *(("whole", True), ("chunked", True)),
        *(("whole", False), ("chunked", False), ("not saved", False)),
    ],
)
def test_a_list_that_names_a_content_of_the_users_takes_it_from_no_one(
    forge, hub, bob, how, pointer
):
    content = b"precious work\n" * (9_000 if how == "chunked" else 1)
    (bob / "work").write_bytes(content)
    if how == "chunked":
        git(bob, "config", "gitcp.chunkAbove", "64k")
    if how != "not saved":
        ok(bob, "save")
    name, listed = junk_for(forge, content)
    files = [(FILE, b"z", forge.blob(name.pointer))] if pointer else []
    tip = forge.checkpoint(
        [(FILE, b"c", forge.blob(b"c")), *files],
        own=[(TREE, b"chunks", forge.tree([listed]))],
        format=3,
    )
    forge.into(hub, {REF: tip})
    ok(bob, "pull")
    ok(bob, "diff", "evil:last")
    ok(bob, "restore", "evil:last", "--yes")
    assert not (bob / "work").exists()
    ok(bob, "undo", "--yes")
    assert (bob / "work").read_bytes() == content
    assert b"chunks do not match" in invoke(bob, "verify").stdout
    # Nor does going on from there store the user's content by that list.
    ok(bob, "restore", "evil:last", "--yes")
    (bob / "work").write_bytes(content)
    ok(bob, "save")
    (bob / "work").unlink()
    ok(bob, "restore", "last", "--yes")
    assert (bob / "work").read_bytes() == content
