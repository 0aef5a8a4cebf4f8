"""Disks to run on."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

Populate = Callable[[Path], None]
Place = Callable[[Populate], AbstractContextManager[Path]]


@contextmanager
def here(populate: Populate) -> Iterator[Path]:
    """The disk that temporary files are on."""
    base = Path(tempfile.mkdtemp(prefix="gitcp-model-"))
    try:
        populate(base)
        yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)


PLACES: dict[str, Place] = {"here": here}
