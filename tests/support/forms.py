"""Which kind of repository git makes where a test does not say it."""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path

from gitcp.format.oid import ObjectFormat
from tests.support.gitrepo import git
from tests.support.templates import form_in


def new_form() -> ObjectFormat:
    """What ids `git init` gives a repository."""
    return _new_form(os.environ.get("PATH"), os.environ.get("GIT_DEFAULT_HASH"))


def lock_of(repo: Path, ref: str) -> Path:
    """Where the lock of a ref is: one for all of them where they are in tables."""
    tables = repo / ".git" / "reftable"
    return tables / "tables.list.lock" if tables.is_dir() else repo / f".git/{ref}.lock"


@functools.cache
def _new_form(*_: str | None) -> ObjectFormat:
    with tempfile.TemporaryDirectory() as place:
        git(Path(place), "init", "-q", "--bare")
        return form_in(Path(place))
