"""Matches ids, labels and commits with checkpoints; one's own come first."""

import re
from collections.abc import Iterable, Iterator

from gitcp.checkpoints import labels
from gitcp.checkpoints.precedence import Precedence
from gitcp.errors import AmbiguousError, UsageError
from gitcp.format.layout import BranchKey
from gitcp.format.oid import MOST_DIGITS
from gitcp.names import encode
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

# The fewest digits of an id, or of a commit, that select.
SHORTEST = 4
_SHOWN = 8


def on_line(
    store: Store, tip: Checkpoint, what: str, *, own: bool = False
) -> Checkpoint | None:
    """Returns the checkpoint of a line that an id, a label or a commit names; None for none.

    With `own` only the user's own count.

    Raises:
        AmbiguousError: the text names several.
    """
    matches = list(_matching(store, tip, what))
    if own:
        matches = list(filter(Precedence(store).is_own, matches))
    return _only(store, matches, what) if matches else None


def anywhere(store: Store, what: str, *, own: bool = False) -> Checkpoint | None:
    """Returns what `on_line` does, from all branches.

    Raises:
        AmbiguousError: the text names several.
    """
    if what == "last":
        return None
    found = (on_line(store, tip, what, own=own) for _, tip in store.tips())
    return one_of(store, (each for each in found if each is not None), what)


def one_of(store: Store, found: Iterable[Checkpoint], what: str) -> Checkpoint | None:
    """Returns the one checkpoint that was found, maybe in several commits; None for none.

    Raises:
        AmbiguousError: several were found.
    """
    by_id: dict[str, Checkpoint] = {}
    for each in Precedence(store).first(found):
        by_id.setdefault(each.id, each)
    if len(by_id) > 1:
        raise ambiguous(list(by_id.values()), what)
    return next(iter(by_id.values()), None)


def by_place(
    store: Store, tip: Checkpoint, key: BranchKey, number: int
) -> Checkpoint | None:
    """Returns the checkpoint with a number on its branch; None if the line has none."""
    rank = Precedence(store)
    found: Checkpoint | None = None
    for checkpoint in store.line(tip):
        if checkpoint.trailers.key == key and checkpoint.seq == number:
            if rank.is_own(checkpoint):
                return checkpoint
            # The oldest: a stranger can only put one with the same number on top.
            found = checkpoint
    return found


def is_named(checkpoint: Checkpoint, text: str) -> bool:
    """Whether a text is a checkpoint's own id or label, or its number."""
    trailers = checkpoint.trailers
    return (
        trailers.id.startswith(text)
        or checkpoint.commit.startswith(text)
        or has_label(checkpoint, text)
        or text == str(trailers.seq)
    )


def has_label(checkpoint: Checkpoint, what: str) -> bool:
    """Whether a checkpoint has the label that a text, or `label=` and a text, selects."""
    label = _label(what)
    return label is not None and checkpoint.label_component == label


def _label(what: str) -> str | None:
    try:
        return encode(what.removeprefix(labels.PREFIX))
    except UsageError:
        return None


def _matching(store: Store, tip: Checkpoint, what: str) -> Iterator[Checkpoint]:
    label = _label(what)
    is_hex = re.fullmatch(rf"[0-9a-f]{{{SHORTEST},{MOST_DIGITS}}}", what)
    by_commit: dict[str, Checkpoint] = {}
    for checkpoint in store.line(tip):
        trailers = checkpoint.trailers
        if label is not None and checkpoint.label_component == label:
            yield checkpoint
        elif is_hex:
            if trailers.id.startswith(what) or checkpoint.commit.startswith(what):
                yield checkpoint
            elif trailers.base is not None and trailers.base.startswith(what):
                # The oldest one with this base is the one made at the commit.
                by_commit[trailers.base] = checkpoint
    yield from by_commit.values()


def _only(store: Store, matches: list[Checkpoint], what: str) -> Checkpoint:
    # Most names match one checkpoint, and whose that is does not matter.
    if len(matches) > 1:
        matches = Precedence(store).first(matches)
    labelled = [match for match in matches if has_label(match, what)]
    if labelled:
        # A label given again moves: the newest has it. But one that a stranger gave the
        # same id can only be on top.
        return [match for match in labelled if match.id == labelled[0].id][-1]
    if len({match.oid for match in matches}) == 1:
        return matches[0]
    raise ambiguous(matches, what)


def ambiguous(matches: list[Checkpoint], what: str) -> AmbiguousError:
    """Returns the error for a text that names several checkpoints."""
    shown = ", ".join(
        f"{match.id} (#{match.number})"
        if match.number is not None
        else f"{match.id} ({match.session}/{match.branch}:{match.seq})"
        for match in matches[:_SHOWN]
    )
    more = " …" if len(matches) > _SHOWN else ""
    return AmbiguousError(
        f"{what!a} matches {len(matches)} checkpoints: {shown}{more}",
        hint="give more digits of the id, or the number",
    )
