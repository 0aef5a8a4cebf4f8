"""A shared repository and two clones of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clones import clone, make_hub


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    """A bare repository with the project's first commit."""
    return make_hub(tmp_path)


@pytest.fixture
def ann(hub: Path) -> Path:
    return clone(hub, "ann")


@pytest.fixture
def bob(hub: Path) -> Path:
    return clone(hub, "bob")
