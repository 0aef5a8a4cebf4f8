"""Lists sessions and their branches."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from gitcp.errors import CorruptError, FormatTooNewError
from gitcp.format.layout import BranchKey
from gitcp.names import decode
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store


class BranchInfo(NamedTuple):
    """A branch and its newest checkpoint."""

    name: str
    tip: Checkpoint


class SessionInfo(NamedTuple):
    """A session and its branches, `main` first."""

    name: str
    branches: tuple[BranchInfo, ...]


def sessions(
    store: Store, *, unreadable: Callable[[str], None] | None = None
) -> list[SessionInfo]:
    """Returns every session, by name.

    A branch whose newest checkpoint cannot be read is told to `unreadable` and left
    out: one that is damaged must not hide the others.

    Raises:
        CorruptError, FormatTooNewError: a checkpoint cannot be read, and `unreadable` is not given.
    """
    by_session: dict[str, list[BranchInfo]] = {}
    for session, branch in branches(store, store.refs(), unreadable=unreadable):
        by_session.setdefault(session, []).append(branch)
    return [
        SessionInfo(
            name,
            tuple(sorted(lines, key=lambda each: (each.name != "main", each.name))),
        )
        for name, lines in sorted(by_session.items())
    ]


def branches(
    store: Store,
    refs: Mapping[BranchKey, str],
    *,
    unreadable: Callable[[str], None] | None = None,
) -> Iterator[tuple[str, BranchInfo]]:
    """Yields session and branch of each of these refs; see `sessions`.

    Raises:
        CorruptError, FormatTooNewError: a checkpoint cannot be read, and `unreadable` is not given.
    """
    for component, oid in refs.items():
        try:
            tip = store.sound(component, oid)
            if tip is None:
                continue
            session, branch = store.names(component, tip.commit)
        except (CorruptError, FormatTooNewError) as exc:
            if unreadable is None:
                raise
            name = "/".join(decode(part) or part for part in component)
            unreadable(f"{name} is left out: {exc.message}")
            continue
        yield session, BranchInfo(branch, tip)
