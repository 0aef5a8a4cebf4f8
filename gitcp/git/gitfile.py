"""Reads the file `.git` of a submodule or a linked worktree."""

from pathlib import Path


def git_dir_of(top: Path) -> Path:
    """Returns the git directory of a work tree: its `.git`, or what the file `.git` names.

    Raises:
        OSError: the file cannot be read.
    """
    link = top / ".git"
    if not link.is_file():
        return link
    said = link.read_text("utf-8", "surrogateescape").strip()
    return top / said.removeprefix("gitdir:").strip()
