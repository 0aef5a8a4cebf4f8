"""OpenCode's plugin in the settings, and what it hands over, without the client."""

from __future__ import annotations

import json
from typing import Any

from tests.support.gitrepo import run_gitcp


def message(number: int, role: str, **more: Any) -> str:
    ident = f"msg_{number:012x}abcdefghijklmn"
    info = {"id": ident, "role": role, "time": {"created": number}, **more}
    part = {"type": "text", "text": f"said \ud800 {number}", "messageID": ident}
    return json.dumps({"info": info, "parts": [part]})


SESSION = json.dumps({"id": "ses_00000000000aabcdefghijklmn", "title": "t"})


def hook(repo, event: str, **payload: Any) -> None:
    document = {"session_id": "ses_00000000000aabcdefghijklmn", "cwd": str(repo)}
    raw = json.dumps({**document, **payload}).encode()
    done = run_gitcp(repo, "hook", "opencode", event, input=raw)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    log = repo / ".git" / "gitcp" / "hooks.log"
    assert not log.exists(), log.read_text()


def test_a_prompt_that_is_there_already_is_not_in_the_state_before_it(repo):
    lines = [message(1, "user"), message(2, "assistant"), message(3, "user")]
    prompt = json.loads(lines[2])["info"]["id"]
    hook(
        repo,
        "chat.message",
        messages=lines,
        session=SESSION,
        prompt_id=prompt,
        prompt="the third",
    )
    stored = run_gitcp(repo, "messages", "--format", "jsonl").stdout
    assert stored.decode().splitlines() == lines[:2]
    (repo / "new").write_bytes(b"x")
    hook(
        repo,
        "session.idle",
        messages=[*lines, message(4, "assistant")],
        session=SESSION,
    )
    shown = json.loads(run_gitcp(repo, "log", "--json", "--full").stdout)["checkpoints"]
    assert [one["conversation"]["messages"] for one in shown] == [4, 2]
    assert shown[0]["note"] == "the third"


def test_what_a_subagent_said_is_stored_with_its_parent(repo):
    hook(repo, "session.idle", messages=[message(1, "user")], session=SESSION)
    child = {
        "id": "ses_00000000000bbbbbbbbbbbbbbb",
        "parentID": json.loads(SESSION)["id"],
    }
    (repo / "new").write_bytes(b"x")
    hook(
        repo,
        "session.idle",
        session_id=child["id"],
        messages=[message(9, "user")],
        session=json.dumps(child),
    )
    (session,) = json.loads(run_gitcp(repo, "sessions", "--json").stdout)["sessions"]
    assert [one["name"] for one in session["branches"]] == ["main"]
    line = json.loads(run_gitcp(repo, "log", "--json", "--full").stdout)["checkpoints"]
    assert line[0]["trigger"] == "subagent-stop"
    assert line[0]["conversation"]["messages"] == 1


def test_another_plugin_of_that_name_is_left_alone(repo, tmp_path):
    plugin = tmp_path / "opencode" / "plugin" / "gitcp.js"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("export const X = 1\n")
    environment = {"XDG_CONFIG_HOME": str(tmp_path)}
    done = run_gitcp(repo, "install", "opencode", env=environment)
    assert done.returncode == 2
    assert b"not a plugin of gitcp's" in done.stderr
    assert plugin.read_text() == "export const X = 1\n"
    plugin.unlink()
    assert run_gitcp(repo, "install", "opencode", env=environment).returncode == 0
    assert b'"session.idle":' in plugin.read_bytes()
    # The user has changed our file: it stays.
    made = plugin.read_bytes()
    plugin.write_bytes(made.replace(b"const LIMIT = 15000", b"const LIMIT = 5"))
    changed = plugin.read_bytes()
    for command in ("install", "uninstall"):
        done = run_gitcp(repo, command, "opencode", env=environment)
        assert done.returncode == 2
        assert b"it was changed by hand" in done.stderr
        assert plugin.read_bytes() == changed != made
    plugin.write_bytes(made)
    assert run_gitcp(repo, "install", "opencode", env=environment).returncode == 0
    assert run_gitcp(repo, "uninstall", "opencode", env=environment).returncode == 0
    assert not plugin.exists()
