"""Reads git's configuration, and notices when its files change."""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

Values = dict[str, list[str]]

_FILE = "file:"
# The variables that decide which files git reads, and that hold further settings.
_VARIABLES = (
    "HOME",
    "XDG_CONFIG_HOME",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
)
_NUMBERED = ("GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_")
_SYSTEM = "/etc/gitconfig"
# How far a disk's clock may be behind the one that told when the files were read, in ns:
# the kernel's ticks, or whole seconds where a disk keeps no more.
_TICK = 50_000_000
_SECOND = 1_000_000_000

_Signature = tuple[int, int, int, int, int]


class Listed(NamedTuple):
    """What git listed: values by lower-case name, and the files they came from.

    `items` are names and values as git prints them, in its order.
    """

    values: Values
    origins: frozenset[str]
    includes: frozenset[tuple[str, str]]
    items: tuple[tuple[str, str], ...] = ()


# Of a repository whose configuration does not matter.
NONE = Listed({}, frozenset(), frozenset())


def parse(raw: bytes) -> Listed:
    """Returns what git printed for `questions.LIST`.

    `includes` pairs a file with a path named in it.
    """
    values: Values = {}
    origins: set[str] = set()
    includes: set[tuple[str, str]] = set()
    items: list[tuple[str, str]] = []
    words = raw.decode("utf-8", "surrogateescape").split("\0")
    for origin, item in zip(words[::2], words[1::2], strict=False):
        name, newline, value = item.partition("\n")
        if not name:
            continue
        # git lower-cases all but the middle part; no value means true.
        value = value if newline else "true"
        items.append((name, value))
        name = name.lower()
        values.setdefault(name, []).append(value)
        path = origin.removeprefix(_FILE) if origin.startswith(_FILE) else ""
        if path:
            origins.add(path)
        if name == "include.path" or (
            name.startswith("includeif.") and name.endswith(".path")
        ):
            includes.add((path, value))
    return Listed(values, frozenset(origins), frozenset(includes), tuple(items))


class Sources:
    """The files that a listing came from, or would come from if they were there.

    It does not read the disk before `changed` is called, which a program that runs one
    command never does. `since` is the time before git began to read, in nanoseconds.
    """

    def __init__(
        self, listed: Listed, *, base: Path, git_dir: Path, common_dir: Path, since: int
    ) -> None:
        self._listed = listed
        self._base = base
        self._git_dir = git_dir
        self._common_dir = common_dir
        self._since = since
        self._environment = _environment()
        self._paths: tuple[str, ...] = ()
        self._origins: frozenset[str] = frozenset()
        self._known: list[_Signature | None] | None = None

    def changed(self) -> bool:
        """Whether git might list something else now; costs a few calls of stat."""
        if _environment() != self._environment:
            return True
        if not self._paths:
            self._origins = frozenset(map(self._resolved, self._listed.origins))
            self._paths = tuple(self._origins | self._possible())
        now = list(map(_signature, self._paths))
        if self._known is not None:
            return now != self._known
        for path, signature in zip(self._paths, now, strict=True):
            if signature is None:
                if path in self._origins:
                    return True
            elif self._is_younger(signature):
                return True
        self._known = now
        return False

    def _is_younger(self, signature: _Signature) -> bool:
        """Whether a file may have been written after git began to read it."""
        changed = signature[-1]
        slack = _TICK if changed % _SECOND else 2 * _SECOND
        return changed + slack >= self._since

    def _possible(self) -> set[str]:
        """Returns the paths at which git looks for configuration, existing or not."""
        environ = os.environ
        found = {
            str(self._common_dir / "config"),
            str(self._git_dir / "config.worktree"),
        }
        if not environ.get("GIT_CONFIG_NOSYSTEM"):
            found.add(environ.get("GIT_CONFIG_SYSTEM") or _SYSTEM)
        if "GIT_CONFIG_GLOBAL" in environ:
            found.add(environ["GIT_CONFIG_GLOBAL"])
        else:
            home = os.path.expanduser("~")
            config = environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
            found |= {f"{home}/.gitconfig", f"{config}/git/config"}
        for origin, value in self._listed.includes:
            beside = os.path.dirname(self._resolved(origin))
            found.add(os.path.join(beside, os.path.expanduser(value)))
        if any(name.startswith("includeif.onbranch:") for name in self._listed.values):
            found.add(str(self._git_dir / "HEAD"))
            # Where HEAD is in no file of its own.
            found.add(str(self._git_dir / "reftable" / "tables.list"))
        return {path for path in found if path and "\0" not in path}

    def _resolved(self, origin: str) -> str:
        # git names files as it reaches them from the top of the work tree.
        return os.path.join(self._base, origin)


def _environment() -> Mapping[str, str]:
    environ = os.environ
    found = {name: environ[name] for name in _VARIABLES if name in environ}
    if "GIT_CONFIG_COUNT" in found:
        found |= {k: v for k, v in environ.items() if k.startswith(_NUMBERED)}
    return found


def now() -> int:
    """Returns the time to give as `since`, before git is started."""
    return time.time_ns()


def _signature(path: str) -> _Signature | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )


def is_set_by_user(values: Mapping[str, Sequence[str]], name: str) -> bool:
    """Whether a setting that gitcp gives its own git has another value, too."""
    # The value that gitcp gives its own git comes last, or alone if there is no other.
    return len(values.get(name, ())) > 1
