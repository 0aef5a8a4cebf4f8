"""Every byte that comes from elsewhere, made hostile: nothing acts, nothing steers.

Each field of each record of a session, in each form, and each field of what each client
writes, is replaced by hostile values, one at a time. The session is pulled and every
command that reads it is run. No file outside of what the command may write changes, no
command runs, no escape reaches a terminal, nothing ends in a traceback.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import pytest

from gitcp.cli import main
from gitcp.names import encode
from tests.support.forge import Forge, trailers
from tests.support.gitrepo import tree_bytes
from tests.support.hostile import Mallory, Session, places, replaced, text_of, values
from tests.support.hostile_records import CLIENTS, DESCRIBED, OTHERS, ROWS, TIME
from tests.support.inprocess import invoke, ok
from tests.support.terminal import without_progress

RECORD: dict[str, Any] = {
    "id": "0123456789ab",
    "session": "x",
    "branch": "main",
    "seq": 1,
    "format": 1,
    "created": TIME,
    "trigger": "manual",
    "note": "n",
    "label": "l",
    "author": "a",
    "base": {"commit": "0" * 40, "branch": "main", "operation": "merge"},
    "position": {"a": 1},
    "metadata": {"phase": "x"},
    "files": {"tree": None, "added": 0, "modified": 0, "deleted": 0, "captured": True},
    "conversation": {
        "source": "main",
        "kind": "messages",
        "messages": 1,
        "bytes": 1,
        "segments": 1,
        "digest": "0",
        "agent_session": "x",
    },
    "decisions": {"entries": 0, "bytes": 0, "segments": 0, "digest": "0"},
    "steps": None,
    "task": "t",
    "skipped": 0,
    "restored_from": None,
    "replaced": None,
    "forked_from": None,
    "origin": {"seal": "0" * 64, "files": None, "logs": None},
    "effects": 1,
    "ledger": "0" * 40,
}
DECISION = {"kind": "decision", "text": "hi", "why": "y", "at": TIME, "paths": ["a"]}
SKIPPED = {"path": "a", "reason": "too large", "path_b64": "YQ=="}
STEP = {
    "n": 1,
    "at": TIME,
    "kind": "intent",
    "branch": "main",
    "id": "0" * 12,
    "step": "s",
    "call": "1",
    "attempt": 1,
    "effect": "irreversible",
    "policy": "ask",
    "reads": ["a"],
    "undo": {"command": ["sh", "-c", "true"], "directory": "/", "seal": "x"},
    "command": ["sh", "-c", "true"],
    "directory": "/",
    "value": {"a": 1},
    "size": 1,
}


# Every form in which a client's words are stored. Kilo has OpenCode's, VS Code OpenHands'.
CONVERSATIONS = {**CLIENTS, **ROWS, **OTHERS}


class Case(NamedTuple):
    """One field, and how a session is forged in which it is hostile."""

    what: str
    forge: Any


def cases() -> Iterator[Case]:
    """Yields every field of every form."""
    for path in places(RECORD):
        yield Case(
            f"record {path}",
            lambda m, n, raw, path=path: m.push(
                n, Session(decisions=line(DECISION)), field=(path, raw), sample=RECORD
            ),
        )
    for kind, records in CONVERSATIONS.items():
        for number, one in enumerate(records):
            for path in places(one):
                yield Case(
                    f"{kind} {number} {path}",
                    lambda m, n, raw, kind=kind, at=number, path=path: m.push(
                        n, transcript(kind, at, path, raw)
                    ),
                )
        yield Case(
            f"{kind} line",
            lambda m, n, raw, kind=kind, said=records: m.push(
                n, Session(kind, (raw, *map(packed, said)))
            ),
        )
    for path in places(DESCRIBED):
        yield Case(
            f"described {path}",
            lambda m, n, raw, path=path: m.push(
                n, transcript("opencode", described=replaced(DESCRIBED, path, raw))
            ),
        )
    for path in places(DECISION):
        yield Case(
            f"decision {path}",
            lambda m, n, raw, path=path: m.push(
                n, Session(decisions=replaced(DECISION, path, raw) + b"\n")
            ),
        )
    for name in ("name", "kind", "messages", "bytes", "segments", "digest", "format"):
        yield Case(
            f"meta {name}",
            lambda m, n, raw, name=name: m.push(n, Session(), meta=(name, raw)),
        )
    for path in places(SKIPPED):
        yield Case(
            f"skipped {path}",
            lambda m, n, raw, path=path: m.push(
                n,
                Session(own={"skipped.jsonl": replaced(SKIPPED, path, raw) + b"\n"}),
            ),
        )
    yield Case(
        "empty directory",
        lambda m, n, raw: m.push(
            n, Session(own={"empty-dirs.txt": text_of(raw) + b"\0"})
        ),
    )
    yield Case(
        "summary",
        lambda m, n, raw: m.push(n, Session(own={"summary.md": text_of(raw)})),
    )
    for name in ("Checkpoint", "Session", "Branch", "Seq", "Trigger", "Base", "Label"):
        yield Case(
            f"trailer {name}",
            lambda m, n, raw, name=name: m.push(
                n, Session(), trailer=(name, text_of(raw))
            ),
        )
    for path in places(STEP):
        yield Case(
            f"step {path}", lambda m, n, raw, path=path: stepped(m, n, path, raw)
        )
    yield Case(
        "ledger last",
        lambda m, n, raw: (
            m.push(n, Session()),
            m.ledger(n, [packed(STEP)], text_of(raw)),
        ),
    )


def packed(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def line(value: Any) -> bytes:
    return packed(value) + b"\n"


def transcript(
    kind: str,
    at: int = -1,
    path: tuple[Any, ...] = (),
    raw: bytes = b"",
    described: bytes | None = None,
) -> Session:
    records = [
        replaced(one, path, raw) if number == at else packed(one)
        for number, one in enumerate(CONVERSATIONS[kind])
    ]
    beside = {}
    if kind == "opencode":
        beside["session.json"] = described or packed(DESCRIBED)
    return Session(kind, tuple(records), beside, files={"a.py": b"theirs\n"})


def stepped(mallory: Mallory, name: str, path: tuple[Any, ...], raw: bytes) -> None:
    mallory.push(name, Session())
    mallory.ledger(name, [replaced(STEP, path, raw)])


# --- what is run, and what must hold ---------------------------------------------------

ONCE = (
    ("status",),
    ("du",),
    ("log", "--all"),
    ("sessions",),
    ("remote-sessions",),
    ("doctor",),
    ("search", "--all", "hi"),
)
EACH = (
    ("show", "{}:last"),
    ("log", "-s", "{}"),
    ("diff", "{}:last", "--stat"),
    ("messages", "{}:last", "--format", "markdown"),
    ("context", "{}:last"),
    ("decisions", "{}:last"),
    ("files", "{}:last"),
    ("steps", "-s", "{}"),
    ("view", "{}:last", "-o", ".git/page"),
    ("restore", "{}:last", "--dry-run"),
    ("restore", "{}:last", "--yes"),
    ("resume", "{}:last"),
)
TRUSTED = (
    ("restore", "{}:last", "--yes", "--trust"),
    ("resume", "{}:last", "--trust"),
)
# Where clients find conversations; nothing that is there may change.
ROOMS = re.compile(
    rb"\.(claude(/projects(/.*)?)?|codex(/sessions(/.*)?)?|gemini(/.*)?"
    rb"|copilot(/session-state(/.*)?)?|cline(/data(/sessions(/.*)?)?)?"
    rb"|pi(/agent(/sessions(/.*)?)?)?|qwen(/projects(/.*)?)?"
    rb"|local(/(share|state)(/(opencode|gitcp)(/.*)?)?)?|cache(/.*)?)"
)
# What a restore may change; the rest of the project's files stay, and there come no more.
PROJECT = frozenset({b"a.py", b"b.bin"})
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# These print a conversation as it is.
_QUOTES = frozenset({"messages", "context"})
_STATUSES = {0, 1, 2, 3, 13, 14, 15, 16, 18, 19, 20, 22, 23, 25}


class Screen(io.TextIOWrapper):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def at_a_terminal(cwd: Path, *args: str) -> tuple[int, str]:
    """Runs a command in this process; its output goes to a terminal."""
    buffers = [io.BytesIO(), io.BytesIO()]
    out, err = (
        Screen(one, encoding="utf-8", errors="surrogateescape") for one in buffers
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(cwd))
        stack.enter_context(mock.patch.dict(os.environ, {"NO_COLOR": "1"}))
        stack.enter_context(mock.patch.object(sys, "stdin", io.StringIO()))
        stack.enter_context(mock.patch.object(sys, "stdout", out))
        stack.enter_context(mock.patch.object(sys, "stderr", err))
        status = main(list(args))
    out.flush()
    err.flush()
    text = b"".join(one.getvalue() for one in buffers).decode("utf-8", "replace")
    return status, without_progress(text)


class Scene:
    """Bob's home, his clone, what lies around them; and what must be as it was."""

    def __init__(self, home: Path, bob: Path, canary: Path) -> None:
        self.home, self.bob, self.canary = home, bob, canary
        for name in (
            ".claude/settings.json",
            ".codex/config.toml",
            ".ssh/id",
            ".bashrc",
        ):
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"mine\n")
        self.around = bob.parent / "around"
        self.around.mkdir()
        (self.around / "x").write_bytes(b"mine\n")
        ok(bob, "save", "-s", "mine")
        self.before = self.looked()

    def looked(self) -> dict[str, Any]:
        git = self.bob / ".git"
        return {
            "home": tree_bytes(self.home),
            "around": tree_bytes(self.around),
            "beside": sorted(os.listdir(self.bob.parent)),
            "hooks": tree_bytes(git / "hooks"),
            "config": (git / "config").read_bytes(),
            "head": (git / "HEAD").read_bytes(),
            "info": tree_bytes(git / "info"),
            "worktrees": (git / "worktrees").exists(),
            "project": {
                name: node
                for name, node in tree_bytes(self.bob).items()
                if name not in PROJECT and node[0] != "dir"
            },
        }

    def same(self, what: str, *, trusted: bool = False) -> None:
        now = self.looked()
        if trusted:
            # New files in clients' own rooms, and nothing else.
            old = self.before["home"]
            home = now["home"]
            assert all(home.get(name) == one for name, one in old.items()), what
            assert all(ROOMS.fullmatch(name) for name in home.keys() - old.keys()), what
            self.before["home"] = home
        for name, one in now.items():
            assert one == self.before[name], (what, name)
        assert not self.canary.exists(), what

    def run(self, what: str, *args: str) -> None:
        status, text = at_a_terminal(self.bob, *args)
        assert status in _STATUSES, (what, args, status, text[-2000:])
        assert "Traceback" not in text, (what, args, text[-2000:])
        found = STEERS.search(text)
        assert found is None, (what, args, text[max(0, found.start() - 200) :][:400])
        if args[0] not in _QUOTES:
            # The second line of a hostile value must not pass for a line of gitcp's own.
            assert "\nbreak" not in text, (what, args, text)


def sweep(scene: Scene, mallory: Mallory, chosen: list[tuple[Case, bytes]]) -> int:
    """Forges, pulls and reads; returns how many sessions were imported."""
    names = {}
    for number, (case, raw) in enumerate(chosen):
        name = f"e{number:05d}"
        names[name] = f"{case.what} = {raw[:60]!r}"
        case.forge(mallory, name, raw)
    scene.run("pull", "pull")
    scene.same("pull")
    for args in ONCE:
        scene.run("all", *args)
    listed = invoke(scene.bob, "sessions", "--json")
    assert b"Traceback" not in listed.stderr
    found = {one["name"] for one in json.loads(listed.stdout)["sessions"]} & set(names)
    for name in sorted(found):
        for command in EACH:
            scene.run(names[name], *(word.format(name) for word in command))
        scene.same(names[name])
        for command in TRUSTED:
            scene.run(names[name], *(word.format(name) for word in command))
        scene.same(names[name], trusted=True)
    return len(found)


@pytest.fixture
def scene(sealed, bob, tmp_path) -> Scene:
    return Scene(sealed, bob, tmp_path / "canary")


def test_a_sample_of_all_fields_made_hostile(scene, hub):
    """Each field of the rarest kind is in the whole sweep; here, one in many."""
    everything = list(cases())
    raws = values(scene.canary)
    chosen = [
        (case, raws[(7 * number) % len(raws)])
        for number, case in enumerate(everything[::14])
    ]
    assert len(chosen) > 10
    # Those that are imported, and handed to a client, are what the test is about.
    assert sweep(scene, Mallory(hub), chosen) > len(chosen) / 4
    assert len(scene.before["home"]) > 12


NAMES = ("a\nbreak", "\x1b]52;c;QQ\x07", "\u202ex", "--trust", "../../../x", "\0", "*")


def test_names_of_sessions_and_branches_are_only_shown(scene, hub):
    forge = Forge()
    refs = {}
    for name in NAMES:
        part = encode(name)
        for session, branch in ((name, "main"), ("ok", name)):
            message = trailers(encode(session), encode(branch))
            refs[f"refs/gitcp/s/{encode(session)}/{encode(branch)}"] = forge.checkpoint(
                session=session, branch=branch, message=message
            )
        assert part not in {"", ".", ".."}
    forge.into(hub, refs)
    scene.run("pull", "pull")
    assert len(ok(scene.bob, "sessions")["sessions"]) == len(NAMES) + 2
    for args in ONCE:
        scene.run("names", *args)
    for name in NAMES:
        for command in EACH:
            if "\0" not in name:
                scene.run(name, *(word.format(f"{name}/main") for word in command))
    scene.same("names")


TIMES = (
    *("0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z"),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
    *("2026-02-30T00:00:00.000Z", "2026-01-01T00:00:60.000Z", "now"),
)
NUMBERS = (b"9" * 400, b"-1" + b"0" * 400, b"1e308", b"1e16", b"-1e16")
TIMED = ("record ('created',)", "decision ('at',)")
NUMBERED = "opencode 0 ('info', 'time', 'created')"


@pytest.fixture(params=["America/New_York", "Asia/Tokyo"])
def _elsewhere(request, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("_elsewhere")
def test_a_time_that_no_calendar_has_stops_no_command(scene, hub):
    everything = list(cases())
    texts = [case for case in everything if case.what in TIMED]
    texts += [case for case in everything if case.what.endswith(" ('timestamp',)")][:1]
    numbers = [case for case in everything if case.what == NUMBERED]
    assert (len(texts), len(numbers)) == (3, 1)
    chosen = [(case, packed(one)) for case in texts for one in TIMES]
    chosen += [(case, raw) for case in numbers for raw in NUMBERS]
    # A record with such a time is refused; the others are imported.
    assert sweep(scene, Mallory(hub), chosen) >= len(TIMES) + len(NUMBERS)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(92))
def test_all_fields_made_hostile(scene, hub, part):
    raws = values(scene.canary)
    chosen = [
        (case, raw)
        for number, case in enumerate(cases())
        for at, raw in enumerate(raws)
        if (number + at) % 92 == part
    ]
    assert sweep(scene, Mallory(hub), chosen) > len(chosen) / 4
