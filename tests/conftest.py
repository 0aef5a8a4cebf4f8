"""What every test stands on: sealed gits, and a repository to work in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

import pygit2
import pytest
from hypothesis import settings
from pygit2.enums import ConfigLevel

from tests.support.gitrepo import (
    Entry,
    Env,
    Executable,
    Symlink,
    commit_all,
    make_repo,
    write_files,
)
from tests.support.gitrepo import git as run_git

# Times vary with the machine: what is slow is measured by bench/, not here.
settings.register_profile("gitcp", deadline=None)
settings.load_profile("gitcp")

# A developer's git, gitcp or agent must not reach into a test.
FOREIGN = ("GIT_", "GITCP_", "XDG_", "CLAUDE", "CODEX", "GEMINI", "OPENCODE", "CURSOR")
PRESENTATION = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES")

REPO_FILES: dict[str, Entry] = {
    ".gitignore": b"*.log\n/build/\n",
    "README.md": b"# A project\n",
    "bin/run": Executable(b"#!/bin/sh\nexit 0\n"),
    "latest": Symlink(b"src/pkg/main.py"),
    "src/pkg/data.bin": b"\x00\xff\r\n\x80",
    "src/pkg/main.py": b"print('one')\n",
}


class GitRunner(Protocol):
    def __call__(
        self,
        *args: str | bytes | Path,
        input: bytes | None = None,  # noqa: A002
        env: Env | None = None,
        check: bool = True,
    ) -> bytes: ...


@pytest.fixture(autouse=True)
def sealed(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Shuts out the machine's configuration, for git and libgit2; returns HOME.

    A test that wants user settings writes ``sealed / ".gitconfig"`` and sets
    GIT_CONFIG_GLOBAL to it (and, in process, libgit2's search path).
    """
    for name in os.environ:
        if name.startswith(FOREIGN) or name in PRESENTATION:
            monkeypatch.delenv(name)
    base = tmp_path_factory.mktemp("sealed")
    home = base / "home"
    empty = base / "empty"
    home.mkdir()
    empty.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    # Not /dev/null: as root, `git config --global` would replace the device by a file.
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(base / "gitconfig"))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    # Each process that pushes would take two seconds to load it.
    monkeypatch.setenv("GITCP_SECRETS_LIBRARY", "false")
    # HOME means nothing to a libgit2 that is loaded already.
    for level in (
        ConfigLevel.PROGRAMDATA,
        ConfigLevel.SYSTEM,
        ConfigLevel.XDG,
        ConfigLevel.GLOBAL,
    ):
        pygit2.settings.search_path[level] = str(empty)
    return home


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A clean repository with two commits on main; see REPO_FILES."""
    path = make_repo(tmp_path / "repo", REPO_FILES)
    write_files(path, {"src/pkg/main.py": b"print('two')\n"})
    commit_all(path, "second")
    return path


@pytest.fixture
def git(repo: Path) -> GitRunner:
    """Runs git in ``repo``: ``git("status", "--short")``."""

    def run(
        *args: str | bytes | Path,
        input: bytes | None = None,  # noqa: A002
        env: Env | None = None,
        check: bool = True,
    ) -> bytes:
        return run_git(repo, *args, input=input, env=env, check=check)

    return run
