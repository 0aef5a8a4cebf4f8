"""`gitcp verify`: checks everything that is stored."""

from collections.abc import Callable, Container, Sequence
from typing import NamedTuple

from gitcp.errors import CorruptError, NotFoundError
from gitcp.format.layout import BranchKey
from gitcp.git.repository import Repository
from gitcp.ledger.commits import ledgers
from gitcp.maintenance.check import Check
from gitcp.maintenance.check_logs import LogRoom
from gitcp.maintenance.problems import HEAD, Problem
from gitcp.names import encode
from gitcp.store.store import Store

Progress = Callable[[int, int], None]


class Moved(NamedTuple):
    """A branch whose newest checkpoint was damaged, by its ref.

    `was` is the old commit, `now` is the commit of the newest sound checkpoint; None if
    there was none: then the branch is gone.
    """

    ref: str
    was: str
    now: str | None


class Report(NamedTuple):
    """The result of `verify`; `repaired` lists the problems that were repaired.

    `moved` are the branches that were moved to their newest sound checkpoint.
    """

    checked: int
    problems: tuple[Problem, ...]
    repaired: tuple[Problem, ...] = ()
    moved: tuple[Moved, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify(
    store: Store,
    only: Sequence[tuple[str, str | None]] = (),
    *,
    progress: Progress | None = None,
) -> Report:
    """Checks every checkpoint and every ledger, of all branches or some (`only`).

    Damage in one checkpoint does not stop the check of others.

    Raises:
        NotFoundError: a branch of `only` does not exist.
    """
    refs = store.refs()
    chosen = set(refs) if not only else set()
    for session, branch in only:
        found = {
            key
            for key in refs
            if key[0] == encode(session) and branch in {None, _named(key[1], branch)}
        }
        if not found:
            place = session if branch is None else f"{session}/{branch}"
            raise NotFoundError(
                f"there is no checkpoint in {place}",
                hint="`gitcp sessions` lists what there is",
            )
        chosen |= found
    check = Check(store)
    for number, key in enumerate(sorted(chosen)):
        if progress is not None:
            progress(number, len(chosen))
        check.branch(key, refs[key])
    check.threads()
    for name in store.repository.refs.damaged() if not only else ():
        check.damaged(name)
    named = {encode(session) for session, _ in only}
    for component, oid in ledgers(store.repository):
        if not only or component in named:
            check.ledger(component, oid)
    damage = None if only else head_damage(store.repository)
    if damage is not None:
        check.problems.listed.append(Problem(None, b"HEAD", damage, about=HEAD))
    return Report(check.checked, tuple(check.problems.listed))


def head_damage(repository: Repository) -> str | None:
    """Returns what is wrong with the user's own HEAD, or None.

    gitcp still makes checkpoints then, but without a base.
    """
    head, _ = repository.head()
    if head is None:
        return None
    try:
        objects = repository.objects
        objects.tree(objects.commit(bytes.fromhex(head)).tree)
    except CorruptError as exc:
        return f"your own commit {head[:12]}: {exc.message}; `git fsck` says more"
    return None


def verify_new(
    store: Store,
    keys: Sequence[BranchKey],
    new: Container[bytes],
    room: LogRoom,
) -> list[Problem]:
    """Checks gitcp's own files in the `new` checkpoints of some branches.

    Logs are read as far as there is `room` for them.

    The caller has validated their trees and blobs; earlier checkpoints are not checked.
    """
    check = Check(store, new, room)
    refs = store.refs()
    for key in keys:
        check.branch(key, refs[key])
    return check.problems.listed


def _named(component: str, branch: str | None) -> str | None:
    return branch if branch is not None and encode(branch) == component else ""
