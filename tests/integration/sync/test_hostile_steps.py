"""What a pulled ledger may say, and may not do."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw

import gitcp
from gitcp.errors import UsageError
from gitcp.format import ledger as records
from gitcp.format.commit import parse_commit
from gitcp.format.ledger import Record, Undo
from tests.support.clones import refs
from tests.support.forge import Forge, trailers
from tests.support.forms import new_form
from tests.support.gitrepo import git, git_line, run_gitcp, write_files
from tests.support.inprocess import fails, invoke, ok

LEDGER = "refs/gitcp/fx/job"
STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)


def intent(**more: Any) -> Record:
    given: dict[str, Any] = {
        "id": "0123456789ab",
        "step": "evil",
        "call": "1",
        "attempt": 1,
        **more,
    }
    given = {"key": "k", "effect": "reversible", "policy": "ask", **given}
    return Record(0, "2026-01-01T00:00:00.000Z", records.INTENT, "main", **given)


def result(**more: Any) -> Record:
    given: dict[str, Any] = {"id": "0123456789ab", "attempt": 1, **more}
    at = given.pop("at", "2026-01-01T00:00:00.000Z")
    return Record(0, at, records.RESULT, "main", **given)


def empty(repo: Path) -> bytes:
    """Writes the tree without entries."""
    return bytes.fromhex(git(repo, "mktree", input=b"").decode())


def raw_page(repo: Path, raw: bytes) -> str:
    args = ("hash-object", "--literally", "-t", "commit", "-w", "--stdin")
    return git(repo, *args, input=raw).decode().strip()


def page(
    repo: Path,
    *found: Record,
    parent: str | None = None,
    first: int = 1,
    session: str = "job",
    joins: str | None = None,
    tree: bytes | None = None,
) -> str:
    """Writes a page as an attacker would: numbers are given, nothing is checked."""
    numbered = [
        one if one.n else msgspec.structs.replace(one, n=first + at)
        for at, one in enumerate(found)
    ]
    return raw_page(
        repo,
        records.encode_ledger_commit(
            empty(repo) if tree is None else tree,
            bytes.fromhex(parent) if parent else None,
            1_700_000_000,
            session,
            numbered,
            joins=bytes.fromhex(joins) if joins else None,
        ),
    )


def there(repo: Path, tip: str, session: str = "job") -> None:
    """Puts a ledger on the remote, past gitcp."""
    ref = f"refs/gitcp/fx/{session}"
    git(repo, "push", "-q", "--force", "origin", f"{tip}:{ref}")


def last(repo: Path) -> int:
    raw = git(repo, "cat-file", "commit", LEDGER)
    said = records.ledger_trailers(parse_commit(raw, new_form().size))
    assert said is not None
    return said.last


def shared(ann: Path, bob: Path) -> gitcp.Session:
    session = gitcp.open(ann).session("job")
    session.save()
    session.step("load", lambda: 1)
    ok(ann, "push")
    ok(bob, "pull")
    ok(bob, "switch", "job", "--restore", "--yes")
    return session


# --- what is acted upon ---------------------------------------------------------------


def test_an_undo_from_a_remote_is_shown_and_not_run(ann, bob):
    shared(ann, bob)
    evil = Undo(command=("sh", "-c", "touch pwned"), seal="00" * 32)
    at = last(ann) + 1
    tip = page(
        ann,
        intent(undo=evil),
        result(),
        parent=git_line(ann, "rev-parse", LEDGER),
        first=at,
    )
    there(ann, tip)
    ok(bob, "pull")
    shown = ok(bob, "steps", "show", "evil")["step"]
    assert shown["undo"]["command"] == ["sh", "-c", "touch pwned"]
    assert shown["foreign"]
    assert b"elsewhere" in invoke(bob, "steps").stdout
    said = fails(bob, 3, "undo", "--effects", "--to", "job:1", "--yes")
    assert "another repository" in said
    assert "--trust" in said
    assert not (bob / "pwned").exists()
    ok(bob, "undo", "--effects", "--to", "job:1", "--yes", "--trust", "--keep", "load")
    assert (bob / "pwned").exists()


def test_a_command_from_a_remote_is_not_run_again_without_asking(ann, bob):
    shared(ann, bob)
    evil = intent(effect="none", command=("sh", "-c", "touch pwned"))
    tip = page(
        ann,
        evil,
        result(),
        parent=git_line(ann, "rev-parse", LEDGER),
        first=last(ann) + 1,
    )
    there(ann, tip)
    ok(bob, "pull")
    before = git_line(bob, "rev-parse", LEDGER)
    said = fails(bob, 2, "steps", "repair", "evil", "--yes")
    assert "recorded elsewhere" in said
    assert "touch pwned" in said
    assert git_line(bob, "rev-parse", LEDGER) == before
    assert not (bob / "pwned").exists()
    done = run_gitcp(bob, "steps", "repair", "evil", "--yes", "--trust")
    assert done.returncode == 0, done.stderr
    assert (bob / "pwned").exists()


def test_files_that_a_remote_names_are_not_put_back_without_asking(ann, bob):
    """It says that a step of ours began with files that are its own."""
    session = shared(ann, bob)
    write_files(ann, {".envrc": b"touch pwned\n"})
    evil = session.save(note="evil")
    (ann / ".envrc").unlink()
    left = session.save(note="left")
    tip = page(
        ann,
        intent(effect="local", before=evil.id),
        result(left=left.id),
        parent=git_line(ann, "rev-parse", LEDGER),
        first=last(ann) + 1,
    )
    there(ann, tip)
    git(ann, "push", "-q", "origin", "refs/gitcp/s/job/main:refs/gitcp/s/job/more")
    git(ann, "push", "-q", "-f", "origin", "refs/gitcp/s/job/main")
    git(ann, "push", "-q", "origin", ":refs/gitcp/s/job/more")
    invoke(bob, "pull")
    said = fails(bob, 3, "undo", "--effects", "--to", "job:1", "--yes")
    assert "does not undo them without --trust" in said
    assert not (bob / ".envrc").exists()


def test_what_was_recorded_elsewhere_gets_no_seal_by_going_on_here(ann, bob):
    """Bob retries an interrupted step: its intent is his own by then."""
    shared(ann, bob)
    tip = page(
        ann,
        intent(effect="local", before="f" * 12, policy="retry"),
        parent=git_line(ann, "rev-parse", LEDGER),
        first=last(ann) + 1,
    )
    there(ann, tip)
    ok(bob, "pull")
    run = gitcp.open(bob).session("job")
    run.step("evil", lambda: (bob / "mine").write_text("x"), effect="local")
    shown = ok(bob, "steps", "show", "evil")["step"]
    assert not shown["foreign"]
    assert shown["before"] != "f" * 12


def test_who_answers_elsewhere_is_believed_and_marked(ann, bob):
    """What another clone recorded is a report: its results are given, not acted upon."""
    shared(ann, bob)
    run = gitcp.open(bob).session("job")

    def load() -> int:
        pytest.fail("it is done")

    assert run.step("load", load) == 1
    found = ok(bob, "steps")["steps"]
    assert [(one["name"], one["foreign"]) for one in found] == [("load", True)]
    run.step("mine", lambda: 2)
    assert not ok(bob, "steps", "show", "mine")["step"]["foreign"]
    # And pushed and pulled back it is still one's own.
    ok(bob, "push")
    ok(ann, "pull")
    assert not ok(ann, "steps", "show", "load")["step"]["foreign"]


@pytest.mark.parametrize("forged", ["inline", "in-the-tree", "both"])
@pytest.mark.parametrize("size", [10, 20_000])
def test_a_copy_of_ones_own_result_with_another_value_is_not_ones_own(
    ann, bob, size, forged
):
    """Who may push has Bob's own seal, but not for the value they would like to give."""
    run = gitcp.open(bob).session("job")
    run.save()
    kept = run.step("load", lambda: "a" * size)
    ok(bob, "push")
    ok(ann, "pull")
    tip = git_line(ann, "rev-parse", LEDGER)
    raw = git(ann, "cat-file", "commit", tip)
    mine = records.records_of(parse_commit(raw, new_form().size), "here")[-1]
    assert mine.kind == records.RESULT
    text = b'"' + b"b" * size + b'"'
    at, root = last(ann) + 1, None
    changed = msgspec.structs.replace(mine, n=at, value=Raw(text), size=0)
    if forged != "inline":
        blob = git(ann, "hash-object", "-w", "--stdin", input=text).decode().strip()
        entry = f"100644 blob {blob}\t{at}.json\n".encode()
        root = bytes.fromhex(git(ann, "mktree", input=entry).decode())
        value = mine.value if forged == "both" else UNSET
        changed = msgspec.structs.replace(changed, value=value, size=len(text))
    there(ann, page(ann, changed, parent=tip, tree=root))
    invoke(bob, "pull")
    shown = ok(bob, "steps", "show", "load")["step"]
    again = gitcp.open(bob).session("job")
    if not shown["foreign"]:
        # The pull refused the page.
        assert git_line(bob, "rev-parse", LEDGER) == tip
        assert again.step("load", lambda: "c", elsewhere=False) == kept
        return
    with pytest.raises(UsageError, match="elsewhere"):
        again.step("load", lambda: "c", elsewhere=False)


def test_ones_own_step_counts_in_its_own_session_only(ann, bob):
    """The same step may have been answered otherwise there."""
    for name in ("job", "other"):
        gitcp.open(bob).session(name).save()
    gitcp.open(bob).session("job").step("sure", lambda: True)
    ok(bob, "push")
    ok(ann, "pull")
    raw = git(ann, "cat-file", "commit", LEDGER)
    moved = raw.replace(b"Gitcp-Ledger: job\n", b"Gitcp-Ledger: other\n")
    assert moved != raw
    first = raw_page(
        ann,
        git(ann, "cat-file", "commit", f"{LEDGER}^").replace(
            b"Gitcp-Ledger: job\n", b"Gitcp-Ledger: other\n"
        ),
    )
    moved = moved.replace(
        git_line(ann, "rev-parse", f"{LEDGER}^").encode(), first.encode()
    )
    there(ann, raw_page(ann, moved), "other")
    ok(bob, "pull")
    assert not ok(bob, "steps", "show", "sure", "-s", "job")["step"]["foreign"]
    assert ok(bob, "steps", "show", "sure", "-s", "other")["step"]["foreign"]


def test_ones_own_result_counts_in_its_own_place_only(ann, bob):
    """Bob undid the step: a copy of its result does not make it done again."""
    run = gitcp.open(bob).session("job")
    run.save()
    run.step("pay", lambda: 1, effect="reversible", undo=("true",))
    ok(bob, "undo", "--effects", "--to", "job:1", "--yes")
    ok(bob, "push")
    ok(ann, "pull")
    tip = git_line(ann, "rev-parse", LEDGER)
    raw = git(ann, "cat-file", "commit", f"{tip}~2")
    mine = records.records_of(parse_commit(raw, new_form().size), "here")[-1]
    assert mine.kind == records.RESULT
    copy = msgspec.structs.replace(mine, n=0)
    there(ann, page(ann, copy, parent=tip, first=last(ann) + 1))
    ok(bob, "pull")
    shown = ok(bob, "steps", "show", "pay")["step"]
    assert (shown["state"], shown["foreign"]) == ("done", True)


@pytest.mark.parametrize("size", [10, 20_000])
def test_ones_own_result_stays_ones_own_on_its_way_back(ann, bob, size):
    run = gitcp.open(bob).session("job")
    run.save()
    kept = run.step("load", lambda: "a" * size)
    ok(bob, "push")
    ok(ann, "pull")
    ok(ann, "switch", "job", "--restore", "--yes")
    gitcp.open(ann).session("job").step("more", lambda: 1)
    ok(ann, "push")
    ok(bob, "pull")
    assert not ok(bob, "steps", "show", "load")["step"]["foreign"]
    again = gitcp.open(bob).session("job")
    assert again.step("load", lambda: "c", elsewhere=False) == kept


# --- what is not a ledger, or not all of it -------------------------------------------------


def test_a_ledger_that_is_not_sound_stays_out(ann, bob):
    session = shared(ann, bob)
    session.save(note="news", messages=[{"role": "user", "content": "x"}])
    ok(ann, "push")
    good = git_line(ann, "rev-parse", LEDGER)
    n = last(ann)
    raw = git(ann, "cat-file", "commit", good)
    blob = git(ann, "hash-object", "-w", "--stdin", input=b"no json").decode().strip()
    tree = git(ann, "mktree", input=f"100644 blob {blob}\t{n + 1}.json\n".encode())
    link = git(ann, "mktree", input=f"120000 blob {blob}\t{n + 1}.json\n".encode())
    values = {
        name: bytes.fromhex(oid.decode().strip())
        for name, oid in (("file", tree), ("link", link))
    }
    back = Record(0, AT, records.BACK, "main", of="main", upto=n + 5)
    other = Record(0, AT, records.BACK, "main", of="main", upto=1, ledger="ab" * 20)
    deep = (
        b'{"n":%d,"at":"2026-11-21T12:00:00Z","kind":"result","branch":"main","id":"x","value":%b}'
        % (
            n + 1,
            b"[" * 99_999 + b"]" * 99_999,
        )
    )
    long = (
        b'{"n":%d,"at":"2026-11-21T12:00:00Z","kind":"intent","branch":"\\ud800","id":"x"}'
        % (n + 1)
    )
    line = records.encode_record(Record(n + 1, AT, records.KEPT, "main", id="0" * 12))

    def with_line(new: bytes) -> str:
        made = records.encode_ledger_commit(
            empty(ann), bytes.fromhex(good), 0, "job", [records.decode_record(line, "")]
        )
        return raw_page(ann, made.replace(line.rstrip(b"\n"), new))

    def after(*found: Record, **more: Any) -> str:
        return page(ann, *found, **{"parent": good, "first": n + 1, **more})

    known = str(ok(ann, "steps")["steps"][0]["id"])
    unknown = "f" * 12
    named = Record(0, AT, records.INTENT, "x" * 2000, id="1" * 12)
    alone = Record(0, AT, records.JOINED, "")
    cases = {
        "a gap": after(intent(), first=n + 2),
        "a number twice": after(intent(), first=n),
        "no beginning": after(result(id=unknown)),
        "out of order": after(result(id=unknown), intent(id=unknown)),
        "another session": after(intent(), session="other"),
        "an unknown kind": with_line(line.rstrip(b"\n").replace(b"kept", b"later")),
        "a day that no year has": after(result(id=known, at="2026-02-30T00:00:00Z")),
        "nested too deep": with_line(deep),
        "half a character": with_line(long),
        "bad UTF-8": with_line(line.rstrip(b"\n").replace(b"main", b"\xff")),
        "not as it is written": with_line(line.rstrip(b"\n").replace(b'","', b'", "')),
        "no record": with_line(b"hello"),
        "a newer format": raw_page(
            ann, raw.replace(b"Gitcp-Version: 1", b"Gitcp-Version: 2")
        ),
        "another last": raw_page(ann, raw.replace(b"Gitcp-Last: ", b"Gitcp-Last: 1")),
        "a join of nothing": after(intent(), joins=good),
        "a join without one": after(alone),
        "a value that is none": after(intent(), tree=values["file"]),
        "a value that is a link": after(result(id=known, size=7), tree=values["link"]),
        "a value that is not JSON": after(
            result(id=known, size=7), tree=values["file"]
        ),
        "back to what is later": after(back),
        "back to another line": after(other),
        "a branch without a name": after(named),
        "a checkpoint": git_line(ann, "rev-parse", "refs/gitcp/s/job/main"),
        "a commit": git_line(ann, "rev-parse", "HEAD"),
        "a blob": blob,
        "on a commit": page(ann, intent(), parent=git_line(ann, "rev-parse", "HEAD")),
    }
    before = refs(bob)
    for what, tip in cases.items():
        there(ann, tip)
        done = invoke(bob, "pull")
        said = done.stderr.decode("utf-8", "backslashreplace")
        assert done.returncode in {3, 15, 16, 21}, (what, done.returncode, said)
        assert "Traceback" not in said, what
        # Neither the ledger nor the branch whose steps it would tell of.
        assert refs(bob) == before, what
    there(ann, good)
    ok(bob, "pull")
    assert refs(bob) != before
    assert ok(bob, "verify")["ok"]


@pytest.mark.parametrize("how", ["rewound", "beheaded", "without an end", "gone"])
def test_what_a_remote_leaves_out_is_done_here_all_the_same(ann, hub, bob, how):
    session = shared(ann, bob)
    session.step("mail", lambda: "sent")
    session.save(note="after the mail")
    ok(ann, "push")
    ok(bob, "pull")
    tip = git_line(ann, "rev-parse", LEDGER)
    evil = {
        "rewound": git_line(ann, "rev-parse", f"{LEDGER}~2"),
        "beheaded": page(ann, intent(step="other"), result()),
        "without an end": page(
            ann,
            intent(),
            parent=git_line(ann, "rev-parse", f"{tip}~1"),
            first=last(ann),
        ),
    }
    if how == "gone":
        git(hub, "update-ref", "-d", LEDGER)
    else:
        there(ann, evil[how])
    invoke(bob, "pull")
    run = gitcp.open(bob).session("job")
    for name in ("load", "mail"):
        run.step(name, lambda: pytest.fail("it is done"))
    git(bob, "merge-base", "--is-ancestor", tip, LEDGER)
    assert ok(bob, "verify")["ok"]


# --- what is printed ---------------------------------------------------------------

AT = "2026-11-21T12:00:00Z"
EVIL = "\x1b]52;c;Y2FuYXJ5\x07\x1b[2J\rback\x9b31m\x7f\u202etxt\u200b"


def test_what_steps_say_does_not_steer_a_terminal(ann, bob):
    shared(ann, bob)
    evil = intent(
        step=f"s{EVIL}",
        scope=EVIL,
        key=EVIL,
        reads=(EVIL,),
        writes=(EVIL,),
        command=(EVIL, EVIL),
        undo=Undo(command=(EVIL,), function=EVIL),
        policy=EVIL,
    )
    done = result(error=EVIL, value=Raw(json.dumps(EVIL).encode()))
    tip = page(
        ann, evil, done, parent=git_line(ann, "rev-parse", LEDGER), first=last(ann) + 1
    )
    there(ann, tip)
    ok(bob, "pull")
    for args in (
        ["steps"],
        ["steps", "show", "0123456789ab"],
        ["steps", "affected", "0123456789ab"],
        ["steps", "repair", "0123456789ab", "--yes"],
        ["undo", "--effects", "--to", "job:1", "--dry-run"],
        ["undo", "--effects", "--to", "job:1", "--yes"],
        ["restore", "job:1", "--dry-run"],
        ["restore", "job:1", "--yes"],
        ["push"],
        ["verify"],
    ):
        said = invoke(bob, *args)
        text = (said.stdout + said.stderr).decode("utf-8", "backslashreplace")
        found = STEERING.search(text)
        assert found is None, (args, text[max(0, found.start() - 80) :])


# --- a step of one's own that is done ----------------------------------------------------


def about(kind: str, **more: Any) -> Record:
    return Record(0, "2026-01-01T00:00:00.000Z", kind, "main", **more)


OTHER = "f" * 12
WAYS = ["failed", "undone", "again", "did-not", "began", "weaker", "other", "joined"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("unknown", ["ask", "retry"])
def test_ones_own_step_does_not_run_again_because_a_stranger_says_so(
    ann, bob, way, unknown
):
    ran: list[int] = []

    def run() -> int:
        return gitcp.open(bob).session("job").step("pay", pay, unknown=unknown)

    def pay() -> int:
        ran.append(1)
        return len(ran)

    gitcp.open(bob).session("job").save()
    assert run() == 1
    ok(bob, "push")
    ok(ann, "pull")
    tip, first = git_line(ann, "rev-parse", LEDGER), last(ann) + 1
    ident = ok(bob, "steps", "show", "pay")["step"]["id"]
    given = re.search(r'"input":"(\w+)"', git(ann, "log", LEDGER).decode())
    assert given is not None
    began = intent(id=ident, step="pay", attempt=2, effect="none", input=given[1])
    made = {
        "failed": [about(records.FAILED, id=ident, attempt=1)],
        "undone": [about(records.UNDONE, id=ident)],
        "again": [about(records.ANSWER, id=ident, answer="again")],
        "did-not": [about(records.ANSWER, id=ident, answer="failed")],
        "began": [began, about(records.FAILED, id=ident, attempt=2)],
        "weaker": [began, about(records.BACK, of="main", upto=0)],
        "other": [intent(id=OTHER, step="pay"), about(records.FAILED, id=OTHER)],
    }
    if way == "joined":
        early = "2025-01-01T00:00:00.000Z"
        more = intent(id=OTHER, step="pay", effect="irreversible")
        more = msgspec.structs.replace(more, at=early)
        line = page(ann, more, result(id=OTHER, value=Raw(b"7")))
        tip = page(
            ann,
            Record(0, early, records.JOINED, ""),
            parent=tip,
            joins=line,
            first=first,
        )
        made["joined"], first = [about(records.FAILED, id=OTHER)], first + 1
    there(ann, page(ann, *made[way], parent=tip, first=first))
    assert ok(bob, "pull")["ledgers"]
    with pytest.raises(gitcp.StepUnknownError, match="elsewhere") as caught:
        run()
    assert ran == [1]
    # The user may say so.
    assert "steps answer pay" in str(caught.value.hint)
    ok(bob, "steps", "answer", "pay", "--call", "1", "again")
    assert run() == 2
    assert run() == 2


def test_ones_own_step_that_a_stranger_says_failed_may_be_answered_with_its_result(
    ann, bob
):
    session = gitcp.open(bob).session("job")
    session.save()
    session.step("pay", lambda: 1)
    ok(bob, "push")
    ok(ann, "pull")
    ident = ok(bob, "steps", "show", "pay")["step"]["id"]
    failed = about(records.FAILED, id=ident, attempt=1)
    tip = git_line(ann, "rev-parse", LEDGER)
    there(ann, page(ann, failed, parent=tip, first=last(ann) + 1))
    ok(bob, "pull")
    ok(bob, "steps", "answer", "pay", "done", "--result", "1")
    assert gitcp.open(bob).session("job").step("pay", pytest.fail) == 1


def deny_the_fork(hub: Path) -> None:
    """Puts checkpoints on a branch that say it was forked before there was any step."""
    ref = "refs/gitcp/s/job/side"
    forge = Forge()
    tip = bytes.fromhex(git_line(hub, "rev-parse", ref))
    for ident, branch in (("1" * 12, "x"), ("2" * 12, "side")):
        message = trailers("job", branch, 1).replace(b"0123456789ab", ident.encode())
        tip = forge.checkpoint(
            session="job", branch=branch, parent=tip, message=message, id=ident
        )
    forge.into(hub, {ref: tip})


@pytest.mark.parametrize("way", ["failed", "other", "first", "beside", "denied"])
def test_a_step_from_before_a_fork_does_not_run_again_because_a_stranger_says_so(
    ann, hub, bob, way
):
    ran: list[int] = []

    def run() -> int:
        return gitcp.open(bob).session("job", branch="side").step("pay", pay)

    def pay() -> int:
        ran.append(1)
        return len(ran)

    session = gitcp.open(bob).session("job")
    session.save()
    session.step("pay", pay)
    session.save(note="paid")
    ok(bob, "fork", "job:last", "side")
    if way not in {"first", "beside", "denied"}:
        gitcp.open(bob).session("job", branch="side").step("more", lambda: 0)
        assert run() == 1
    ok(bob, "push")
    ok(ann, "pull")
    ident = ok(bob, "steps", "show", "pay", "-s", "job")["step"]["id"]
    made = [intent(id=OTHER, step="pay"), about(records.FAILED, id=OTHER)]
    if way == "failed":
        made = [about(records.FAILED, id=ident, attempt=1)]
    if way == "beside":
        made = [intent(id=OTHER)]
    made = [msgspec.structs.replace(one, branch="side") for one in made]
    tip = git_line(ann, "rev-parse", LEDGER)
    if way == "denied":
        deny_the_fork(hub)
        assert ok(bob, "pull")["branches"]
    else:
        there(ann, page(ann, *made, parent=tip, first=last(ann) + 1))
        assert ok(bob, "pull")["ledgers"]
    with pytest.raises(gitcp.StepUnknownError, match="elsewhere") as caught:
        run()
    assert ran == [1]
    if way in {"beside", "denied"}:
        assert "another name or key" in str(caught.value.hint)
        return
    # The user may say so.
    given = re.search(r"`gitcp (steps answer .*)`", str(caught.value.hint))
    assert given is not None
    ok(bob, *shlex.split(given[1].replace("done|failed|again", "again")))
    assert run() == 2
    assert run() == 2


def test_a_step_of_another_branch_may_run_on_one_that_was_forked_before_it(bob):
    ran: list[str] = []

    def run(branch: str) -> None:
        session = gitcp.open(bob).session("job", branch=branch)
        session.step("pay", lambda: ran.append(branch))

    session = gitcp.open(bob).session("job")
    session.save()
    ok(bob, "fork", "job:last", "side")
    run("main")
    # It is in the ledger when the next branch begins, and no step of the one below.
    gitcp.open(bob).session("job", branch="side").save(note="later")
    ok(bob, "fork", "job/side:last", "more")
    for branch in ("side", "more", "more"):
        run(branch)
    assert ran == ["main", "side", "more"]
