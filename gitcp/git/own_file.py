"""Reads files of git's own, such as `info/exclude`, that a project may bring along."""

import os
import stat
from pathlib import Path


def read_regular(path: str | Path) -> bytes:
    """Returns the content of a regular file, also behind a link.

    Git takes a device for an empty file. To read one, `/dev/zero` for instance, would fill the
    memory; a pipe would be waited for.

    Raises:
        FileNotFoundError: there is no file, or something else.
        OSError: the file cannot be read.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    fd = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise FileNotFoundError(f"{path} is not a regular file")
        with open(fd, "rb", buffering=0, closefd=False) as file:
            return file.read()
    finally:
        os.close(fd)
