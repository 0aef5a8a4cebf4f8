"""Makes a bare repository beside the user's, without starting git."""

import os
from pathlib import Path

_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"


def make_bare(directory: Path) -> None:
    """Makes an empty bare repository in a directory: no template, no hook of the user's.

    Raises:
        OSError: the disk refused.
    """
    for path in ("refs", "objects/pack", "objects/info"):
        (directory / path).mkdir(parents=True)
    (directory / "HEAD").write_text("ref: refs/heads/none\n")
    (directory / "config").write_text(_CONFIG)


def borrow(directory: Path, objects: Path) -> None:
    """Has a bare repository read what it lacks from another directory of objects.

    Raises:
        OSError: the disk refused.
    """
    line = os.fsencode(objects) + b"\n"
    if b'"' in line or b"\\" in line:
        escaped = line[:-1].replace(b"\\", b"\\\\")
        line = b'"' + escaped.replace(b'"', b'\\"') + b'"\n'
    (directory / "objects" / "info" / "alternates").write_bytes(line)
