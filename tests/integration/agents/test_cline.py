"""`gitcp install cline`: a script for each event, and what the scripts' client keeps."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.gitrepo import run_gitcp
from tests.support.inprocess import fails, invoke, ok

EVENTS = {"Start", "Resume", "Complete", "Cancel", "Error"}
NAMES = {f"Task{one}.sh" for one in EVENTS} | {"PreToolUse.sh", "PostToolUse.sh"}
SESSION = "1795507808961_5f9nr"


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("CLINE_DIR", raising=False)
    return tmp_path / "home"


def contents(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir()}


def test_each_event_has_a_script_and_nothing_is_left_of_them(repo, home):
    (done,) = ok(repo, "install", "cline")["done"]
    hooks = home / ".cline" / "hooks"
    assert (done["changed"], set(contents(hooks))) == (True, NAMES)
    assert all(os.access(one, os.X_OK) for one in hooks.iterdir())
    (again,) = ok(repo, "install", "cline")["done"]
    assert not again["changed"]
    (gone,) = ok(repo, "uninstall", "cline")["done"]
    assert gone["changed"]
    assert not (home / ".cline").exists()


def test_scripts_of_the_user_s_stay_and_one_under_our_name_is_refused(repo, home):
    hooks = home / ".cline" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "TaskStart").write_bytes(b"#!/bin/sh\ntrue \n\n")
    before = contents(hooks)
    ok(repo, "install", "cline")
    ok(repo, "uninstall", "cline")
    assert contents(hooks) == before
    (hooks / "TaskError.sh").write_bytes(b"#!/bin/sh\nexit 1\n")
    before = contents(hooks)
    assert "not a script of gitcp's" in fails(repo, 2, "install", "cline")
    assert contents(hooks) == before


def test_a_script_that_was_changed_by_hand_is_not_removed(repo, home):
    ok(repo, "install", "cline")
    script = home / ".cline" / "hooks" / "TaskError.sh"
    script.write_bytes(script.read_bytes() + b"mine\n")
    assert "changed by hand" in fails(repo, 2, "uninstall", "cline")
    assert script.read_bytes().endswith(b"mine\n")


@pytest.mark.parametrize("harm", ["missing", "not executable"])
def test_a_script_that_cannot_run_is_named_and_installed_again(repo, home, harm):
    ok(repo, "install", "cline")
    script = home / ".cline" / "hooks" / "TaskComplete.sh"
    if harm == "missing":
        script.unlink()
    else:
        script.chmod(0o644)

    def health() -> dict:
        found = json.loads(invoke(repo, "doctor", "--json").stdout)["agents"]
        return next(one for one in found if one["name"] == "cline")

    assert health()["runs"] is False
    assert str(script) in health()["problems"][0]
    (done,) = ok(repo, "install", "cline")["done"]
    assert done["changed"]
    assert health()["runs"] is True


def talk(folder: Path, top: Path, asked: str) -> None:
    said = [
        {"type": "text", "text": f'<user_input mode="act">{asked}</user_input>'},
        {"type": "text", "text": "done"},
    ]
    messages = [
        {"id": f"m{at}", "role": role, "content": [block], "ts": at}
        for at, (role, block) in enumerate(
            zip(("user", "assistant"), said, strict=True)
        )
    ]
    folder.mkdir(parents=True, exist_ok=True)
    document = {"version": 1, "sessionId": SESSION, "messages": messages}
    path = folder / f"{SESSION}.messages.json"
    path.write_text(json.dumps(document, indent=2))
    about = {"version": 1, "session_id": SESSION, "cwd": str(top), "model": "m"}
    (folder / f"{SESSION}.json").write_text(json.dumps(about, indent=2))


def test_a_turn_s_end_is_a_checkpoint_that_resumes_under_a_new_id(repo, home):
    folder = home / ".cline" / "data" / "sessions" / SESSION
    talk(folder, repo, "tidy up")
    payload = {
        "sessionContext": {"rootSessionId": SESSION},
        "workspaceRoots": [str(repo)],
        "hookName": "agent_end",
        "parent_agent_id": None,
        "turn": {"outputText": "done", "status": "completed"},
    }
    sent = json.dumps(payload).encode()
    run_gitcp(
        repo, "hook", "cline", "TaskComplete", input=sent, env={"HOME": str(home)}
    )
    (one,) = ok(repo, "log", "--full")["checkpoints"]
    assert (one["note"], one["trigger"]) == ("tidy up", "turn-end")
    restored = ok(repo, "restore", one["id"], "-y")
    *command, new = restored["resume"].split()
    assert command[-2:] == ["cline", "--id"]
    made = folder.with_name(new)
    document = json.loads((made / f"{new}.messages.json").read_text())
    was = json.loads((folder / f"{SESSION}.messages.json").read_text())
    assert document["messages"] == was["messages"]
    assert document["sessionId"] == new
    about = json.loads((made / f"{new}.json").read_text())
    assert (about["session_id"], about["cwd"], about["model"]) == (new, str(repo), "m")


def test_sessions_that_are_on_disk_are_imported_once(repo, home):
    folder = home / ".cline" / "data" / "sessions"
    talk(folder / SESSION, repo, "an old wish")
    (one,) = ok(repo, "import-history", "cline")["conversations"]
    assert one["checkpoint"]["note"] == "an old wish"
    assert ok(repo, "import-history", "cline")["conversations"] == []
    told = invoke(repo, "messages", one["checkpoint"]["id"]).stdout.decode()
    assert "an old wish" in told
    assert "user_input" not in told
