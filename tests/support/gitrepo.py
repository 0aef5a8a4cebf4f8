"""Repositories to test on, and gitcp as a real process.

Paths of trees are relative to their root and separated by "/".
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

from tests.support import forked
from tests.support.templates import copied

# Given to the git commands of the tests only: gitcp itself must need no identity.
# Seconds for one command of gitcp's; a long run beside other work needs more.
PATIENCE = float(os.environ.get("GITCP_PATIENCE") or 120)
IDENTITY = (
    "-c",
    "user.name=Tess Ter",
    "-c",
    "user.email=tess@example.invalid",
    "-c",
    "commit.gpgSign=false",
    "-c",
    "gc.auto=0",
    # Since git 2.47 a commit leaves a process behind, even with nothing to collect.
    "-c",
    "maintenance.auto=false",
)


@dataclass(frozen=True)
class Executable:
    """A file whose exec bit is set."""

    content: bytes


@dataclass(frozen=True)
class Symlink:
    """A symbolic link; the target is written as given and need not exist."""

    target: bytes


Entry: TypeAlias = bytes | Executable | Symlink
Env: TypeAlias = Mapping[str, str | None]
# (type, exec bits, content or link target)
Node: TypeAlias = tuple[Literal["dir", "file", "link", "other"], int, bytes]


class GitError(AssertionError):
    """A git command of a test failed; says what git said."""


def _environment(extra: Env | None) -> dict[str, str]:
    merged: dict[str, str | None] = {**os.environ, **(extra or {})}
    return {name: value for name, value in merged.items() if value is not None}


def git(
    cwd: Path,
    *args: str | bytes | Path,
    input: bytes | None = None,  # noqa: A002  the name subprocess uses
    env: Env | None = None,
    check: bool = True,
) -> bytes:
    """Runs git with a fixed identity and returns its stdout as it is.

    ``env`` is laid over the environment; None takes a variable away.
    """
    environment = _environment(env)
    where = [] if "GIT_DIR" in environment else named(cwd)
    done = subprocess.run(
        ["git", *where, *IDENTITY, *args],
        cwd=cwd,
        input=b"" if input is None else input,
        env=environment,
        capture_output=True,
        check=False,
    )
    if check and done.returncode:
        shown = " ".join(os.fsdecode(arg) for arg in args)
        said = os.fsdecode(done.stderr)
        raise GitError(f"git {shown} in {cwd}: exit {done.returncode}\n{said}")
    return done.stdout


def named(where: Path) -> list[str]:
    """git's option for a bare repository, which Git 3.0 uses only where it is named."""
    found = (where / "HEAD").is_file() and (where / "objects").is_dir()
    return ["--git-dir=."] if found and where.name != ".git" else []


def git_line(cwd: Path, *args: str | bytes | Path, env: Env | None = None) -> str:
    """The output of a git command as text, without the newline at its end."""
    return os.fsdecode(git(cwd, *args, env=env)).removesuffix("\n")


def write_files(root: Path, files: Mapping[str, Entry]) -> None:
    """Writes files, making directories as needed; what is there is replaced."""
    for name, entry in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if isinstance(entry, Symlink):
            os.symlink(entry.target, os.fsencode(path))
        elif isinstance(entry, Executable):
            path.write_bytes(entry.content)
            path.chmod(0o755)
        else:
            path.write_bytes(entry)


def commit_all(repo: Path, message: str = "change") -> str:
    """Commits the whole working tree, ignored files excepted; returns the id."""
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--allow-empty", "--no-verify", "-m", message)
    return git_line(repo, "rev-parse", "HEAD")


def make_repo(path: Path, files: Mapping[str, Entry] | None = None) -> Path:
    """A repository on branch main; one commit with ``files``, none without.

    git builds each such repository once in a process; the others are copies.
    """
    path.mkdir(parents=True, exist_ok=True)
    content = tuple((files or {}).items())
    copied(path, ("make_repo", content), lambda top: _build(top, content))
    return path


def _build(top: Path, content: tuple[tuple[str, Entry], ...]) -> None:
    git(top, "init", "--quiet", "-b", "main")
    # Half of the files of a new repository, and none that a test looks at.
    for sample in (top / ".git" / "hooks").glob("*.sample"):
        sample.unlink()
    if content:
        write_files(top, dict(content))
        commit_all(top, "initial")


def git_directory() -> str:
    """The directory of the git that is tested, for a PATH that a test makes up."""
    found = shutil.which("git")
    assert found is not None
    return str(Path(found).parent)


def users_refs(git_dir: Path) -> bytes:
    """The refs that are not gitcp's, where they lie in one place with gitcp's (reftable)."""
    every = ("for-each-ref", "--include-root-refs", "--exclude=refs/gitcp/")
    return git(git_dir, *every, env={"GIT_DIR": str(git_dir)})


def tree_bytes(root: Path) -> dict[bytes, Node]:
    """All there is under ``root``, for comparison before and after.

    Every directory is listed, empty or not, except the ``.git`` of ``root`` itself;
    that of a nested repository is part of the tree. Nothing is followed.
    """
    found: dict[bytes, Node] = {}
    pending = [b""]
    top = os.fsencode(root)
    while pending:
        prefix = pending.pop()
        with os.scandir(os.path.join(top, prefix)) as entries:
            for entry in entries:
                path = os.path.join(prefix, entry.name)
                if path == b".git":
                    continue
                found[path] = node = _node(entry)
                if node[0] == "dir":
                    pending.append(path)
    return dict(sorted(found.items()))


def _node(entry: os.DirEntry[bytes]) -> Node:
    if entry.is_symlink():
        return ("link", 0, os.readlink(entry.path))
    if entry.is_dir(follow_symlinks=False):
        return ("dir", 0, b"")
    mode = entry.stat(follow_symlinks=False).st_mode & 0o111
    if entry.is_file(follow_symlinks=False):
        return ("file", mode, Path(os.fsdecode(entry.path)).read_bytes())
    return ("other", mode, b"")


def gitcp_argv(*args: str | bytes | Path) -> list[str | bytes | Path]:
    """The argv that starts gitcp, for tests that need Popen, a pty or strace."""
    # -P: a `gitcp` or `click.py` in the working directory is not what we test.
    return [sys.executable, "-P", "-m", "gitcp", *args]


def gitcp_environment(extra: Env | None = None) -> dict[str, str]:
    """The environment for gitcp_argv: the same gitcp as the one imported here."""
    spec = find_spec("gitcp")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("gitcp is not importable")
    home = str(Path(spec.origin).parent.parent)
    # At a terminal no test waits for a person to leave a pager.
    return _environment({"PYTHONPATH": home, "GIT_PAGER": "", **(extra or {})})


def run_gitcp(
    cwd: Path,
    *args: str | bytes | Path,
    input: bytes | None = None,  # noqa: A002  the name subprocess uses
    env: Env | None = None,
    timeout: float = PATIENCE,
) -> subprocess.CompletedProcess[bytes]:
    """Runs gitcp as a process of its own, without a terminal; never raises on exit.

    It is a fork of this process where that makes no difference, as that is ten times
    faster. A program that gitcp starts can tell the difference, so `gitcp run` is not.
    """
    given = b"" if input is None else input
    words = [os.fsdecode(arg) for arg in args]
    if "run" not in words and forked.serves(cwd, given, env or {}):
        return forked.run(cwd, words, given, gitcp_environment(env), timeout)
    return subprocess.run(
        gitcp_argv(*args),
        cwd=cwd,
        input=given,
        env=gitcp_environment(env),
        capture_output=True,
        check=False,
        timeout=timeout,
    )
