"""Makes a bare repository beside the user's, without starting git."""

import os
from pathlib import Path

from gitcp.format.oid import SHA1, ObjectFormat

_CONFIG = "[core]\n\trepositoryformatversion = {}\n\tbare = true\n"
_EXTENSION = "[extensions]\n\tobjectFormat = {}\n"


def make_bare(directory: Path, form: ObjectFormat) -> None:
    """Makes an empty bare repository in a directory: no template, no hook of the user's.

    `form` is that of its objects.

    Raises:
        OSError: the disk refused.
    """
    for path in ("refs", "objects/pack", "objects/info"):
        (directory / path).mkdir(parents=True)
    (directory / "HEAD").write_text("ref: refs/heads/none\n")
    (directory / "config").write_text(configuration_of(form))


def configuration_of(form: ObjectFormat) -> str:
    """Returns the configuration of a bare repository with objects of this form."""
    if form is SHA1:
        return _CONFIG.format(0)
    return _CONFIG.format(1) + _EXTENSION.format(form.name)


def borrow(directory: Path, objects: Path) -> None:
    """Makes a bare repository read missing objects from another object directory.

    Raises:
        OSError: the disk refused.
    """
    line = os.fsencode(objects) + b"\n"
    if b'"' in line or b"\\" in line:
        escaped = line[:-1].replace(b"\\", b"\\\\")
        line = b'"' + escaped.replace(b'"', b'\\"') + b'"\n'
    (directory / "objects" / "info" / "alternates").write_bytes(line)
