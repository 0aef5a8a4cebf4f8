"""Finds files that tools obey under another name.

A link that tools obey leads to them (`CLAUDE.md -> docs/agents.md`), or a link or script among
git's hooks does (`.git/hooks/pre-commit -> ../../scripts/pre-commit`).
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gitcp.format.tree import LINK
from gitcp.git.repository import Repository
from gitcp.trust.autoexec import executed, folded, has_dot, words
from gitcp.trust.configured import Configured, tokens

_LINK_LINE = rb"(?s)\x00%o ([0-9a-f]+) \d\t([^\0]+)" % LINK
# A chain of links ends here, as in the kernel.
_STEPS = 40
# The most directories of a folder of hooks that are looked into.
_FOLDERS = 100
_LARGEST = 64 * 1024
# Links in these lead to the project's own packages.
_PACKAGES = words("node_modules site-packages venv .venv virtualenv")


class Obeyed(NamedTuple):
    """Paths behind links that tools obey or among git's hooks; and behind other dot links."""

    executed: Configured = Configured()
    dot: Configured = Configured()


def obeyed(repository: Repository, top: Path, hooks: Sequence[Path]) -> Obeyed:
    """Returns the paths in a work tree that tools obey under another name.

    `hooks` are the folders in which git looks for hooks.

    Raises:
        GitFailedError: git cannot list the files.
        CorruptError: a link that was deleted in the work tree is damaged in git.
    """
    root = os.fsencode(os.path.realpath(top))
    tracked = _tracked(repository)

    def target(path: bytes) -> bytes | None:
        """Returns where a link leads to, also if it was deleted in the work tree."""
        whole = os.path.join(root, path)
        if os.path.islink(whole):
            return os.readlink(whole)
        if path in tracked and not os.path.lexists(whole):
            return repository.objects.blob(tracked[path])
        return None

    runs = set(_of_hooks(root, hooks))
    dot: set[bytes] = set()
    for link in (*tracked, *_untracked(repository, root)):
        if not _PACKAGES.isdisjoint(folded(link)):
            continue
        if executed(link):
            runs.update(_trail(root, link, target))
        elif has_dot(link):
            dot.update(_trail(root, link, target))
    return Obeyed(_named(runs), _named(dot))


def _named(paths: set[bytes]) -> Configured:
    return Configured(frozenset(tuple(folded(path)) for path in paths))


def _tracked(repository: Repository) -> dict[bytes, bytes]:
    """Returns the ids of the links in git's index, by path."""
    found = {}
    # A search is faster than a look at each of the many lines that are not links.
    listed = b"\0" + repository.git("ls-files", "--stage", "-z")
    for match in re.finditer(_LINK_LINE, listed):
        found[match[2]] = bytes.fromhex(match[1].decode())
    return found


def _untracked(repository: Repository, root: bytes) -> Iterator[bytes]:
    """Yields links outside git's index that are, or are below, a name tools may obey."""
    besides = [f"--exclude={name}" for name in sorted(_PACKAGES)]
    listed = repository.git("ls-files", "--others", "-z", *besides)
    for path in listed.split(b"\0"):
        if (
            path
            and (has_dot(path) or executed(path))
            and os.path.islink(os.path.join(root, path))
        ):
            yield path


def _below(directory: bytes) -> Iterator[bytes]:
    """Yields the files and links below a directory, of its first directories."""
    for count, (folder, directories, files) in enumerate(os.walk(directory)):
        for name in (*directories, *files):
            yield os.path.join(folder, name)
        if count >= _FOLDERS:
            return


def _trail(
    root: bytes, link: bytes, target: Callable[[bytes], bytes | None]
) -> Iterator[bytes]:
    """Yields every path below the root that a link leads to or over, step by step."""
    waiting = link.split(b"/")
    done: list[bytes] = []
    steps = 0
    while waiting:
        name = waiting.pop(0)
        if name in {b"", b"."}:
            continue
        if name == b"..":
            if not done:
                return
            done.pop()
            continue
        leads = target(b"/".join([*done, name]))
        if leads is None:
            done.append(name)
            continue
        steps += 1
        if leads.startswith(b"/"):
            inner = _inside(root, leads)
            if inner is None:
                return
            done, leads = [], inner
        waiting = leads.split(b"/") + waiting
        if steps > _STEPS:
            return
        yield from _spelled(b"/".join([*done, *waiting]))
    yield from _spelled(b"/".join(done))


def _spelled(path: bytes) -> Iterator[bytes]:
    """Yields a path without `..`, unless it leaves the project or is all of it."""
    plain = os.path.normpath(path or b".")
    if plain.split(b"/")[0] not in {b".", b"..", b""}:
        yield plain


def _inside(root: bytes, path: bytes) -> bytes | None:
    """Returns an absolute path relative to the root, or None if it is not below it."""
    for whole in (path, os.path.realpath(path)):
        inner = os.path.relpath(whole, root)
        if inner.split(b"/")[0] not in {b".", b".."}:
            return inner
    return None


def _of_hooks(root: bytes, hooks: Sequence[Path]) -> Iterator[bytes]:
    """Yields the files below the root that git's hooks are links to, or name."""
    for folder in hooks:
        for path in _below(os.fsencode(folder)):
            if path.endswith(b".sample"):
                continue
            if os.path.islink(path):
                inner = _inside(root, os.path.realpath(path))
                if inner is not None:
                    yield inner
            for name in _named_in(path):
                if os.path.isfile(os.path.join(root, name)):
                    yield from _spelled(name)


def _named_in(path: bytes) -> Iterator[bytes]:
    """Yields what may be paths in a script, as below the top of the work tree."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _LARGEST:
            return
        with open(path, "rb") as file:
            text = os.fsdecode(file.read())
    except OSError:
        # git cannot run it either.
        return
    for line in text.splitlines():
        if not re.match(r"\s*#", line):
            for token in tokens(line):
                # A variable may stand in front: "$top"/tools/check
                yield os.fsencode(re.sub(r"^(\.{0,2}/)+", "", token))
