"""Installs the skill and the slash commands where agents look for them, and removes them.

A file that is not ours, or that the user has changed, is left alone and reported.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp import durable
from gitcp.clients import skill
from gitcp.clients.client import SCOPES, ClientPlaces
from gitcp.clients.skill import Mark, SkillFile
from gitcp.errors import PartialError, UsageError
from gitcp.git.repository import Repository
from gitcp.project.installers import Done

_SCOPES = SCOPES[:2]
# For instance, an update of gitcp brought new files.
_INCOMPLETE = "files are missing: run `gitcp install skill --scope {}` again"


class _Present(NamedTuple):
    """What lies where a file goes: its mark, or `ours` false if it is not ours."""

    there: bool
    mark: Mark | None

    @property
    def ours(self) -> bool:
        return self.mark is not None and self.mark.unchanged


def install(what: str, places: ClientPlaces, scope: str | None) -> Done:
    """Writes the files of a scope, the user's own by default; idempotent.

    Raises:
        UsageError: there is no such scope, or no project, or a link leads out of it.
        PartialError: written, except for files that are not ours.
        StorageError: a file cannot be written.
    """
    scope = scope or _SCOPES[0]
    files = _files(places, scope)
    if scope != _SCOPES[0] and places.top is not None:
        _refuse_ways_out(files, places.top)
    changed = False
    left = []
    for one in files:
        present = _look(one.path)
        if present.there and not present.ours:
            left.append(_whose(one, present))
            continue
        if present.mark is not None and present.mark.content == one.content:
            continue
        with durable.storage(f"writing {one.path}"):
            created_directories = (
                present.mark.made if present.mark else _make(one.path.parent)
            )
            mode = durable.usual_mode(one.path)
            durable.replace(one.path, skill.marked(one, created_directories), mode=mode)
        changed = True
    if left:
        raise PartialError(
            f"{len(left)} of {len(files)} files were not written by gitcp and were"
            " left alone",
            left=left,
            hint="the others are installed; move your own files away to install the"
            " rest",
        )
    return Done(what, scope, _root(places, scope), changed, _notes(files))


def uninstall(what: str, places: ClientPlaces, scope: str | None) -> list[Done]:
    """Removes the files of one scope, or of both, and the directories made for them.

    Raises:
        PartialError: removed, except for files that the user has changed.
    """
    done = []
    left = []
    for one in (scope,) if scope else _SCOPES:
        if scope is None and one != _SCOPES[0] and places.top is None:
            continue
        files = _files(places, one)
        ours = [
            (file.path, present.mark.made)
            for file in files
            if (present := _look(file.path)).ours and present.mark is not None
        ]
        for path, _ in ours:
            with durable.storage(f"removing {path}"):
                durable.remove(path)
        # The first file's record counts the directories that later files lie in.
        for path, created_directories in reversed(ours):
            _remove_directories(path, created_directories)
        left += [
            _whose(file, present)
            for file in files
            if (present := _look(file.path)).mark is not None
        ]
        done.append(Done(what, one, _root(places, one), changed=bool(ours)))
    if left:
        raise PartialError(
            f"{len(left)} files were changed since and were left alone",
            left=left,
            hint="the others were removed; delete these by hand if you do not need"
            " them",
        )
    return done


def installed(what: str, places: ClientPlaces, repository: Repository) -> list[Done]:
    """Returns the scopes in which files are in place; a note says if some are missing."""
    del repository
    return in_scopes(places, what)


def in_scopes(places: ClientPlaces, what: str = "skill") -> list[Done]:
    """Does the same as `installed`, without a repository."""
    installations = []
    for scope in _SCOPES:
        with suppress(UsageError, OSError):
            files = _files(places, scope)
            there = sum(_look(one.path).mark is not None for one in files)
            if there:
                notes = () if there == len(files) else (_INCOMPLETE.format(scope),)
                root = _root(places, scope)
                done = Done(what, scope, root, changed=False, notes=notes)
                installations.append(done)
    return installations


def _files(places: ClientPlaces, scope: str) -> list[SkillFile]:
    if scope == "user":
        return skill.user_files(places.home, places.environment)
    if scope != "project":
        raise UsageError(
            "agents look for a skill in the project or in your home, not for a private"
            " one in a project",
            hint="use --scope user or --scope project",
        )
    if places.top is None:
        raise UsageError(
            "--scope project needs a project, and this is not a git repository",
            hint="run it in one, or use --scope user",
        )
    return skill.project_files(places.top)


def _refuse_ways_out(files: list[SkillFile], top: Path) -> None:
    """Refuses directories that lie elsewhere: their link may have come with the project."""
    inside = os.path.realpath(top)
    for one in files:
        target = Path(os.path.realpath(one.path.parent))
        if not target.is_relative_to(inside):
            raise UsageError(
                f"{one.path.parent} leads out of the project, to {target}",
                hint="nothing was changed; replace the link, or use `--scope user`",
            )


def _root(places: ClientPlaces, scope: str) -> str:
    return str(places.home if scope == "user" or places.top is None else places.top)


def _notes(files: list[SkillFile]) -> tuple[str, ...]:
    by_clients: dict[str, list[str]] = {}
    for one in files:
        # A command is named by what the user types, a skill by its path.
        by_clients.setdefault(one.clients, []).append(one.typed or str(one.path))
    return tuple(f"{clients}: {', '.join(by)}" for clients, by in by_clients.items())


def _look(path: Path) -> _Present:
    try:
        # A link belongs to the user, wherever it points; opening a pipe would never end.
        if not stat.S_ISREG(path.lstat().st_mode):
            return _Present(there=True, mark=None)
        return _Present(there=True, mark=skill.mark_of(path.read_bytes()))
    except FileNotFoundError:
        return _Present(there=False, mark=None)
    except OSError:
        return _Present(there=True, mark=None)


def _whose(one: SkillFile, present: _Present) -> str:
    whose = "was changed since" if present.mark is not None else "is not gitcp's"
    return f"{one.path} {whose}"


def _make(directory: Path) -> int:
    """Makes a directory and returns how many directories were made for it."""
    count = 0
    current = directory
    while not os.path.lexists(current):
        count += 1
        current = current.parent
    durable.make_directories(directory)
    return count


def _remove_directories(path: Path, count: int) -> None:
    """Removes the directories made for a file, if they are empty."""
    directory = path.parent
    for _ in range(count):
        try:
            directory.rmdir()
        except OSError:
            return
        directory = directory.parent
