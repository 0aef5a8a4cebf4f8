"""`gitcp doctor` on the clients: installed, the program is there, trusted, heard of."""

from __future__ import annotations

import json
import os
import re
import time
from datetime import datetime
from pathlib import Path

import pytest

from gitcp.agents import install as installer
from gitcp.agents.health import unprotected
from gitcp.clients import codex_trust, hook_settings
from gitcp.project.workspace import open_workspace
from tests.support.gitrepo import git_directory, run_gitcp
from tests.support.hooks import program
from tests.support.inprocess import invoke, ok


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def health(repo: Path, name: str) -> dict:
    done = invoke(repo, "doctor", "--json")
    document = json.loads(done.stdout)
    (found,) = [one for one in document["agents"] if one["name"] == name]
    works = not found["installed"] or (found["runs"] and found["trusted"] is not False)
    assert document["ok"] is works
    assert done.returncode == (0 if works else 1)
    lines = unprotected(open_workspace(repo))
    assert [line for line in lines if line.startswith(name)] == ([] if works else lines)
    return found


def test_what_is_not_installed_has_no_state(repo):
    found = health(repo, "claude-code")
    assert found["installed"] is False
    assert (found["runs"], found["trusted"], found["last_event"]) == (None, None, None)
    assert b"no hooks" in invoke(repo, "doctor").stdout


@pytest.mark.parametrize("name", ["claude-code", "cursor", "gemini", "opencode"])
def test_hooks_whose_program_is_gone_make_no_checkpoint(repo, monkeypatch, name):
    with monkeypatch.context() as earlier:
        earlier.setattr(installer, "this_program", lambda: ("/opt/gone/bin/gitcp",))
        ok(repo, "install", name)
    found = health(repo, name)
    assert (found["installed"], found["runs"], found["trusted"]) == (True, False, None)
    assert "/opt/gone/bin/gitcp" in found["problems"][0]
    assert f"gitcp install {name} --scope user" in found["problems"][0]
    shown = invoke(repo, "doctor").stdout.decode()
    assert f"!!  {name:<11} makes no checkpoints (user); no event here yet" in shown
    # What the sentence says helps.
    ok(repo, "install", name, "--scope", "user")
    assert health(repo, name)["runs"] is True


def test_a_script_whose_python_is_gone_does_not_run(repo, home):
    (done,) = ok(repo, "install", "claude-code")["done"]
    path = Path(done["path"])
    script = program(home / "old" / "gitcp", "exit 0")
    (first, *_) = hook_settings.ours(path.read_bytes(), "claude-code")
    path.write_text(path.read_text().replace(first.command.split()[0], str(script)))
    assert health(repo, "claude-code")["runs"] is True
    script.write_text("#!/opt/gone/bin/python\n")
    assert health(repo, "claude-code")["runs"] is False
    script.unlink()
    os.mkfifo(script, 0o755)
    assert invoke(repo, "doctor").returncode in {0, 1}


def test_hooks_of_the_project_call_gitcp_by_name(repo, home, monkeypatch):
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{git_directory()}:/usr/bin:/bin")
    ok(repo, "install", "gemini", "--scope", "project")
    found = health(repo, "gemini")
    assert found["runs"] is False
    assert "put it on PATH" in found["problems"][0]
    program(home / "bin" / "gitcp", "exit 0")
    assert health(repo, "gemini")["runs"] is True


def test_one_scope_that_works_protects(repo, home):
    ok(repo, "install", "claude-code", "--scope", "local")
    ok(repo, "install", "claude-code")
    path = repo / ".claude" / "settings.local.json"
    (first, *_) = hook_settings.ours(path.read_bytes(), "claude-code")
    path.write_text(path.read_text().replace(first.command.split()[0], "/gone/gitcp"))
    found = health(repo, "claude-code")
    assert found["runs"] is True
    assert found["scopes"] == ["user", "local"]
    assert "(local) call /gone/gitcp" in found["problems"][0]


def test_hooks_that_are_switched_off_are_not_allowed(repo):
    ok(repo, "install", "claude-code")
    (repo / ".claude").mkdir()
    local = repo / ".claude" / "settings.local.json"
    local.write_text('{"disableAllHooks": true}')
    found = health(repo, "claude-code")
    assert (found["runs"], found["trusted"]) == (True, False)
    assert str(local) in found["problems"][0]
    local.unlink()
    # Not a file to wait for.
    os.mkfifo(local)
    assert health(repo, "claude-code")["trusted"] is None


def test_codex_runs_what_is_trusted_as_it_is(repo, home):
    (done,) = ok(repo, "install", "codex")["done"]
    found = health(repo, "codex")
    assert (found["runs"], found["trusted"]) == (True, False)
    assert "trust the hooks of gitcp" in found["problems"][0]
    config = home / "codex" / "config.toml"
    lines = []
    for hook in hook_settings.ours(Path(done["path"]).read_bytes(), "codex"):
        event = re.sub(r"(?<!^)(?=[A-Z])", "_", hook.event).lower()
        lines += [
            f'[hooks.state."{done["path"]}:{event}:{hook.group}:{hook.number}"]',
            f'trusted_hash = "{codex_trust.digest(event, hook)}"',
        ]
    config.write_text("\n".join(lines))
    assert health(repo, "codex")["trusted"] is True
    config.write_text("\n".join([*lines, "enabled = false"]))
    assert health(repo, "codex")["trusted"] is False
    # Another command in the same place is another hook.
    config.write_text("\n".join(lines))
    path = Path(done["path"])
    path.write_text(path.read_text().replace(" || :", " || true"))
    assert health(repo, "codex")["trusted"] is False


def test_gemini_runs_no_hooks_of_a_project_it_does_not_trust(repo, home, monkeypatch):
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{git_directory()}:/usr/bin:/bin")
    program(home / "bin" / "gitcp", "exit 0")
    ok(repo, "install", "gemini", "--scope", "project")
    assert health(repo, "gemini")["trusted"] is None
    folders = home / "home" / ".gemini" / "trustedFolders.json"
    folders.parent.mkdir(parents=True)
    folders.write_text(json.dumps({str(repo.parent): "TRUST_FOLDER"}))
    assert health(repo, "gemini")["trusted"] is True
    both = {str(repo): "DO_NOT_TRUST", str(repo.parent): "TRUST_FOLDER"}
    folders.write_text(json.dumps(both))
    found = health(repo, "gemini")
    assert found["trusted"] is False
    assert "/permissions" in found["problems"][0]
    settings = folders.with_name("settings.json")
    settings.write_text('{"security": {"folderTrust": {"enabled": false}}}')
    assert health(repo, "gemini")["trusted"] is None


def test_codex_runs_no_hooks_of_a_project_it_does_not_trust(repo, home, monkeypatch):
    monkeypatch.setenv("PATH", f"{home / 'bin'}:{git_directory()}:/usr/bin:/bin")
    program(home / "bin" / "gitcp", "exit 0")
    ok(repo, "install", "codex", "--scope", "project")
    assert "trust the project" in health(repo, "codex")["problems"][0]
    config = home / "codex" / "config.toml"
    config.parent.mkdir()
    config.write_text(f'[projects."{repo}"]\ntrust_level = "trusted"\n')
    assert "trust the hooks" in health(repo, "codex")["problems"][0]


def test_the_digest_is_that_of_codex():
    """As `codex app-server` of 0.169 gives it for this hook (`currentHash`)."""
    command = "/opt/gitcp/bin/gitcp hook codex Stop >/dev/null 2>&1 || :"
    hook = hook_settings.OurHook("Stop", 0, 0, command, 30)
    assert codex_trust.digest("stop", hook) == (
        "sha256:9bcf63c6b34b865ca9d62aef3b1500da4a4c4d705656c7aaeae690fc67ac5ed9"
    )


def test_the_last_event_is_told(repo, home):
    ok(repo, "install", "claude-code")
    payload = {
        "session_id": "0b54b7fe-6ae0-4a60-9b9c-000000000001",
        "cwd": str(repo),
        "transcript_path": str(home / "none.jsonl"),
        "prompt": "hello",
    }
    raw = json.dumps(payload).encode()
    began = int(time.time())
    run_gitcp(repo, "hook", "claude-code", "UserPromptSubmit", input=raw)
    assert not (repo / ".git" / "gitcp" / "hooks.log").exists()
    found = health(repo, "claude-code")["last_event"]
    assert began <= datetime.fromisoformat(found).timestamp() <= time.time()
    assert b"last event just now" in invoke(repo, "doctor").stdout
    # A failed hook was an event, too.
    before = health(repo, "gemini")["last_event"]
    run_gitcp(repo, "hook", "gemini", "BeforeAgent", input=b"not JSON")
    assert before is None
    assert health(repo, "gemini")["last_event"] is not None
