"""Selects a checkpoint: `[SESSION[/BRANCH]:]WHAT` (docs/cli.md)."""

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from gitcp.checkpoints import labels, times
from gitcp.checkpoints.numbered import by_number
from gitcp.checkpoints.reach import Reach, readable
from gitcp.checkpoints.standing import before_newest, stands_on, timeline
from gitcp.errors import (
    AmbiguousError,
    CorruptError,
    FormatTooNewError,
    GitcpError,
    NotFoundError,
    TransferError,
    UsageError,
)
from gitcp.format.oid import MOST_DIGITS, PATTERN
from gitcp.names import encode, quoted
from gitcp.project.workspace import Current, Workspace, may_have_been_private
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

if TYPE_CHECKING:
    from gitcp.checkpoints.commit_lookup import CommitStory

# What commands take where no checkpoint is named.
LAST = "last"
_SHORTEST = 4
_SHOWN = 8
# Reading every conversation is for what can only be the id of a message.
_MESSAGE_ID = 16
_DISTANCE = r"(?:last)?~(\d{1,9})"
# A branch name of git's may end this way, too, but no selector is looked up as one.
_DATED = r"(.+)@(\{.+\})"
_NUMBER = r"#?([1-9]\d{0,14})"
_COMMIT = rf"[0-9a-f]{{{_SHORTEST},{MOST_DIGITS}}}|(?:HEAD|@)(?:[~^]\d*)*"


class Selected(NamedTuple):
    """A checkpoint and, if it was selected by a commit, how they are related."""

    checkpoint: Checkpoint
    behind: "CommitStory | None" = None


def select(workspace: Workspace, selector: str | None) -> Checkpoint:
    """Returns the checkpoint a selector names; None stands for `last`.

    Raises:
        NotFoundError: the selector matches no checkpoint.
        AmbiguousError: the selector matches several.
        UsageError: the selector cannot be parsed.
    """
    return look_up(workspace, selector).checkpoint


def look_up(workspace: Workspace, selector: str | None) -> Selected:
    """Returns what a selector names, as `select` does, and how it was found.

    Raises:
        NotFoundError: the selector matches no checkpoint.
        AmbiguousError: the selector matches several.
        UsageError: the selector cannot be parsed.
    """
    if selector == "":
        # As a script has it whose search found nothing; `last` is not what it meant.
        raise UsageError("the selector is empty", hint="`gitcp log` lists checkpoints")
    text = selector or LAST
    if match := re.fullmatch(_NUMBER, text):
        numbered = by_number(workspace, int(match[1]))
        if numbered is not None:
            return Selected(numbered)
        if text.startswith("#") or len(text) < _SHORTEST:
            raise NotFoundError(
                f"there is no checkpoint #{match[1]}", hint="`gitcp log` lists them"
            )
    if re.fullmatch(PATTERN, text):
        # It may well be quoted in a conversation, too, where messages are looked for.
        story = _story(workspace, text)
        if story is not None and (story.made == "at" or story.replaces):
            return Selected(story.chosen, story)
    # Most restores name none, and the patterns of times take a while to compile.
    if text != LAST and times.is_time(text) and not workspace.bare:
        return Selected(_at_time(workspace, text))
    try:
        checkpoint = _by_name(workspace, text)
    except NotFoundError:
        story = _story(workspace, text)
        if story is None:
            raise
        return Selected(story.chosen, story)
    base = checkpoint.trailers.base
    meant = base is not None and _is_prefix(text, base)
    if meant and base is not None and not _is_named(checkpoint, text):
        story = _story(workspace, base)
        if story is not None and story.made == "at":
            return Selected(story.chosen, story)
    return Selected(checkpoint)


def _story(workspace: Workspace, text: str) -> "CommitStory | None":
    from gitcp.checkpoints import commit_lookup  # noqa: PLC0415  most selectors are not commits

    # A name such as `main` may be meant as a session, so it is not looked up as a commit.
    if not re.fullmatch(_COMMIT, text):
        return None
    commit = commit_lookup.resolve(workspace, text)
    return commit_lookup.story_of(workspace, commit) if commit else None


def _is_prefix(text: str, oid: str) -> bool:
    return len(text) >= _SHORTEST and oid.startswith(text)


def _is_named(checkpoint: Checkpoint, text: str) -> bool:
    """Whether a text is a checkpoint's own id or label, or its number."""
    trailers = checkpoint.trailers
    return (
        trailers.id.startswith(text)
        or checkpoint.commit.startswith(text)
        or _has_label(checkpoint, _label(text))
        or text == str(trailers.seq)
    )


def _by_name(workspace: Workspace, text: str) -> Checkpoint:
    current = workspace.current()
    store = workspace.store
    if (dated := re.fullmatch(_DATED, text)) and not workspace.bare:
        place = current.named(dated[1])
        if store.tip(place.session, place.branch) is not None:
            return _then(workspace, place, f"@{dated[2]}")
    if ":" in text:
        return _qualified(workspace, current, text)
    distance = re.fullmatch(_DISTANCE, text)
    if text == "last" or distance is not None:
        return _of_timeline(workspace, int(distance[1]) if distance else 0)
    # What a person named last, then what this work tree stands on, then all others.
    near = current if workspace.bare else stands_on(workspace)
    for session, branch in dict.fromkeys(
        (each.session, each.branch) for each in (current, near)
    ):
        if store.tip(session, branch) is not None:
            with suppress(NotFoundError):
                return _on_branch(store, session, branch, text, text)
    elsewhere = _anywhere(store, text) or _said_anywhere(store, text)
    if elsewhere is None:
        raise NotFoundError(
            f"there is no checkpoint {text!a}",
            hint="`gitcp log --all` lists them; `gitcp help selectors` explains how to"
            " name one",
        )
    return elsewhere


def _at_time(workspace: Workspace, text: str) -> Checkpoint:
    """Returns the newest checkpoint of this work tree at a time, or before it."""
    moment = times.when(text, end=True)
    reach = Reach(workspace.store)
    for entry in timeline(workspace):
        if entry.created <= moment:
            checkpoint = readable(reach, entry)
            if checkpoint is not None:
                return checkpoint
    raise NotFoundError(
        f"this work tree has no checkpoint from {text} or before",
        hint="`gitcp log` lists them",
    )


def _of_timeline(workspace: Workspace, distance: int) -> Checkpoint:
    """Returns the checkpoint so many rows below the newest that `gitcp log` lists."""
    current = workspace.current()
    if workspace.bare:
        what = f"~{distance}" if distance else "last"
        return _on_branch(workspace.store, current.session, current.branch, what, what)
    found = before_newest(workspace, distance)
    if found is not None:
        return found
    if distance:
        raise NotFoundError(
            f"there are fewer than {distance} checkpoints before the last one",
            hint="see `gitcp log`",
        )
    # Numbers that cannot be written down, as on a disk that is read-only.
    tip = workspace.store.tip(current.session, current.branch)
    if tip is not None:
        return tip
    hint = "`gitcp save` makes one; `gitcp log --all` lists those of other work trees"
    if may_have_been_private(workspace):
        from gitcp.project import folders  # noqa: PLC0415  rarely needed

        # Without it the error says enough: another user's state directory may be there.
        with suppress(GitcpError):
            if folders.left_behind(workspace, workspace.top) is not None:
                hint = "`gitcp adopt` moves those from before `git init` here"
    raise NotFoundError("there is no checkpoint in this work tree yet", hint=hint)


def _then(workspace: Workspace, place: Current, text: str) -> Checkpoint:
    """Returns the newest checkpoint of a branch at a time, or before it."""
    moment = times.when(text, end=True)
    tip = workspace.store.require_tip(place.session, place.branch)
    for checkpoint in workspace.store.line(tip):
        if checkpoint.manifest.created <= moment:
            return checkpoint
    name = f"{place.session}/{place.branch}"
    raise NotFoundError(
        f"{name} has no checkpoint from {text} or before",
        hint=f"`gitcp log -s {quoted(name)}` lists them",
    )


def _qualified(workspace: Workspace, current: Current, text: str) -> Checkpoint:
    """Returns the checkpoint `SESSION[/BRANCH]:WHAT` names; a label may hold a colon."""
    store = workspace.store
    failure: NotFoundError | UsageError | None = None
    at = text.rfind(":")
    while at >= 0:
        try:
            place = current.named(text[:at])
            what = text[at + 1 :]
            if times.is_time(what) and not workspace.bare:
                return _then(workspace, place, what)
            return _on_branch(store, place.session, place.branch, what or "last", text)
        except (NotFoundError, UsageError) as exc:
            failure = failure or exc
        at = text.rfind(":", 0, at)
    labelled = _labelled(store, text)
    if labelled is not None:
        return labelled
    assert failure is not None
    raise failure


def _on_branch(
    store: Store, session: str, branch: str, what: str, text: str
) -> Checkpoint:
    tip = store.require_tip(session, branch)
    if what == "last":
        return tip
    if re.fullmatch(r"#?\d{1,9}", what):
        # A number wins over an id prefix, if there is such a number.
        named = _by_number(store, tip, branch, int(what.removeprefix("#")))
        if named is not None:
            return named
        if len(what) < _SHORTEST or what.startswith("#"):
            raise NotFoundError(
                f"there is no checkpoint {what} in {session}/{branch}",
                hint=f"the newest there is {session}/{branch}:{tip.seq}",
            )
    if match := re.fullmatch(_DISTANCE, what):
        for distance, checkpoint in enumerate(store.line(tip)):
            if distance == int(match[1]):
                return checkpoint
        raise NotFoundError(
            f"there are fewer than {match[1]} checkpoints before the last one of"
            f" {session}/{branch}",
            hint="see `gitcp log`",
        )
    matches = list(_matching(store, tip, what))
    if not matches:
        named = _before_message(store, tip, what)
        if named is not None:
            return named
        raise NotFoundError(
            f"there is no checkpoint {text!a} in {session}/{branch}",
            hint="`gitcp log` lists them; `gitcp sessions` lists the other sessions",
        )
    return _only(matches, what)


def _by_number(
    store: Store, tip: Checkpoint, branch: str, number: int
) -> Checkpoint | None:
    component = encode(branch)
    for checkpoint in store.line(tip):
        if checkpoint.trailers.branch == component and checkpoint.seq == number:
            return checkpoint
    return None


def _matching(store: Store, tip: Checkpoint, what: str) -> Iterator[Checkpoint]:
    label = _label(what)
    is_hex = re.fullmatch(rf"[0-9a-f]{{{_SHORTEST},{MOST_DIGITS}}}", what)
    by_commit: dict[str, Checkpoint] = {}
    for checkpoint in store.line(tip):
        trailers = checkpoint.trailers
        if _has_label(checkpoint, label):
            yield checkpoint
        elif is_hex:
            if trailers.id.startswith(what) or checkpoint.commit.startswith(what):
                yield checkpoint
            elif trailers.base is not None and trailers.base.startswith(what):
                # The oldest one with this base is the one made at the commit.
                by_commit[trailers.base] = checkpoint
    yield from by_commit.values()


def _component(text: str) -> str | None:
    try:
        return encode(text)
    except UsageError:
        return None


def _label(what: str) -> str | None:
    """Returns the label that a text, or `label=` and a text, would select."""
    return _component(what.removeprefix(labels.PREFIX))


def _has_label(checkpoint: Checkpoint, label: str | None) -> bool:
    return label is not None and checkpoint.label_component == label


def _only(matches: list[Checkpoint], what: str) -> Checkpoint:
    labelled = [match for match in matches if _has_label(match, _label(what))]
    if labelled:
        # A label given again moves: the newest has it.
        return labelled[0]
    if len({match.oid for match in matches}) == 1:
        return matches[0]
    raise _ambiguous(matches, what)


def _ambiguous(matches: list[Checkpoint], what: str) -> AmbiguousError:
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


def _labelled(store: Store, label: str) -> Checkpoint | None:
    checkpoint = _anywhere(store, label)
    return checkpoint if checkpoint and _has_label(checkpoint, _label(label)) else None


def _anywhere(store: Store, what: str) -> Checkpoint | None:
    """Looks for an id or label in all branches."""
    if what == "last":
        return None
    by_id: dict[str, Checkpoint] = {}
    for _, tip in store.tips():
        matches = list(_matching(store, tip, what))
        if matches:
            match = _only(matches, what)
            by_id.setdefault(match.id, match)
    if len(by_id) > 1:
        raise _ambiguous(list(by_id.values()), what)
    return next(iter(by_id.values()), None)


def _before_message(store: Store, tip: Checkpoint, ident: str) -> Checkpoint | None:
    from gitcp.checkpoints.message_search import before_message  # noqa: PLC0415  rare

    return before_message(store, tip, ident)


def _said_anywhere(store: Store, ident: str) -> Checkpoint | None:
    """Looks for a message or prompt in the conversations of all branches."""
    if len(ident) < _MESSAGE_ID:
        return None
    by_id: dict[str, Checkpoint] = {}
    for _, tip in store.tips():
        with suppress(CorruptError, FormatTooNewError, TransferError):
            match = _before_message(store, tip, ident)
            if match is not None:
                by_id.setdefault(match.id, match)
    if len(by_id) > 1:
        raise _ambiguous(list(by_id.values()), ident)
    return next(iter(by_id.values()), None)
