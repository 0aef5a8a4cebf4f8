"""Directories that are built once in a process, and copied for each test.

A copy is what the builder would have made: modes, times and links are kept, and git's
index has the numbers of the copied files, so that git does not read them once more.
"""

from __future__ import annotations

import atexit
import copy
import hashlib
import os
import shutil
import struct
import tempfile
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TypeVar, cast

from gitcp.format.oid import SHA1, SHA256, ObjectFormat

T = TypeVar("T")
_built: dict[Hashable, Path] = {}
# What the builders of `once` returned.
_results: dict[Hashable, object] = {}
_STAT = struct.Struct(">10I")
_HEAD = struct.Struct(">4sII")
_NAME_LENGTH = 0xFFF
_WORD = 0xFFFFFFFF


def copied(target: Path, key: Hashable, build: Callable[[Path], object]) -> Path | None:
    """Fills an existing directory with what `build` makes of an empty one.

    `build` runs for the first of all calls with the same key and the same settings of
    git, in a directory of its own: what it makes must not hold the path. Returns that
    directory; None if `target` was not copied, but built.
    """
    settings = _settings()
    # git notes in a new repository what its disk can do, such as whether case counts.
    same_disk = os.lstat(target).st_dev == os.lstat(_home()).st_dev
    if settings is None or not same_disk:
        build(target)
        return None
    whole = (key, settings, os.geteuid())
    source = _built.get(whole)
    if source is None:
        source = Path(tempfile.mkdtemp(dir=_home()))
        build(source)
        _built[whole] = source
    _copy(source, target)
    return source


def once(target: Path, build: Callable[[Path], T], *more: Hashable) -> T:
    """Does to a directory what `build` does to one of the same content; returns the same.

    `build` runs for the first of all calls with it, with `more`, and with the same settings
    of git; it must not make anything that holds the path, or outside of it.
    """
    settings = _settings()
    if settings is None or os.lstat(target).st_dev != os.lstat(_home()).st_dev:
        return build(target)
    whole = (build, more, settings, os.geteuid())
    if whole not in _built:
        result = build(target)
        source = Path(tempfile.mkdtemp(dir=_home()))
        shutil.copytree(target, source, symlinks=True, dirs_exist_ok=True)
        _built[whole] = source
        _results[whole] = result
        return copy.deepcopy(result)
    for path in target.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    _copy(_built[whole], target)
    return cast("T", copy.deepcopy(_results[whole]))


def place_of(name: str) -> Path:
    """An empty directory that has the same path in each test of this process.

    With it `once` serves a builder of what holds that path.
    """
    place = _home() / "places" / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    for path in source.rglob("index"):
        if path.is_file() and path.parent.name == ".git":
            _refresh(target / path.parent.parent.relative_to(source))


def _settings() -> Hashable | None:
    """What of the environment git would obey; None if a file of settings counts."""
    names = (os.environ.get("GIT_CONFIG_GLOBAL"), os.environ.get("XDG_CONFIG_HOME"))
    files = [Path(names[0] or "/nowhere"), Path(names[1] or "/nowhere", "git")]
    files.append(Path(os.environ.get("HOME", "/nowhere"), ".gitconfig"))
    if any(path.exists() for path in files):
        return None
    return tuple(
        (name, value)
        for name, value in sorted(os.environ.items())
        if name.startswith("GIT_") and name != "GIT_CONFIG_GLOBAL"
    )


def _home() -> Path:
    if not _homes or _homes[-1][0] != os.getpid():
        path = Path(tempfile.mkdtemp(prefix="gitcp-templates-"))
        _homes.append((os.getpid(), path))
        _built.clear()
        atexit.register(_remove, os.getpid(), path)
    return _homes[-1][1]


_homes: list[tuple[int, Path]] = []


def _remove(process: int, path: Path) -> None:
    # A fork of this process ends too, and still needs what the other one copies.
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


def form_in(git_dir: Path) -> ObjectFormat:
    """Which ids a repository has, by its configuration."""
    if git_dir.is_file():
        git_dir = Path(git_dir.read_text().removeprefix("gitdir: ").strip())
    text = (git_dir / "config").read_text().lower()
    return SHA256 if "objectformat = sha256" in text else SHA1


def _refresh(top: Path) -> None:
    """Writes the numbers of a work tree's files into git's index (version 2)."""
    path = top / ".git" / "index"
    raw = bytearray(path.read_bytes())
    form = form_in(top / ".git")
    kind, version, count = _HEAD.unpack_from(raw)
    assert (kind, version) == (b"DIRC", 2), (kind, version)
    at = _HEAD.size
    for _ in range(count):
        flags = struct.unpack_from(">H", raw, at + _STAT.size + form.size)[0]
        length = flags & _NAME_LENGTH
        assert length < _NAME_LENGTH
        start = at + _STAT.size + form.size + 2
        name = os.fsdecode(bytes(raw[start : start + length]))
        found = os.lstat(top / name)
        seconds = (found.st_ctime_ns, found.st_mtime_ns)
        ctime, mtime = (divmod(value, 10**9) for value in seconds)
        *_, mode, uid, gid, _ = _STAT.unpack_from(raw, at)
        place = (found.st_dev & _WORD, found.st_ino & _WORD)
        # git leaves out the size of what was written in the index's own instant.
        _STAT.pack_into(
            raw, at, *ctime, *mtime, *place, mode, uid, gid, found.st_size & _WORD
        )
        at = (start + length - at) // 8 * 8 + 8 + at
    body = raw[: -form.size]
    raw[-form.size :] = hashlib.new(form.name, body, usedforsecurity=False).digest()
    path.write_bytes(raw)
