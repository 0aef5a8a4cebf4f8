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


@functools.cache
def _new_form(*_: str | None) -> ObjectFormat:
    with tempfile.TemporaryDirectory() as place:
        git(Path(place), "init", "-q", "--bare")
        return form_in(Path(place))
