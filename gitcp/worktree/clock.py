"""Decides whether stat data will show a file's next change, by the clock of its disk.

Time stamps move in steps: of a tick of the kernel's clock, or of up to two seconds, as
on FAT. A change within one step leaves no trace. So a stamp is proof only after the
clock that made it has moved on, and that is the clock of the disk: gitcp writes to a
file of its own there and reads the stamp. For that it need not know the step. If a disk
has no file of gitcp's, such as one mounted below the work tree, gitcp uses the local
clock and the step that the disk's stamps have in common.

Nothing is proof after a clock was set back: a stamp can come a second time.
"""

import math
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

from gitcp import durable
from gitcp.worktree.plain import Proof

_BILLION = 1_000_000_000
# Two ticks of the clock that stamps files: 4 or 10 ms each on Linux.
_COARSE_CLOCK = 5 if sys.platform == "linux" else time.CLOCK_REALTIME
QUIET_NS = max(8_000_000, int(2e9 * time.clock_getres(_COARSE_CLOCK)))
_LONGEST_STEP = 2 * _BILLION
# A server's clock drifts against the local one; that is not setting it back.
_DRIFT_NS = 3 * _BILLION
_NOISE_NS = 5_000_000


class Reading(NamedTuple):
    """Clock readings at one moment, in nanoseconds.

    `local` and `disk` are ahead of the time since `boot` (an id); `now` is the disk's.
    """

    boot: bytes
    local: int
    disk: int
    now: int


class Clock:
    """The clock of the disk that holds `mark`, a file of gitcp's own."""

    def __init__(self, mark: Path) -> None:
        self._mark = mark
        self._device = 0
        self._modified = 0
        self._changed = 0
        # By device: the step that all stamps seen have in common.
        self._steps: dict[int, int] = {}
        # Disks whose clock does not move within a tick.
        self._slow: set[int] = set()
        self.look()
        self.reading = Reading(_boot_id(), _local(), self.now - _since_boot(), self.now)
        # Git compares whole seconds. A change after these moments may not show in them:
        # here, and on disks whose clock is not known.
        self.second = self.now // _BILLION
        self.second_elsewhere = (time.time_ns() - _LONGEST_STEP - QUIET_NS) // _BILLION

    @property
    def now(self) -> int:
        """The stamp that the disk gives at present, in nanoseconds."""
        return self._changed if self._stamps_changes() else self._modified

    @property
    def device(self) -> int:
        """The disk's number, as a stat has it."""
        return self._device

    def proof(self) -> Proof:
        """Returns what time stamps prove on the disk of the mark, as of the last `look`."""
        return Proof(self._device, self.now, self._stamps_changes())

    def look(self) -> None:
        """Reads the clock."""
        fd = _open(self._mark)
        try:
            os.pwrite(fd, b"0", 0)
            status = os.fstat(fd)
        finally:
            os.close(fd)
        self._device = status.st_dev
        self._modified, self._changed = status.st_mtime_ns, status.st_ctime_ns

    def _stamps_changes(self) -> bool:
        """Whether the disk keeps the time of the last change (ctime) as well."""
        return abs(self._changed - self._modified) <= _LONGEST_STEP

    def shows_changes(self, status: os.stat_result) -> bool:
        """Whether a change from now on will show in the time stamps."""
        if status.st_dev == self._device:
            return self._stamp(status) < self.now
        stamp = self._stamp(status)
        age = time.time_ns() - stamp
        return age >= 2 * self._step(status) + QUIET_NS

    def _stamp(self, status: os.stat_result) -> int:
        if status.st_dev == self._device:
            if self._stamps_changes():
                return status.st_ctime_ns
            return status.st_mtime_ns
        # The later one, unless it was set by hand.
        if status.st_mtime_ns > time.time_ns():
            return status.st_ctime_ns
        return max(status.st_ctime_ns, status.st_mtime_ns)

    def _step(self, status: os.stat_result) -> int:
        known = self._steps.get(status.st_dev, 0)
        step = math.gcd(known, status.st_ctime_ns)
        self._steps[status.st_dev] = step
        return min(step, _LONGEST_STEP) or _LONGEST_STEP

    def wait(self, status: os.stat_result) -> bool:
        """Waits until stat data will be proof; False, at once, if that would take long.

        The caller takes the stat again afterwards.
        """
        device = status.st_dev
        if device in self._slow:
            return False
        if device != self._device:
            time.sleep(QUIET_NS / _BILLION)
            if self._step(status) > QUIET_NS or self._stamp(status) > time.time_ns():
                self._slow.add(device)
            return True
        self.look()
        if self.shows_changes(status):
            return True
        if self._stamp(status) > self.now + QUIET_NS:
            return False
        before = self.now
        time.sleep(QUIET_NS / _BILLION)
        self.look()
        if self.now == before:
            self._slow.add(device)
        return True

    def went_back(self, before: Reading) -> bool:
        """Whether a clock was set back since an earlier reading."""
        now = self.reading
        if now.now < before.now:
            return True
        return now.boot == before.boot != b"" and (
            now.local < before.local - _NOISE_NS or now.disk < before.disk - _DRIFT_NS
        )


def _open(mark: Path) -> int:
    flags = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(mark, flags)
    except OSError:
        durable.replace(mark, b"0", sync=False)
        return os.open(mark, flags)


def _since_boot() -> int:
    # Only Linux has a clock that continues while the machine sleeps, by this name.
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock)


def _local() -> int:
    """Returns by how much the local clock is ahead of the time since the start.

    A process that is suspended between the two readings gets a larger difference: the
    smallest one is right.
    """
    return min(-_since_boot() + time.time_ns() for _ in range(3))


def _boot_id() -> bytes:
    """Returns the id of this boot of the machine; empty if it is not known."""
    try:
        fd = os.open("/proc/sys/kernel/random/boot_id", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, 64).strip()
    finally:
        os.close(fd)
