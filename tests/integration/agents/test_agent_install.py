"""`gitcp install claude-code`: into settings that are there, and out of them again."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from gitcp import durable
from gitcp.agents import install as installer
from tests.support.gitrepo import git, git_line, tree_bytes
from tests.support.inprocess import fails, invoke, ok

HOOKS = {
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolBatch",
    "Stop",
    "StopFailure",
    "PreCompact",
    "SubagentStop",
    "SessionEnd",
}


@pytest.fixture(autouse=True)
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "claude"


def install(repo, *options):
    (done,) = ok(repo, "install", "claude-code", *options)["done"]
    return done


def uninstall(repo, *options):
    return list(ok(repo, "uninstall", "claude-code", *options)["done"])


def commands(path):
    return {
        event: groups[-1]["hooks"][0]["command"]
        for event, groups in json.loads(path.read_bytes())["hooks"].items()
    }


@pytest.mark.parametrize(
    ("scope", "where"),
    [
        ("user", "../claude/settings.json"),
        ("project", ".claude/settings.json"),
        ("local", ".claude/settings.local.json"),
    ],
)
def test_each_scope_has_its_file_and_leaves_no_trace(repo, tmp_path, scope, where):
    before = tree_bytes(tmp_path)
    done = install(repo, "--scope", scope)
    assert (done["scope"], done["changed"]) == (scope, True)
    path = repo / where
    assert Path(done["path"]).resolve() == path.resolve()
    assert commands(path).keys() == HOOKS
    shown = ok(repo, "status")["installed"]
    assert [(one["what"], one["scope"]) for one in shown] == [("claude-code", scope)]
    written = path.stat()
    assert install(repo, "--scope", scope)["changed"] is False
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (
        written.st_ino,
        written.st_mtime_ns,
    )
    changed = [one for one in uninstall(repo) if one["changed"]]
    assert [one["scope"] for one in changed] == [scope]
    after = tree_bytes(tmp_path)
    # But for what `status` learnt.
    learnt = b"repo/.git/gitcp"
    assert {
        name: node for name, node in after.items() if not name.startswith(learnt)
    } == before
    assert ok(repo, "status")["installed"] == []


def test_without_a_scope_it_is_the_users(tmp_path, config):
    outside = tmp_path / "nowhere"
    outside.mkdir()
    assert install(outside)["scope"] == "user"
    assert (config / "settings.json").exists()
    assert "needs a project" in fails(
        outside, 2, "install", "claude-code", "--scope", "local"
    )
    assert [one["scope"] for one in uninstall(outside)] == ["user"]


@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        b"{ }",
        b'{"hooks": {}}',
        b'{"hooks": {"Stop": []}}',
        b"",
        b'{"a":1}',
        b'{\n    "env": {"TOKEN": "t\\u00e9"},\n    "b": [ 1,2 ]\n}\n\n',
        b'{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"mine"}]}]}}',
    ],
)
def test_the_file_comes_back_byte_for_byte(repo, config, text):
    path = config / "settings.json"
    config.mkdir()
    path.write_bytes(text)
    path.chmod(0o640)
    install(repo)
    assert path.read_bytes() != text
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    install(repo)
    uninstall(repo)
    assert path.read_bytes() == text
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_file_changed_by_hand_stays_changed(repo, config):
    path = config / "settings.json"
    config.mkdir()
    path.write_bytes(b'{"model": "opus"}')
    install(repo)
    # As the client does when a setting is changed in it.
    settings = json.loads(path.read_bytes())
    settings["model"] = "haiku"
    settings["hooks"]["Stop"].append({"hooks": [{"command": "mine"}]})
    path.write_text(json.dumps(settings, indent=2))
    assert install(repo)["changed"] is False
    uninstall(repo)
    left = json.loads(path.read_bytes())
    assert left == {
        "model": "haiku",
        "hooks": {"Stop": [{"hooks": [{"command": "mine"}]}]},
    }
    assert path.read_text() == json.dumps(left, indent=2)


def test_hooks_of_a_gitcp_that_has_moved_are_brought_up_to_date(
    repo, config, monkeypatch
):
    path = config / "settings.json"
    monkeypatch.setattr(installer, "this_program", lambda: ("/old/gitcp",))
    install(repo)
    assert commands(path)["Stop"].startswith("/old/gitcp hook claude-code Stop")
    monkeypatch.setattr(installer, "this_program", lambda: ("/new dir/gitcp",))
    assert install(repo)["changed"] is True
    assert commands(path)["Stop"].startswith("'/new dir/gitcp' hook claude-code Stop")
    assert b"/old/" not in path.read_bytes()
    uninstall(repo)
    assert not path.exists()


def test_settings_that_are_a_link_stay_one(repo, config, tmp_path):
    real = tmp_path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_bytes(b'{"a": 1}')
    config.mkdir()
    (config / "settings.json").symlink_to(real)
    install(repo)
    assert (config / "settings.json").is_symlink()
    assert commands(real).keys() == HOOKS
    uninstall(repo)
    assert real.read_bytes() == b'{"a": 1}'
    assert (config / "settings.json").is_symlink()


@pytest.mark.parametrize("place", [".claude/settings.json", ".claude"])
def test_a_link_of_the_project_that_leads_out_of_it_is_refused(repo, tmp_path, place):
    outside = tmp_path / "outside"
    outside.mkdir()
    settings = outside / "settings.json"
    settings.write_bytes(b'{"a": 1}')
    (repo / place).parent.mkdir(exist_ok=True)
    (repo / place).symlink_to(outside if place == ".claude" else settings)
    for command in ("install", "uninstall"):
        message = fails(repo, 2, command, "claude-code", "--scope", "project")
        assert f"leads out of the project, to {settings}" in message
    assert settings.read_bytes() == b'{"a": 1}'
    assert os.listdir(outside) == ["settings.json"]


@pytest.mark.parametrize("text", [b"{broken", b"[]", b'{"hooks": []}', b"\xff"])
def test_what_is_not_understood_is_left_alone(repo, config, text):
    path = config / "settings.json"
    config.mkdir()
    path.write_bytes(text)
    said = fails(repo, 2, "install", "claude-code")
    assert "cannot be understood" in said
    assert path.read_bytes() == text
    assert ok(repo, "status")["installed"] == []


def test_shared_settings_name_no_path_of_one_machine(repo):
    done = install(repo, "--scope", "project")
    path = repo / ".claude" / "settings.json"
    assert commands(path)["Stop"] == "gitcp hook claude-code Stop >/dev/null 2>&1 || :"
    assert any("PATH" in note for note in done["notes"]) != bool(
        subprocess.run(["which", "gitcp"], capture_output=True, check=False).stdout
    )


def test_the_command_works_from_anywhere_and_is_nothing_where_gitcp_is_gone(
    repo, config, tmp_path
):
    install(repo)
    command = commands(config / "settings.json")["Stop"]
    # Modules of the project that are named like ours, or like what we import.
    for name in ("gitcp.py", "click.py", "msgspec.py", "json.py"):
        (repo / name).write_text("raise SystemExit('not this one')\n")
    transcript = tmp_path / "t.jsonl"
    transcript.write_text('{"type":"user","message":{"role":"user"}}\n')
    payload = json.dumps(
        {"session_id": "s1", "cwd": str(repo), "transcript_path": str(transcript)}
    ).encode()

    def run(text):
        done = subprocess.run(
            ["/bin/sh", "-c", text],
            cwd=repo,
            input=payload,
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    run(command)
    assert git_line(repo, "for-each-ref", "--format=%(refname)", "refs/gitcp/s") == (
        "refs/gitcp/s/claude-code-s1/main"
    )
    run(command.replace(command.split()[0], "/nowhere/gitcp"))


def test_this_program_is_the_one_that_runs():
    program = installer.this_program()
    assert os.path.isabs(program[0])
    assert program[-1].endswith("gitcp")
    assert Path(program[0]).parent == Path(sys.executable).parent


def test_what_cannot_be_installed_is_told(repo):
    said = fails(repo, 2, "install", "emacs")
    assert "emacs" in said
    shown = invoke(repo, "install", "claude-code")
    assert shown.stdout.startswith(b"Installed claude-code (user) in ")
    assert b"`gitcp config injectContext off` turns that off" in shown.stderr
    shown = invoke(repo, "install", "opencode")
    assert b"injectContext" not in shown.stderr
    shown = invoke(repo, "install", "claude-code")
    assert shown.stdout.startswith(b"Already installed: claude-code (user) in ")
    shown = invoke(repo, "uninstall", "claude-code", "--scope", "local")
    assert shown.stdout.startswith(b"Not installed: claude-code (local) in ")


def pipe(path, tmp_path):
    os.mkfifo(path)


def link_to_a_pipe(path, tmp_path):
    os.mkfifo(path.parent / "pipe")
    path.symlink_to(path.parent / "pipe")


def link_to_a_device(path, tmp_path):
    path.symlink_to("/dev/zero")


def directory(path, tmp_path):
    path.mkdir()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("make", [pipe, link_to_a_pipe, link_to_a_device, directory])
@pytest.mark.parametrize("scope", ["user", "project"])
def test_what_is_no_file_is_neither_read_nor_replaced(
    repo, tmp_path, config, make, scope
):
    path = (config if scope == "user" else repo / ".claude") / "settings.json"
    path.parent.mkdir()
    make(path, tmp_path)
    before = path.lstat(), path.stat()
    for verb in ("install", "uninstall"):
        reason = fails(repo, 2, verb, "claude-code", "--scope", scope)
        expected = {
            "directory": "directory",
            "link_to_a_device": "leads out of" if scope == "project" else "regular",
        }
        assert expected.get(make.__name__, "is not a regular file") in reason
    ok(repo, "status")
    after = path.lstat(), path.stat()
    assert [one.st_ino for one in before] == [one.st_ino for one in after]


# --- killed on the way --------------------------------------------------------------------


class KilledError(BaseException):
    """Ends an installation in the middle, as a signal does."""


def killed_at(monkeypatch, name, is_it):
    """Ends the process, so to speak, at a call of `durable` with a certain path."""
    real = getattr(durable, name)

    def call(path, *args, **options):
        if is_it(path):
            raise KilledError
        return real(path, *args, **options)

    monkeypatch.setattr(durable, name, call)


def test_a_killed_removal_is_finished_by_the_next_one(repo, tmp_path, monkeypatch):
    before = tree_bytes(tmp_path)
    install(repo)
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        killed_at(patch, "remove", lambda path: "installed" in path.parts)
        uninstall(repo)
    assert tree_bytes(tmp_path) != before
    assert not uninstall(repo)[0]["changed"]
    assert tree_bytes(tmp_path) == before


@pytest.mark.parametrize("again", [True, False])
def test_a_killed_installation_leaves_nothing(repo, tmp_path, monkeypatch, again):
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        killed_at(patch, "replace", lambda path: path.name == "settings.json")
        install(repo)
    assert (tmp_path / "claude").exists()
    if again:
        install(repo)
    uninstall(repo)
    assert not (tmp_path / "claude").exists()
    assert not (tmp_path / "state").exists()


def test_the_first_installation_says_how_to_go_on(repo, config):
    del config
    (first,) = ok(repo, "install", "claude-code")["done"]
    assert any("`gitcp log` shows the turns" in note for note in first["notes"])
    assert any("`gitcp install skill`" in note for note in first["notes"])
    ok(repo, "install", "skill")
    ok(repo, "uninstall", "claude-code")
    (again,) = ok(repo, "install", "claude-code")["done"]
    assert not any("`gitcp install skill`" in note for note in again["notes"])


def test_status_says_of_each_client_whether_its_hooks_run(repo, config):
    del config
    assert ok(repo, "status")["clients"] == []
    assert ok(repo, "status")["hooks_off"] is None
    ok(repo, "install", "claude-code")
    (client,) = ok(repo, "status")["clients"]
    assert (client["name"], client["runs"]) == ("claude-code", True)
    assert client in ok(repo, "doctor")["agents"]
    told = invoke(repo, "status", "-v").stdout
    assert b"claude-code: hooks run (user); no event here yet" in told
    git(repo, "config", "gitcp.autoCheckpoint", "false")
    assert ok(repo, "status")["hooks_off"] == "gitcp.autoCheckpoint is false"


def test_the_last_removal_takes_the_directories_that_gitcp_made(
    repo, tmp_path, monkeypatch
):
    # `.local` is the user's; what gitcp made below it goes, once nothing is in it.
    (tmp_path / "home/.local").mkdir(parents=True)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home/.local/state/deep"))
    ok(repo, "install", "claude-code")
    ok(repo, "install", "claude-code", "--scope", "project")
    uninstall(repo, "--scope", "user")
    assert (tmp_path / "home/.local/state/deep/gitcp/installed").is_dir()
    uninstall(repo)
    assert list(tmp_path.glob("home/**/*")) == [tmp_path / "home/.local"]


def test_a_removal_leaves_directories_that_it_did_not_make_or_that_hold_files(
    repo, tmp_path
):
    (tmp_path / "state").mkdir()
    ok(repo, "install", "claude-code")
    other = tmp_path / "state/gitcp/other"
    other.write_text("kept")
    uninstall(repo)
    assert set(tmp_path.glob("state/**/*")) == {other.parent, other}
    other.unlink()
    ok(repo, "install", "claude-code")
    uninstall(repo)
    assert os.listdir(tmp_path / "state") == []
