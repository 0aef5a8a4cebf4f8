"""A team that encrypts; each module makes its own `keys`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.crypt import Key, encrypt_to, reads_with

HOOK = Path(__file__).resolve().parents[3] / "hooks" / "update"


@pytest.fixture
def team(
    hub: Path, ann: Path, bob: Path, keys: dict[str, Key]
) -> tuple[Path, Path, Path]:
    """Ann and Bob encrypt to each other; the server has the hook."""
    shutil.copy(HOOK, hub / "hooks" / "update")
    for repo, name in ((ann, "ann"), (bob, "bob")):
        encrypt_to(repo, keys["ann"], keys["bob"])
        reads_with(repo, keys[name])
    return ann, hub, bob
