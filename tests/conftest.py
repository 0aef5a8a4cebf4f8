"""What every test stands on: sealed gits, and a repository to work in."""

from __future__ import annotations

import compileall
import gc
import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Protocol

import pygit2
import pytest
from hypothesis import settings
from pygit2.enums import ConfigLevel

from tests import skips
from tests.support.clones import clone, make_hub
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
from tests.support.templates import copied

# Times vary with the machine: what is slow is measured by bench/, not here. The examples are
# the same each time: whether a change lands depends on the change. `explore` draws new ones.
settings.register_profile("gitcp", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, derandomize=False)
settings.load_profile("gitcp")

ROOT = Path(__file__).parents[1]
MEMORY = Path("/dev/shm")
# Far more than all tests of a run that fail would leave there.
ROOM = 4 << 30


def pytest_configure(config: pytest.Config) -> None:
    """Compiles gitcp, once for a run."""
    if os.environ.get("PYTEST_DEBUG_TEMPROOT") == str(MEMORY):
        tempfile.tempdir = str(MEMORY)
    if hasattr(config, "workerinput"):
        return
    # Tests start gitcp hundreds of times from this checkout, mostly in an environment
    # that forbids it to keep what Python compiled.
    compileall.compile_dir(ROOT / "gitcp", quiet=2)


@pytest.hookimpl(wrapper=True, optionalhook=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Adds a worker to those of `-n auto`, one for each core.

    Some tests wait, for a clock or for a server: meanwhile their core is idle.
    """
    found = yield
    return found if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else found + 1


def pytest_itemcollected(item: pytest.Item) -> None:
    """Gives a slow test half an hour, unless it says how long it may take."""
    if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
        item.add_marker(pytest.mark.timeout(1800))


def pytest_collection_finish() -> None:
    """Spares the garbage collector what stays until the end."""
    gc.collect()
    gc.freeze()
    # To go through all the rest is rarely worth it: pytest keeps what it knows of each test.
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, 100)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[
    None, pytest.TestReport, pytest.TestReport
]:
    return skips.judged((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[
    None, pytest.CollectReport, pytest.CollectReport
]:
    return skips.judged((yield))


def _memory_serves() -> bool:
    """Whether there is a file system in memory to test on, with room for all.

    gitcp syncs each file that it promises to keep; on a disk a third of the time goes
    into waiting for that. Tests of disks mount their own.
    """
    try:
        found = os.statvfs(MEMORY)
        memory = Path("/proc/meminfo").read_text("ascii").split("MemAvailable:")[1]
    except OSError:
        return False
    forbidden = os.ST_NOEXEC | os.ST_RDONLY
    room = min(found.f_bavail * found.f_frsize, int(memory.split()[0]) << 10)
    return room >= ROOM and not found.f_flag & forbidden and os.access(MEMORY, os.W_OK)


if "PYTEST_DEBUG_TEMPROOT" not in os.environ and _memory_serves():
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)


# A developer's git, gitcp or agent must not reach into a test.
FOREIGN = ("GIT_", "GITCP_", "XDG_", "CLAUDE", "CODEX", "GEMINI", "OPENCODE", "CURSOR")
# What repositories git makes: those who run the tests decide it, but for a test that has
# the marker.
NEW_REPOSITORIES = {
    "GIT_DEFAULT_HASH": ("sha1", "sha1"),
    "GIT_DEFAULT_REF_FORMAT": ("ref_files", "files"),
}
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
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Shuts out the machine's configuration, for git and libgit2; returns HOME.

    What repositories git makes is left to who runs the tests: with GIT_DEFAULT_HASH=sha256
    they run on another kind. The markers `sha1` and `ref_files` pin it.

    A test that wants user settings writes ``sealed / ".gitconfig"`` and sets
    GIT_CONFIG_GLOBAL to it (and, in process, libgit2's search path).
    """
    for name in os.environ:
        if name in NEW_REPOSITORIES:
            continue
        if name.startswith(FOREIGN) or name in PRESENTATION:
            monkeypatch.delenv(name)
    for name, (marker, value) in NEW_REPOSITORIES.items():
        if request.node.get_closest_marker(marker) is not None:
            monkeypatch.setenv(name, value)
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
    # What works on after a command would be there while a test looks, or ends.
    monkeypatch.setenv("GITCP_BACKGROUND", "false")
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
    path = tmp_path / "repo"
    path.mkdir()
    copied(path, "repo", _build)
    return path


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """A bare repository with the project's first commit."""
    return make_hub(tmp_path)


@pytest.fixture
def ann(hub: Path) -> Path:
    """A clone of the hub."""
    return clone(hub, "ann")


@pytest.fixture
def bob(hub: Path) -> Path:
    """Another clone of the hub."""
    return clone(hub, "bob")


def _build(path: Path) -> None:
    make_repo(path, REPO_FILES)
    write_files(path, {"src/pkg/main.py": b"print('two')\n"})
    commit_all(path, "second")


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
