"""Conversations that clients have on disk become sessions without files."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sqlite3
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from gitcp.agents import import_history
from gitcp.clients import claude_code
from gitcp.project.workspace import open_workspace
from tests.support.agent import Agent
from tests.support.clones import clone, make_hub
from tests.support.gitrepo import git, tree_bytes
from tests.support.inprocess import fails, invoke, ok

CLAUDE = "11111111-1111-4111-8111-{:012}"
CODEX = "01a1fa42-6e71-76b3-b1ca-aad32efeb542"


def line(**record: Any) -> bytes:
    return json.dumps(record).encode() + b"\n"


def said(top: Path, day: int, asked: str, answered: str) -> bytes:
    """A transcript of one turn, as Claude Code writes it."""
    common = {"cwd": str(top), "timestamp": f"2026-03-{day:02}T10:00:00.000Z"}
    return b"".join(
        line(
            type=role,
            uuid=f"{role}-{day}-{text}",
            message={"role": role, "content": [{"type": "text", "text": text}]},
            **common,
        )
        for role, text in (("user", asked), ("assistant", answered))
    )


class Home:
    """The folders of the clients, below HOME."""

    def __init__(self, home: Path, top: Path) -> None:
        self.top = top
        self.claude = home / ".claude" / "projects" / claude_code.slug(str(top))
        self.codex = home / ".codex" / "sessions" / "2026" / "03" / "02"
        self.gemini = home / ".gemini" / "tmp" / "p" / "chats"
        for folder in (self.claude, self.codex, self.gemini):
            folder.mkdir(parents=True)

    def add(self, number: int, content: bytes | None = None) -> Path:
        path = self.claude / f"{CLAUDE.format(number)}.jsonl"
        if content is None:
            content = said(self.top, number, f"ask {number}", f"answer {number}")
        path.write_bytes(content)
        return path

    def add_codex(self) -> Path:
        path = self.codex / f"rollout-2026-03-02T09-00-00-{CODEX}.jsonl"
        payload = {"id": CODEX, "cwd": str(self.top), "source": "exec"}
        at = "2026-03-02T09:00:00.000Z"
        spoken = [
            line(
                timestamp=at,
                type="response_item",
                payload={
                    "type": "message",
                    "role": role,
                    "content": [{"type": kind, "text": text}],
                },
            )
            for role, kind, text in (
                ("user", "input_text", "zebra"),
                ("assistant", "output_text", "striped"),
            )
        ]
        meta = line(timestamp=at, type="session_meta", payload=payload)
        path.write_bytes(meta + b"".join(spoken))
        return path

    def add_gemini(self) -> Path:
        path = self.gemini / "session-2026-03-04T09-00-059961f5.jsonl"
        header = {
            "sessionId": "059961f5",
            "projectHash": sha256(os.fsencode(self.top)).hexdigest(),
            "kind": "main",
        }
        at = "2026-03-04T09:00:00.000Z"
        turn = (("u", "user", "giraffe"), ("g", "gemini", "tall"))
        path.write_bytes(
            line(**header)
            + b"".join(
                line(id=ident, type=kind, timestamp=at, content=text)
                for ident, kind, text in turn
            )
        )
        return path


@pytest.fixture
def home(repo: Path, sealed: Path) -> Home:
    return Home(sealed, repo)


def refs(repo: Path) -> bytes:
    return git(repo, "for-each-ref", "refs/gitcp")


def test_each_client_s_conversations_become_sessions_once(repo, home):
    ok(repo, "save", "-m", "own", "--allow-empty")
    home.add(1)
    home.add(3)
    home.add_codex()
    home.add_gemini()
    before = tree_bytes(repo)
    done = ok(repo, "import-history")
    assert done["left"] == done["noted"] == []
    made = {one["checkpoint"]["session"] for one in done["conversations"]}
    assert made == {
        "claude-code-11111111",
        f"claude-code-{CLAUDE.format(3)}",
        "codex-2efeb542",
        "gemini-059961f5",
    }
    tips = refs(repo)
    again = ok(repo, "import-history")
    assert (again["conversations"], again["known"]) == ([], 4)
    assert refs(repo) == tips
    assert tree_bytes(repo) == before
    assert ok(repo, "verify")["ok"]
    assert git(repo, "fsck", "--strict", "--no-dangling") == b""


def test_they_are_listed_where_asked_for_by_the_time_they_happened(repo, home):
    home.add(3)
    home.add(1)
    home.add_codex()
    own = ok(repo, "save", "-m", "own", "--allow-empty")["checkpoint"]
    ok(repo, "import-history")
    found = []
    for options in ([], ["--all"]):
        found = ok(repo, "log", *options)["checkpoints"]
        assert [one["note"] for one in found] == ["own"]
    for options in (["--imported"], ["--imported", "--all"]):
        found = ok(repo, "log", *options)["checkpoints"]
        notes = [one["note"] for one in found]
        assert notes == ["own", "ask 3", "zebra", "ask 1"]
    assert found[1]["base"] is None
    # Neither a time nor `last` means one of them, and no briefing speaks of them.
    assert ok(repo, "show", "last")["checkpoint"]["id"] == own["id"]
    fails(repo, 13, "show", "2026-03-20")
    assert "ask" not in invoke(repo, "context").stdout.decode()
    (hit,) = ok(repo, "search", "striped")["hits"]
    assert hit["session"] == "codex-2efeb542"


def test_restoring_one_touches_no_file(repo, home):
    home.add(1)
    ok(repo, "import-history")
    (repo / "work").write_bytes(b"mine")
    before = tree_bytes(repo)
    done = ok(repo, "restore", "claude-code-11111111:last", "--yes")
    assert done["plan"] == []
    assert tree_bytes(repo) == before
    new = done["resume"].split()[-1]
    assert (home.claude / f"{new}.jsonl").read_bytes() == said(
        repo, 1, "ask 1", "answer 1"
    )
    assert "no files" in fails(
        repo, 2, "restore", "claude-code-11111111:1", "work", "-y"
    )


def test_a_transcript_that_grew_goes_on_where_it_was(repo, home):
    path = home.add(1)
    ok(repo, "import-history")
    more = said(repo, 2, "more", "yes")
    # Its client is writing the last line just now.
    path.write_bytes(path.read_bytes() + more + b'{"type":"user","mess')
    (done,) = ok(repo, "import-history")["conversations"]
    assert done["result"] == "fast-forward"
    assert (done["checkpoint"]["seq"], done["checkpoint"]["note"]) == (2, "ask 1")
    stored = invoke(repo, "messages", "claude-code-11111111:last", "--format", "jsonl")
    assert stored.stdout == said(repo, 1, "ask 1", "answer 1") + more
    assert ok(repo, "import-history")["conversations"] == []


def test_what_hooks_have_saved_is_theirs_and_they_continue_what_was_imported(
    repo, home, sealed
):
    agent = Agent(repo, sealed / ".claude", CLAUDE.format(7))
    agent.transcript = home.claude / f"{agent.ident}.jsonl"
    agent.spoke("user", "hello")
    agent.spoke("assistant", "hi")
    ok(repo, "import-history")
    agent.spoke("user", "go on")
    agent.spoke("assistant", "done")
    made = agent.hook("Stop", last_assistant_message="done")
    assert made is not None
    assert (made.session, made.seq) == ("claude-code-11111111", 2)
    assert made.holds_files
    agent.spoke("user", "unsaved")
    done = ok(repo, "import-history")
    assert (done["conversations"], done["known"]) == ([], 1)


@pytest.mark.parametrize(
    "between",
    [
        ("save", "-s", "claude-code-11111111", "--decision", "keep it"),
        ("fork", "1", "try", "--yes"),
        ("restore", "1", "--yes"),
        ("resume", "1", "--with", "codex"),
    ],
    ids=lambda args: args[0],
)
def test_what_grows_is_imported_whatever_was_done_with_its_session(repo, home, between):
    path = home.add(1)
    ok(repo, "import-history")
    ok(repo, *between)
    done = ok(repo, "import-history", "claude-code")
    assert done["conversations"] == []
    path.write_bytes(path.read_bytes() + said(repo, 2, "more", "yes"))
    (grown,) = ok(repo, "import-history", "claude-code")["conversations"]
    stored = invoke(
        repo, "messages", grown["checkpoint"]["id"], "--format", "jsonl"
    ).stdout
    assert stored == path.read_bytes()
    assert ok(repo, "import-history", "claude-code")["conversations"] == []


def test_what_a_copy_has_taken_over_is_not_imported_twice(repo, home, sealed):
    path = home.add(1)
    ok(repo, "import-history")
    copy = ok(repo, "restore", "1", "--yes")["resume"].split()[-1]
    agent = Agent(repo, sealed / ".claude", copy)
    agent.transcript = home.claude / f"{copy}.jsonl"
    agent.spoke("user", "in the copy")
    agent.spoke("assistant", "done")
    agent.hook("Stop", last_assistant_message="done")
    done = ok(repo, "import-history")
    assert (done["conversations"], done["known"]) == ([], 2)
    path.write_bytes(path.read_bytes() + said(repo, 2, "more", "yes"))
    (grown,) = ok(repo, "import-history")["conversations"]
    assert grown["checkpoint"]["conversation"]["messages"] == 4


def test_hostile_transcripts_end_in_a_line_each(repo, home, monkeypatch):
    monkeypatch.setattr(import_history, "_LARGEST", 60_000)
    monkeypatch.setattr(import_history, "_LONGEST_LINE", 50_000)
    home.add(1)
    (home.claude / f"{CLAUDE.format(2)}.jsonl").symlink_to("/etc/passwd")
    os.mkfifo(home.claude / f"{CLAUDE.format(3)}.jsonl")
    home.add(4, b"x" * 60_001)
    home.add(5, b'{"type":"user","text":"' + b"x" * 55_000 + b'"}\n')
    home.add(6, b"no JSON\n[1]\n")
    home.add(
        8, said(repo, 8, "kept", "all the same") + b"{broken\n" + b"[" * 5000 + b"\n"
    )
    home.add(9, b"")
    done = invoke(repo, "import-history", "--json")
    assert done.returncode == 3, done
    found = json.loads(done.stdout)
    assert [one["checkpoint"]["note"] for one in found["conversations"]] == [
        "ask 1",
        "kept",
    ]
    reasons = sorted(each.rpartition(": ")[2] for each in found["left"])
    assert reasons == [
        "has a line of more than 0 MiB",
        "is larger than 0 MiB",
        "no message can be read; 2 lines are not JSON",
        "not a regular file",
        "not a regular file",
    ]
    (noted,) = found["noted"]
    assert "2 of its lines are not JSON objects" in noted


def test_only_this_project_s_are_imported(repo, home, tmp_path):
    # `/p` and a neighbour `/p-q`; a folder below it; a repository inside of it.
    neighbour = repo.parent / f"{repo.name}-q"
    inner = repo / "inner"
    (inner / ".git").mkdir(parents=True)
    below = repo / "below"
    below.mkdir()
    for number, top in enumerate((neighbour, inner, below), 1):
        top.mkdir(exist_ok=True)
        folder = home.claude.parent / claude_code.slug(str(top))
        folder.mkdir(exist_ok=True)
        path = folder / f"{number}2345678-1111-4111-8111-111111111111.jsonl"
        path.write_bytes(said(top, number, f"in {top.name}", "yes"))
    elsewhere = home.add_codex()
    elsewhere.write_bytes(
        elsewhere.read_bytes().replace(os.fsencode(repo), os.fsencode(neighbour))
    )
    found = ok(repo, "import-history")["conversations"]
    assert [one["checkpoint"]["note"] for one in found] == ["in below"]


def test_some_agents_and_times_can_be_named(repo, home):
    for path in (home.add(1), home.add(3)):
        os.utime(path)
    home.add_codex()
    found = ok(repo, "import-history", "claude-code", "--since", "2026-03-02 00:00 UTC")
    notes = [one["checkpoint"]["note"] for one in found["conversations"]]
    assert notes == ["ask 3"]
    assert "no form that gitcp can read" in fails(repo, 2, "import-history", "cursor")


def test_they_leave_only_if_they_are_named_and_never_with_a_secret(tmp_path, sealed):
    hub = make_hub(tmp_path)
    ann = clone(hub, "ann")
    home = Home(sealed, ann)
    home.add(1)
    key = "AKIA" + "QYLPMN5HHHFPZAM2"
    home.add(2, said(ann, 2, "use this", f"the key is {key}"))
    ok(ann, "save", "-m", "own", "--allow-empty")
    ok(ann, "import-history")
    sent = {one["session"] for one in ok(ann, "push")["branches"]}
    assert sent == {"main"}
    assert (
        b"imported sessions are pushed only if you name them: 2"
        in invoke(ann, "push").stderr
    )
    fails(ann, 24, "push", "origin", f"claude-code-{CLAUDE.format(2)}")
    (one,) = ok(ann, "push", "origin", "claude-code-11111111")["branches"]
    assert one["result"] == "created"


def test_one_that_is_gone_from_disk_stays(repo, home):
    path = home.add(1)
    ok(repo, "import-history")
    path.unlink()
    assert ok(repo, "import-history")["known"] == 0
    tip = open_workspace(repo).store.tip("claude-code-11111111", "main")
    assert tip is not None
    shutil.rmtree(home.claude)
    assert ok(repo, "import-history")["conversations"] == []


def add_opencode(home: Path, top: Path, name: str = "opencode") -> Path:
    """The client's database, with a session and one of a subagent that worked for it."""
    path = home / ".local" / "share" / name / f"{name}.db"
    path.parent.mkdir(parents=True)
    fields = (
        "id, parent_id, directory, project_id, slug, path, title, version, agent, model,"
        " permission, cost, time_created, time_updated"
    )
    database = sqlite3.connect(path)
    database.execute(f"CREATE TABLE session({fields})")
    database.execute("CREATE TABLE message(id, session_id, time_created, data)")
    database.execute("CREATE TABLE part(id, message_id, session_id, data)")
    # As Kilo's own: SQLite refuses such a file where its schema is not trusted.
    database.execute("CREATE INDEX role ON message(id, json_extract(data, '$.role'))")
    model = '{"id":"m","providerID":"p"}'
    at = 1_772_614_800_000
    for ident, parent in (("ses_one", None), ("ses_sub", "ses_one")):
        row = (ident, parent, str(top), "global", "s", "", "A title", "1", "build")
        database.execute(
            f"INSERT INTO session VALUES({', '.join('?' * 14)})",
            (*row, model, None, 0.0, at, at),
        )
        for number, (role, text) in enumerate(
            (("user", "otter"), ("assistant", "wet"))
        ):
            message = f"msg_{ident}{number}"
            info = {"role": role, "time": {"created": at + number}}
            database.execute(
                "INSERT INTO message VALUES(?, ?, ?, ?)",
                (message, ident, at + number, json.dumps(info)),
            )
            part = {"type": "text", "text": f"{text} {ident}"}
            database.execute(
                "INSERT INTO part VALUES(?, ?, ?, ?)",
                (f"prt_{message}", message, ident, json.dumps(part)),
            )
    database.commit()
    database.close()
    return path


@pytest.mark.parametrize("name", ["opencode", "kilo"])
def test_opencode_s_database_is_read_and_not_written(repo, home, sealed, name):
    path = add_opencode(sealed, repo, name)
    before = path.read_bytes()
    (one,) = ok(repo, "import-history")["conversations"]
    assert one["checkpoint"]["note"] == "otter ses_one"
    assert one["checkpoint"]["created"] == "2026-03-04T09:00:00.001Z"
    assert ok(repo, "import-history")["known"] == 1
    assert path.read_bytes() == before
    tip = open_workspace(repo).store.tip(one["checkpoint"]["session"], "main")
    assert tip is not None
    held = tip.manifest.conversation
    assert held is not None
    source = held.source
    described = json.loads(tip.conversation(f"{source}/session.json"))
    assert described["model"] == {"id": "m", "providerID": "p"}
    assert b"otter ses_sub" in tip.conversation(f"{source}/ses_sub.jsonl")
    done = ok(repo, "resume", str(one["checkpoint"]["number"]))
    assert done["resume"] == f"{name} --session ses_one"
    path.write_bytes(b"no database")
    done = invoke(repo, "import-history")
    assert done.returncode == 3
    told = f"{name}.db: cannot be read: file is not a database"
    assert told.encode() in done.stderr


@pytest.mark.parametrize("session", ["ses_one", "ses_sub"])
def test_what_opencode_changed_in_place_is_imported(repo, home, sealed, session):
    path = add_opencode(sealed, repo)
    ok(repo, "import-history")
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute(
            "UPDATE part SET data = replace(data, 'wet', 'dry') WHERE session_id = ?",
            (session,),
        )
        database.commit()
    (done,) = ok(repo, "import-history")["conversations"]
    assert done["result"] == "fast-forward"
    tip = open_workspace(repo).store.tip(done["checkpoint"]["session"], "main")
    assert tip is not None
    source = f"opencode-ses_one/{session}.jsonl" if session == "ses_sub" else None
    assert f"dry {session}".encode() in tip.conversation(source)
    assert ok(repo, "import-history")["known"] == 1


def test_a_view_in_opencode_s_database_runs_nothing(repo, sealed):
    path = add_opencode(sealed, repo)
    database = sqlite3.connect(path)
    database.execute("ALTER TABLE session RENAME TO kept")
    database.execute("CREATE VIEW session AS SELECT * FROM kept WHERE abs(cost) = 0")
    database.close()
    done = ok(repo, "import-history", status=3)
    assert done["conversations"] == []
    assert "opencode.db: cannot be read: " in done["left"][0]


def add_qwen(home: Path, top: Path, session: str) -> None:
    folder = home / ".qwen" / "projects" / re.sub(r"[^a-zA-Z0-9]", "-", str(top))
    path = folder / "chats" / f"{session}.jsonl"
    path.parent.mkdir(parents=True)
    common = {"sessionId": session, "cwd": str(top)}
    common["timestamp"] = "2026-03-06T09:00:00.000Z"
    path.write_bytes(
        b"".join(
            line(**common, uuid=role, type=role, message={"role": role, "parts": said})
            for role, said in (
                ("user", [{"text": "heron"}]),
                ("assistant", [{"text": "grey"}]),
            )
        )
    )


def add_pi(home: Path, top: Path, session: str) -> None:
    plain = str(top).strip("/").replace("/", "-")
    folder = home / ".pi" / "agent" / "sessions" / f"--{plain}--"
    folder.mkdir(parents=True)
    at = "2026-03-06T09:00:00.000Z"
    header = line(type="session", version=3, id=session, timestamp=at, cwd=str(top))
    turn = b"".join(
        line(
            type="message",
            id=role,
            timestamp=at,
            message={"role": role, "content": [{"type": "text", "text": text}]},
        )
        for role, text in (("user", "heron"), ("assistant", "grey"))
    )
    path = folder / f"2026-03-06T09-00-00-000Z_{session}.jsonl"
    path.write_bytes(header + turn)


@pytest.mark.parametrize(
    ("add", "resume"),
    [
        (add_qwen, f"qwen --resume {CODEX}"),
        (add_pi, f"pi --session {CODEX}"),
    ],
)
def test_qwen_s_and_pi_s_sessions_are_told_by_where_they_began(
    repo, home, sealed, add, resume
):
    add(sealed, repo, CODEX)
    add(sealed, repo.parent, CLAUDE.format(1))
    (one,) = ok(repo, "import-history")["conversations"]
    assert one["checkpoint"]["note"] == "heron"
    assert one["checkpoint"]["created"] == "2026-03-06T09:00:00.000Z"
    again = ok(repo, "import-history")
    assert (again["conversations"], again["known"]) == ([], 1)
    assert ok(repo, "resume", str(one["checkpoint"]["number"]))["resume"] == resume


def test_copilot_s_sessions_are_told_by_where_they_began(repo, home, sealed):
    for name, top in (("ours", repo), ("theirs", repo.parent)):
        folder = sealed / ".copilot" / "session-state" / name
        folder.mkdir(parents=True)
        at = "2026-03-05T09:00:00.000Z"
        began = {"sessionId": name, "context": {"cwd": str(top)}}
        said = {"content": f"badger {name}"}
        (folder / "events.jsonl").write_bytes(
            line(type="session.start", id="1", parentId=None, timestamp=at, data=began)
            + line(type="user.message", id="2", parentId="1", timestamp=at, data=said)
        )
    (one,) = ok(repo, "import-history", "copilot")["conversations"]
    assert one["checkpoint"]["conversation"]["agent_session"] == "ours"
    assert one["checkpoint"]["note"] == "badger ours"


def test_what_its_client_still_has_goes_on_there_and_else_in_a_copy(repo, home):
    path = home.add(1)
    (one,) = ok(repo, "import-history")["conversations"]
    number = str(one["checkpoint"]["number"])
    there = ok(repo, "resume", number)
    assert there["how"] == "in-place"
    assert there["resume"] == f"claude --resume {CLAUDE.format(1)}"
    path.unlink()
    copied = ok(repo, "resume", number)
    assert copied["how"] == "verbatim"
    new = home.claude / f"{copied['resume'].split()[-1]}.jsonl"
    # Nothing was said in it yet: it is what is here already.
    done = ok(repo, "import-history")
    assert (done["conversations"], done["known"]) == ([], 1)
    # No hook sees what is said in it.
    new.write_bytes(new.read_bytes() + said(repo, 2, "in the copy", "yes"))
    (grown,) = ok(repo, "import-history")["conversations"]
    assert grown["checkpoint"]["conversation"]["messages"] == 4
