"""File systems with the habits of others: a FUSE mirror of a directory.

    with odd_disk(tmp_path / "disk", fold=True) as disk:
        repo = make_repo(disk / "repo")

The directory behind the mirror is `<where>/behind`, what tests use is `<where>/seen`.
Needs Linux, root or fusermount, libfuse 2 and fusepy; tests skip without them.
"""

from __future__ import annotations

import ctypes.util
import errno
import itertools
import os
import shutil
import stat
import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

_BILLION = 1_000_000_000
# libfuse renames a removed file that is open to this.
_HIDDEN = ".fuse_hidden"
# What utimensat calls UTIME_NOW and UTIME_OMIT, as fusepy passes them on.
_NOW, _KEEP = (1 << 30) - 1, (1 << 30) - 2
# Some of the code points that ext4 ignores.
_WITHOUT_A_LOOK = "\u00ad\u200c\u2060\ufe0f"
# Long enough for a machine that does other things as well.
_PATIENCE = 30


def missing() -> str | None:
    """Why no mirror can be mounted here; None if one can."""
    if not sys.platform.startswith("linux"):
        return "the mirrors of odd disks need Linux"
    if find_spec("fuse") is None:
        return "fusepy is not installed"
    if ctypes.util.find_library("fuse") is None:
        return "libfuse 2 is not installed"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "/dev/fuse cannot be used"
    if os.geteuid() != 0 and shutil.which("fusermount") is None:
        return "only root may mount, and fusermount is not installed"
    return None


needs_fuse = pytest.mark.skipif(missing() is not None, reason=missing() or "")


@contextmanager
def odd_disk(
    where: Path,
    *,
    fold: bool = False,
    ignore: bool = False,
    normalise: bool = False,
    coarse: float = 0,
    nolinks: bool = False,
    unsteady: bool = False,
    clock: bool = False,
) -> Iterator[Path]:
    """Mounts a mirror of `where/behind` and yields where it is seen.

    `fold`: names have no case, and keep the one they were made with, as on APFS.
    `ignore`: nor do code points without a look count, as on ext4 with casefold.
    `normalise`: names are stored in NFD, and found in each form, as on HFS+.
    `coarse`: the step of the time stamps, in seconds. `nolinks`: no hard links.
    `unsteady`: another inode number at each look. `clock`: the disk stamps with a
    clock of its own, which `set_clock` moves and `stop_clock` stops.
    """
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    behind, seen = where / "behind", where / "seen"
    behind.mkdir(parents=True)
    seen.mkdir()
    chosen = [
        *["fold"] * fold,
        *["normalise"] * normalise,
        *["nolinks"] * nolinks,
        *["unsteady"] * unsteady,
        *["clock"] * clock,
        f"coarse={int(coarse * _BILLION)}",
    ]
    with (where / "log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, __file__, behind, seen, ",".join(chosen)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        _wait(server, seen, where / "log")
        yield seen
    finally:
        # What is still open there, as packs by libgit2, keeps the server: it will not end.
        patience = _PATIENCE if _unmount(seen) else 0
        try:
            server.wait(patience)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def set_clock(seen: Path, ahead: float) -> None:
    """Moves the clock of a mirror with a `clock`, in seconds ahead of the true one."""
    (seen.parent / "clock").write_text(f"ahead {int(ahead * _BILLION)}")


def stop_clock(seen: Path, at: float) -> None:
    """Stops the clock of a mirror with a `clock`, at a time in seconds since 1970."""
    (seen.parent / "clock").write_text(f"at {int(at * _BILLION)}")


def _wait(server: subprocess.Popen, seen: Path, log: Path) -> None:
    until = time.monotonic() + _PATIENCE
    while not os.path.ismount(seen):
        if server.poll() is not None or time.monotonic() > until:
            pytest.skip(f"a mirror cannot be mounted: {log.read_text().strip()}")
        time.sleep(0.02)


def _unmount(seen: Path) -> bool:
    """Unmounts a mirror; returns whether nothing in it was in use."""
    program = ["umount"] if os.geteuid() == 0 else ["fusermount", "-u"]
    for lazily in ([], ["-l" if program == ["umount"] else "-z"]):
        done = subprocess.run(
            [*program, *lazily, seen], capture_output=True, check=False
        )
        if done.returncode == 0 or not os.path.ismount(seen):
            return not lazily
    return False


class Mirror:
    """The operations; fusepy calls them with paths from the mirror's top.

    fusepy is told that names are Latin-1, so that any bytes pass.
    """

    use_ns = True
    # Open files that have lost their name are served all the same.
    flag_nullpath_ok = True

    def __init__(self, behind: str, options: str) -> None:
        chosen = {
            name: value
            for name, _, value in (word.partition("=") for word in options.split(","))
        }
        self._behind = os.fsencode(behind)
        self._fold = "fold" in chosen
        self._ignore = "ignore" in chosen
        self._normalise = "normalise" in chosen
        self._links = "nolinks" not in chosen
        self._unsteady = "unsteady" in chosen
        self._step = int(chosen.get("coarse") or 0)
        self._clock = "clock" in chosen
        self._looks = itertools.count(1)
        # By inode: the stamps of the disk's own clock, modified and changed.
        self._stamps: dict[int, tuple[int, int]] = {}

    def __call__(self, operation: str, *args: Any) -> Any:
        method = getattr(self, operation, None)
        if method is None:
            raise OSError(errno.ENOSYS, "not there")
        return method(*args)

    # --- names ----------------------------------------------------------------

    def _form(self, name: bytes) -> bytes:
        """The form in which a name is stored."""
        if not self._normalise:
            return name
        text = name.decode("utf-8", "surrogateescape")
        return unicodedata.normalize("NFD", text).encode("utf-8", "surrogateescape")

    def _key(self, name: bytes) -> bytes:
        """What two names have in common that are one to this disk."""
        name = self._form(name)
        if not self._fold:
            return name
        text = name.decode("utf-8", "surrogateescape")
        if self._ignore:
            text = "".join(c for c in text if c not in _WITHOUT_A_LOOK)
        return text.casefold().encode("utf-8", "surrogateescape")

    def _entry(self, directory: bytes, name: bytes) -> bytes:
        """The name of an entry as it is stored, or as it would be."""
        stored = self._form(name)
        if not self._fold or os.path.lexists(directory + b"/" + stored):
            return stored
        wanted = self._key(name)
        try:
            found = (n for n in os.listdir(directory) if self._key(n) == wanted)
            return next(found, stored)
        except OSError:
            return stored

    def _real(self, path: str) -> bytes:
        at = self._behind
        for name in path.encode("latin-1").split(b"/"):
            if name:
                at += b"/" + self._entry(at, name)
        return at

    # --- time stamps ----------------------------------------------------------

    def _now(self) -> int:
        try:
            text = Path(os.fsdecode(self._behind)).with_name("clock").read_text()
        except FileNotFoundError:
            return time.time_ns()
        how, _, value = text.partition(" ")
        return int(value) + (time.time_ns() if how == "ahead" else 0)

    def _stamp(
        self, *paths: bytes, fd: int | None = None, modified: int | None = None
    ) -> None:
        """Notes that something changed, `modified` when; now if that is None."""
        if not self._clock:
            return
        now = self._now()
        looks = [os.lstat(path) for path in paths if os.path.lexists(path)]
        if fd is not None:
            looks.append(os.fstat(fd))
        for found in looks:
            when = now if modified is None else modified
            self._stamps[found.st_ino] = when, now

    def _changed(self, path: bytes) -> None:
        """Notes that a file was changed without its content."""
        found = os.lstat(path)
        known = self._stamps.get(found.st_ino, (found.st_mtime_ns, 0))
        self._stamp(path, modified=known[0])

    def _floor(self, value: int) -> int:
        return value // self._step * self._step if self._step else value

    # --- operations -----------------------------------------------------------

    def init(self, path: str) -> None: ...
    def destroy(self, path: str) -> None: ...
    def opendir(self, path: str) -> int:
        return 0

    def releasedir(self, path: str, fd: int) -> int:
        return 0

    def fsyncdir(self, path: str, datasync: int, fd: int) -> int:
        return 0

    def flush(self, path: str, fd: int) -> int:
        return 0

    def access(self, path: str, mode: int) -> int:
        real = self._real(path)
        if not os.path.islink(real) and not os.access(real, mode):
            raise PermissionError(errno.EACCES, "denied")
        return 0

    def getattr(self, path: str, fd: int | None = None) -> dict[str, int]:
        found = os.lstat(self._real(path)) if fd is None else os.fstat(fd)
        modified, changed = self._stamps.get(
            found.st_ino, (found.st_mtime_ns, found.st_ctime_ns)
        )
        inode = found.st_ino
        if self._unsteady:
            inode = inode * 10_000 + next(self._looks) % 10_000
        return {
            "st_mode": found.st_mode,
            "st_nlink": found.st_nlink,
            "st_uid": found.st_uid,
            "st_gid": found.st_gid,
            "st_size": found.st_size,
            "st_blocks": found.st_blocks,
            "st_ino": inode,
            "st_atime": self._floor(found.st_atime_ns),
            "st_mtime": self._floor(modified),
            "st_ctime": self._floor(changed),
        }

    def readdir(self, path: str, fd: int) -> list[str]:
        names = (name.decode("latin-1") for name in os.listdir(self._real(path)))
        return [".", "..", *(n for n in names if not n.startswith(_HIDDEN))]

    def readlink(self, path: str) -> str:
        return os.readlink(self._real(path)).decode("latin-1")

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(self._real(path))
        return {
            name: getattr(found, name) for name in dir(found) if name.startswith("f_")
        }

    def mknod(self, path: str, mode: int, device: int) -> int:
        real = self._real(path)
        os.mknod(real, mode, device)
        self._stamp(real, os.path.dirname(real))
        return 0

    def mkdir(self, path: str, mode: int) -> int:
        real = self._real(path)
        os.mkdir(real, mode)
        self._stamp(real, os.path.dirname(real))
        return 0

    def rmdir(self, path: str) -> int:
        real = self._real(path)
        for name in os.listdir(real):
            if name.startswith(_HIDDEN.encode()):
                os.unlink(real + b"/" + name)
        os.rmdir(real)
        self._stamp(os.path.dirname(real))
        return 0

    def unlink(self, path: str) -> int:
        real = self._real(path)
        inode = os.lstat(real).st_ino
        os.unlink(real)
        self._stamps.pop(inode, None)
        self._stamp(os.path.dirname(real))
        return 0

    def symlink(self, path: str, target: str) -> int:
        real = self._real(path)
        os.symlink(target.encode("latin-1"), real)
        self._stamp(real, os.path.dirname(real))
        return 0

    def link(self, path: str, target: str) -> int:
        if not self._links:
            raise PermissionError(errno.EPERM, "no hard links here")
        real = self._real(path)
        os.link(self._real(target), real, follow_symlinks=False)
        self._changed(real)
        self._stamp(os.path.dirname(real))
        return 0

    def rename(self, old: str, new: str) -> int:
        source, target = self._real(old), self._real(new)
        if source == target:
            # The same entry by another spelling: it takes the new one.
            name = new.encode("latin-1").rpartition(b"/")[2]
            target = os.path.dirname(source) + b"/" + self._form(name)
        os.rename(source, target)
        self._changed(target)
        self._stamp(os.path.dirname(source), os.path.dirname(target))
        return 0

    def chmod(self, path: str, mode: int) -> int:
        real = self._real(path)
        os.chmod(real, mode)
        self._changed(real)
        return 0

    def chown(self, path: str, uid: int, gid: int) -> int:
        real = self._real(path)
        os.chown(real, uid, gid, follow_symlinks=False)
        self._changed(real)
        return 0

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        real = self._real(path)
        now = self._now()
        found = os.lstat(real)
        asked = times or (_NOW, _NOW)
        kept = (
            found.st_atime_ns,
            self._stamps.get(found.st_ino, (found.st_mtime_ns,))[0],
        )
        accessed, modified = (
            now if want == _NOW else keep if want == _KEEP else want
            for want, keep in zip(asked, kept, strict=True)
        )
        os.utime(real, ns=(accessed, modified), follow_symlinks=False)
        self._stamp(real, modified=modified)
        return 0

    def open(self, path: str, flags: int) -> int:
        fd = os.open(self._real(path), flags & ~os.O_CREAT)
        if flags & os.O_TRUNC:
            self._stamp(fd=fd)
        return fd

    def create(self, path: str, mode: int, _: object = None) -> int:
        real = self._real(path)
        fd = os.open(real, os.O_RDWR | os.O_CREAT | os.O_TRUNC, stat.S_IMODE(mode))
        self._stamp(os.path.dirname(real), fd=fd)
        return fd

    def read(self, path: str, size: int, offset: int, fd: int) -> bytes:
        return os.pread(fd, size, offset)

    def write(self, path: str, data: bytes, offset: int, fd: int) -> int:
        done = os.pwrite(fd, data, offset)
        self._stamp(fd=fd)
        return done

    def truncate(self, path: str, length: int, fd: int | None = None) -> int:
        real = self._real(path) if fd is None else fd
        os.truncate(real, length)
        if isinstance(real, bytes):
            self._stamp(real)
        else:
            self._stamp(fd=real)
        return 0

    def fsync(self, path: str, datasync: int, fd: int) -> int:
        os.fsync(fd)
        return 0

    def release(self, path: str, fd: int) -> int:
        os.close(fd)
        return 0


def _serve(behind: str, seen: str, options: str) -> None:
    from fuse import FUSE, FuseOSError

    class Served(Mirror):
        def __call__(self, operation: str, *args: Any) -> Any:
            try:
                return super().__call__(operation, *args)
            except OSError as exc:
                raise FuseOSError(exc.errno or errno.EIO) from exc

    os.umask(0)
    FUSE(
        Served(behind, options),
        seen,
        encoding="latin-1",
        foreground=True,
        nothreads=True,
        attr_timeout=0,
        entry_timeout=0,
        negative_timeout=0,
        use_ino=True,
        default_permissions=True,
        allow_other=os.geteuid() == 0,
    )


if __name__ == "__main__":
    _serve(*sys.argv[1:])
