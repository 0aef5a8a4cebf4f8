"""Disks of a test's own, in files, whose power can be cut."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fault.harness import mounted

_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN
_WITHOUT_LOG_FLUSH = 2
_MEGABYTES = {"xfs": 320, "ext4": 48}


class Disk:
    """A file system in a file, to be mounted any number of times."""

    def __init__(self, base: Path, kind: str, options: str = "") -> None:
        self._image = base / "image"
        self._where = base / "disk"
        self._options = f"loop,{options}" if options else "loop"
        tool = shutil.which(f"mkfs.{kind}")
        if tool is None:
            pytest.skip(f"there is no mkfs.{kind}")
        with self._image.open("wb") as file:
            file.truncate(_MEGABYTES[kind] << 20)
        quiet = ["-q", "-F"] if kind == "ext4" else ["-q", "-f"]
        subprocess.run([tool, *quiet, self._image], check=True, capture_output=True)

    @contextmanager
    def mounted(self) -> Iterator[Path]:
        """Mounts it; on exit it is not only unmounted but let go of by the kernel."""
        with mounted(self._where, "-o", self._options, self._image) as disk:
            yield disk
        deadline = time.monotonic() + 60
        # While it has a loop device, the next mount may show the old file system.
        while self._devices():
            assert time.monotonic() < deadline, self._devices()
            time.sleep(0.01)

    def _devices(self) -> bytes:
        done = subprocess.run(
            ["losetup", "-j", self._image], capture_output=True, check=True
        )
        return done.stdout

    def sync(self) -> None:
        """Writes all to it, and does not wait for the other disks of the machine."""
        subprocess.run(["sync", "-f", self._where], check=True)

    def cut_power(self) -> None:
        """Loses what is not durable; each access until the next mount is an error."""
        fd = os.open(self._where, os.O_RDONLY)
        try:
            word = _WITHOUT_LOG_FLUSH.to_bytes(4, "little")
            fcntl.ioctl(fd, _SHUTDOWN, word)
        except OSError as exc:
            if exc.errno in {errno.ENOTTY, errno.EOPNOTSUPP, errno.EPERM}:
                pytest.skip(f"the file system cannot be shut down: {exc}")
            raise
        finally:
            os.close(fd)
