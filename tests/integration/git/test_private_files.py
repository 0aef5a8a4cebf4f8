"""What is not as gitcp left it in `.git/gitcp` is told in words, or healed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.inprocess import invoke

INTERNAL = 70
_JUNK = b"pack-\xb8\n\0\0\xff{["


@pytest.mark.parametrize("kind", ["directory", "junk"])
@pytest.mark.parametrize(
    "name", ["packs", "packs-kept", "pending.jsonl", "key", "redo", "tmp"]
)
def test_nothing_there_leads_to_an_internal_error(
    repo: Path, name: str, kind: str
) -> None:
    assert invoke(repo, "save", "-m", "one").returncode == 0
    place = repo / ".git" / "gitcp" / name
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    if kind == "junk":
        place.write_bytes(_JUNK)
    else:
        place.mkdir()
        (place / "x").write_bytes(_JUNK)
    (repo / "README.md").write_text("changed\n")
    for command in (["save"], ["gc"]):
        done = invoke(repo, *command)
        assert done.returncode != INTERNAL, done.stderr
        assert b"Traceback" not in done.stderr
    place.unlink() if kind == "junk" else shutil.rmtree(place, ignore_errors=True)
    assert invoke(repo, "save", "--allow-empty").returncode == 0
    assert invoke(repo, "verify").returncode == 0
