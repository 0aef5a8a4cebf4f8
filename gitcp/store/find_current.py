"""Finds a checkpoint by its id, after pruning has given it another commit."""

from collections.abc import Iterable
from contextlib import suppress

from gitcp.errors import CorruptError, FormatTooNewError, NotFoundError
from gitcp.format import layout
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store


def find_current(store: Store, checkpoint: Checkpoint) -> Checkpoint:
    """Returns a checkpoint as a branch has it now: pruning gives it another commit.

    A caller that is going to rely on it holds its transaction or its work tree's lock:
    from then on `gc` waits.

    Raises:
        NotFoundError: the checkpoint was pruned.
    """
    trailers = checkpoint.trailers
    own = f"{layout.SESSIONS}{trailers.session}/{trailers.branch}"
    refs = store.repository.refs.list(f"{layout.SESSIONS}{trailers.session}/")
    seen: set[bytes] = set()
    # Others with its id: it was pruned or purged, or a stranger gave theirs that id.
    alike: list[Checkpoint] = []

    def among(tips: Iterable[str]) -> Checkpoint | None:
        for oid in tips:
            tip = None
            # One damaged branch must not hide the others.
            with suppress(CorruptError):
                tip = store.checkpoint(oid)
            for candidate in store.line(tip) if tip else ():
                if candidate.oid in seen:
                    break
                if candidate == checkpoint:
                    return candidate
                if candidate.id == checkpoint.id:
                    alike.append(candidate)
                seen.add(candidate.oid)
        return None

    first = [refs.pop(own)] if own in refs else []
    current = (
        among(first)
        or among(refs.values())
        or among(tip.commit for _, tip in store.tips())
        or among(store.repository.refs.list("refs/gitcp/").values())
        or next((one for one in alike if _stands_for(one, checkpoint)), None)
    )
    if current is None:
        raise NotFoundError(
            f"checkpoint {checkpoint.id} has been pruned",
            hint="`gitcp log` lists the others",
        )
    return current


def _stands_for(candidate: Checkpoint, checkpoint: Checkpoint) -> bool:
    """Whether one with the same id may take a checkpoint's place: no stranger's takes our own's."""
    if candidate.origin.here:
        return True
    try:
        return not checkpoint.origin.here
    except CorruptError:
        # `gc` has removed what would tell.
        return False


def find_by_id(store: Store, ident: str) -> Checkpoint | None:
    """Returns the checkpoint of an id on any branch; unreadable branches are skipped.

    One that was made here comes first: a stranger may have copied its id.
    """
    seen: set[str] = set()
    elsewhere: Checkpoint | None = None
    for _, tip in store.tips():
        try:
            for checkpoint in store.line(tip):
                if checkpoint.commit in seen:
                    break
                seen.add(checkpoint.commit)
                if checkpoint.id == ident:
                    elsewhere = elsewhere or checkpoint
                    if checkpoint.origin.here:
                        return checkpoint
        except (CorruptError, FormatTooNewError):
            continue
    return elsewhere
