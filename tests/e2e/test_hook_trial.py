"""`gitcp doctor --test` and `gitcp install` without a name, as a user types them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from gitcp.clients import registry
from tests.support.gitrepo import run_gitcp


@pytest.fixture
def extra(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    # A hook's time is another test's matter.
    return {"HOME": str(home)}


@pytest.mark.parametrize(
    "name", ["cline", "codex", "copilot", "cursor", "pi", "vscode"]
)
def test_a_hook_that_is_installed_makes_a_checkpoint(repo, extra, name):
    assert run_gitcp(repo, "install", name, env=extra).returncode == 0
    done = run_gitcp(repo, "doctor", "--test", name, "--json", env=extra)
    found = json.loads(done.stdout)
    assert (done.returncode, found["ok"], found["problem"]) == (0, True, None), found
    assert found["scope"] == "user"
    # Nothing is left of it, here or in the user's state.
    assert run_gitcp(repo, "log", env=extra).stdout == b""
    assert not list((repo.parent / "home").rglob("gitcp-doctor*"))


def test_a_hook_that_is_switched_off_or_not_ours_is_told(repo, extra):
    def problem(**more: str) -> str:
        done = run_gitcp(
            repo, "doctor", "--test", "copilot", "--json", env={**extra, **more}
        )
        assert done.returncode == 1
        told: str = json.loads(done.stdout)["problem"]
        return told

    assert "run `gitcp install copilot`" in problem()
    run_gitcp(repo, "install", "copilot", env=extra)
    assert "GITCP_DISABLE" in problem(GITCP_DISABLE="1")
    settings = repo.parent / "home" / ".copilot" / "hooks" / "gitcp.json"
    text = settings.read_text().replace(" hook copilot", " --x hook copilot")
    settings.write_text(text)
    assert "a gitcp other than this one" in problem()


def test_install_without_a_name_tells_which_clients_are_here(repo, extra, tmp_path):
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("copilot", "qwen"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    git = shutil.which("git")
    assert git is not None
    env = {**extra, "PATH": f"{programs}:{Path(git).parent}:/usr/bin:/bin"}
    run_gitcp(repo, "install", "qwen", env=env)
    done = run_gitcp(repo, "install", env=env)
    assert done.returncode == 2
    assert b"clients found here: copilot\n" in done.stderr


def test_every_client_that_can_be_installed_has_a_program():
    from gitcp.clients import present

    assert set(present._PROGRAMS) == set(registry.NAMES)
