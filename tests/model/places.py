"""Disks to run on: those of the kernel by loop mounts, and mirrors with odd habits."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.support import odddisk

Populate = Callable[[Path], None]
Place = Callable[[Populate], AbstractContextManager[Path]]

SIZE = 400 << 20
# The mirrors: what is unusual about each. On a disk without hard links gitcp refuses to
# save, with exit code 20: its locks need them.
ODD: dict[str, dict[str, Any]] = {
    "fold": {"fold": True},
    "normalise": {"normalise": True},
    "coarse1": {"coarse": 1},
    "coarse2": {"coarse": 2},
    "apple": {"fold": True, "normalise": True, "coarse": 1},
}


@contextmanager
def _scratch() -> Iterator[Path]:
    base = Path(tempfile.mkdtemp(prefix="gitcp-model-"))
    try:
        yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _do(*args: str | Path) -> None:
    subprocess.run(args, check=True, capture_output=True)


@contextmanager
def _mounted(where: Path, *args: str | Path) -> Iterator[Path]:
    where.mkdir(exist_ok=True)
    _do("mount", *args, where)
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", where], capture_output=True, check=False)


@contextmanager
def here(populate: Populate) -> Iterator[Path]:
    """The disk that temporary files are on."""
    with _scratch() as base:
        populate(base)
        yield base


@contextmanager
def tmpfs(populate: Populate) -> Iterator[Path]:
    """A disk in memory."""
    with (
        _scratch() as base,
        _mounted(base / "disk", "-t", "tmpfs", "-o", "size=400m", "tmpfs") as disk,
    ):
        populate(disk)
        yield disk


@contextmanager
def loop(kind: str, populate: Populate) -> Iterator[Path]:
    """A disk in a file, with a file system of its own."""
    with _scratch() as base:
        image = base / "image"
        with image.open("wb") as file:
            file.truncate(SIZE)
        _do(f"mkfs.{kind}", "-q", image)
        with _mounted(base / "disk", "-o", "loop", image) as disk:
            populate(disk)
            yield disk


@contextmanager
def overlay(populate: Populate) -> Iterator[Path]:
    """A disk in two layers; what is there before a run is in the lower one."""
    with (
        _scratch() as base,
        _mounted(base / "layers", "-t", "tmpfs", "-o", "size=400m", "tmpfs") as layers,
    ):
        lower, upper, work = layers / "lower", layers / "upper", layers / "work"
        for each in (lower, upper, work):
            each.mkdir()
        populate(lower)
        layered = f"lowerdir={lower},upperdir={upper},workdir={work}"
        with _mounted(base / "disk", "-t", "overlay", "-o", layered, "overlay") as disk:
            yield disk


@contextmanager
def odd(habits: dict[str, Any], populate: Populate) -> Iterator[Path]:
    """A mirror with the habits of another disk."""
    with _scratch() as base, odddisk.odd_disk(base / "odd", **habits) as disk:
        populate(disk)
        yield disk


def behind(base: Path) -> Path:
    """Where the files of a mirror lie; the same place for any other disk."""
    hidden = base.with_name("behind")
    return hidden if base.name == "seen" and hidden.is_dir() else base


PLACES: dict[str, Place] = {
    "here": here,
    "tmpfs": tmpfs,
    "overlay": overlay,
    **{kind: partial(loop, kind) for kind in ("ext4", "xfs", "btrfs")},
    **{name: partial(odd, habits) for name, habits in ODD.items()},
}


def missing(place: str) -> str | None:
    """Why a place cannot be had on this machine; None if it can."""
    if place == "here":
        return None
    if place in ODD:
        return odddisk.missing()
    if os.geteuid() != 0:
        return "only root may mount"
    if place not in {"tmpfs", "overlay"} and shutil.which(f"mkfs.{place}") is None:
        return f"mkfs.{place} is not installed"
    return None
