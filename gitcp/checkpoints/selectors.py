"""Selects a checkpoint: `[SESSION[/BRANCH]:]WHAT` (docs/cli.md)."""

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from gitcp.checkpoints import times
from gitcp.checkpoints.matches import (
    SHORTEST,
    ambiguous,
    anywhere,
    by_place,
    has_label,
    is_named,
    on_line,
    one_of,
)
from gitcp.checkpoints.numbered import by_number
from gitcp.checkpoints.precedence import Precedence
from gitcp.checkpoints.reach import Reach, readable
from gitcp.checkpoints.standing import before_newest, stands_on, timeline
from gitcp.errors import (
    CorruptError,
    FormatTooNewError,
    GitcpError,
    NotFoundError,
    TransferError,
    UsageError,
)
from gitcp.format.layout import BranchKey
from gitcp.format.oid import MOST_DIGITS, PATTERN
from gitcp.names import quoted
from gitcp.project.workspace import Current, Workspace, may_have_been_private
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

if TYPE_CHECKING:
    from gitcp.checkpoints.commit_lookup import CommitStory

# What commands take where no checkpoint is named.
LAST = "last"
# Reading every conversation is for what can only be the id of a message.
_MESSAGE_ID = 16
_DISTANCE = r"(?:last)?~(\d{1,9})"
# A branch name of git's may end this way, too, but no selector is looked up as one.
_DATED = r"(.+)@(\{.+\})"
_NUMBER = r"#?([1-9]\d{0,14})"
_COMMIT = rf"[0-9a-f]{{{SHORTEST},{MOST_DIGITS}}}|(?:HEAD|@)(?:[~^]\d*)*"


class Selected(NamedTuple):
    """A checkpoint and, if it was selected by a commit, how they are related.

    `rival` is one's own that the same text may mean: the other one was made elsewhere, and
    its base or its time is what a stranger says it is.
    """

    checkpoint: Checkpoint
    behind: "CommitStory | None" = None
    rival: Checkpoint | None = None


def select(workspace: Workspace, selector: str | None) -> Checkpoint:
    """Returns the checkpoint a selector names; None stands for `last`.

    Raises:
        NotFoundError: the selector matches no checkpoint.
        AmbiguousError: the selector matches several.
        UsageError: the selector cannot be parsed.
    """
    found = look_up(workspace, selector)
    if found.rival is not None:
        raise ambiguous([found.rival, found.checkpoint], selector or LAST)
    return found.checkpoint


def look_up(workspace: Workspace, selector: str | None) -> Selected:
    """Returns what a selector names, as `select` does, and how it was found.

    If there is a `rival`, use the checkpoint only to show it.

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
        if text.startswith("#") or len(text) < SHORTEST:
            raise NotFoundError(
                f"there is no checkpoint #{match[1]}", hint="`gitcp log` lists them"
            )
    if re.fullmatch(PATTERN, text):
        # It may well be quoted in a conversation, too, where messages are looked for.
        story = _story(workspace, text)
        if story is not None and (story.made == "at" or story.replaces):
            return _told(story)
    # Most restores name none, and the patterns of times take a while to compile.
    if text != LAST and times.is_time(text) and not workspace.bare:
        return _at_time(workspace, text)
    try:
        found = _by_name(workspace, text)
    except NotFoundError:
        story = _story(workspace, text)
        if story is None:
            raise
        return _told(story)
    checkpoint = found.checkpoint
    base = checkpoint.trailers.base
    meant = base is not None and _is_prefix(text, base)
    if meant and base is not None and not is_named(checkpoint, text):
        story = _story(workspace, base)
        if story is not None and story.made == "at":
            return _told(story)
    return found


def _told(story: "CommitStory") -> Selected:
    return Selected(story.chosen, story, story.rival)


def _story(workspace: Workspace, text: str) -> "CommitStory | None":
    from gitcp.checkpoints import commit_lookup  # noqa: PLC0415  most selectors are not commits

    # A name such as `main` may be meant as a session, so it is not looked up as a commit.
    if not re.fullmatch(_COMMIT, text):
        return None
    commit = commit_lookup.resolve(workspace, text)
    return commit_lookup.story_of(workspace, commit) if commit else None


def _is_prefix(text: str, oid: str) -> bool:
    return len(text) >= SHORTEST and oid.startswith(text)


def _by_name(workspace: Workspace, text: str) -> Selected:
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
        return Selected(_of_timeline(workspace, int(distance[1]) if distance else 0))
    # What a person named last, then what this work tree stands on, then all others.
    near = current if workspace.bare else stands_on(workspace)
    found: Checkpoint | None = None
    for session, branch in dict.fromkeys(
        (each.session, each.branch) for each in (current, near)
    ):
        if found is None and store.tip(session, branch) is not None:
            with suppress(NotFoundError):
                found = _on_branch(store, session, branch, text, text)
    if found is not None and Precedence(store).is_own(found):
        return Selected(found)
    # One's own comes before a stranger's that is nearer.
    own = found is not None
    named = anywhere(store, text, own=own) or _said_anywhere(store, text, own=own)
    named = named or found
    if named is None:
        raise NotFoundError(
            f"there is no checkpoint {text!a}",
            hint="`gitcp log --all` lists them; `gitcp help selectors` explains how to"
            " name one",
        )
    return Selected(named)


def _at_time(workspace: Workspace, text: str) -> Selected:
    """Returns the newest checkpoint of this work tree at a time, or before it."""
    moment = times.when(text, end=True)
    reach = Reach(workspace.store)
    read = (
        readable(reach, entry)
        for entry in timeline(workspace)
        if entry.created <= moment
    )
    found = _newest(workspace.store, (one for one in read if one is not None))
    if found is None:
        raise NotFoundError(
            f"this work tree has no checkpoint from {text} or before",
            hint="`gitcp log` lists them",
        )
    return found


def _newest(store: Store, line: Iterable[Checkpoint]) -> Selected | None:
    """Returns the newest of some checkpoints, newest first, by what they say of their times.

    A stranger's may say any time.
    """
    own = Precedence(store).is_own
    newest: Checkpoint | None = None
    for checkpoint in line:
        if own(checkpoint):
            said = newest.manifest.created if newest is not None else ""
            if newest is None or said <= checkpoint.manifest.created:
                return Selected(checkpoint)
            return Selected(newest, rival=checkpoint)
        newest = newest or checkpoint
    return Selected(newest) if newest is not None else None


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


def _then(workspace: Workspace, place: Current, text: str) -> Selected:
    """Returns the newest checkpoint of a branch at a time, or before it."""
    moment = times.when(text, end=True)
    tip = workspace.store.require_tip(place.session, place.branch)
    line = workspace.store.line(tip)
    found = _newest(
        workspace.store, (one for one in line if one.manifest.created <= moment)
    )
    if found is not None:
        return found
    name = f"{place.session}/{place.branch}"
    raise NotFoundError(
        f"{name} has no checkpoint from {text} or before",
        hint=f"`gitcp log -s {quoted(name)}` lists them",
    )


def _qualified(workspace: Workspace, current: Current, text: str) -> Selected:
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
            return Selected(
                _on_branch(store, place.session, place.branch, what or "last", text)
            )
        except (NotFoundError, UsageError) as exc:
            failure = failure or exc
        at = text.rfind(":", 0, at)
    labelled = anywhere(store, text)
    if labelled is not None and has_label(labelled, text):
        return Selected(labelled)
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
        place = BranchKey.of(session, branch)
        named = by_place(store, tip, place, int(what.removeprefix("#")))
        if named is not None:
            return named
        if len(what) < SHORTEST or what.startswith("#"):
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
    named = on_line(store, tip, what) or _before_message(store, tip, what)
    if named is None:
        raise NotFoundError(
            f"there is no checkpoint {text!a} in {session}/{branch}",
            hint="`gitcp log` lists them; `gitcp sessions` lists the other sessions",
        )
    return named


def _before_message(store: Store, tip: Checkpoint, ident: str) -> Checkpoint | None:
    from gitcp.checkpoints.message_search import before_message  # noqa: PLC0415  rare

    return before_message(store, tip, ident)


def _said_anywhere(store: Store, ident: str, *, own: bool = False) -> Checkpoint | None:
    """Looks for a message or prompt in the conversations of all branches.

    With `own` only the user's own checkpoints count.
    """
    if len(ident) < _MESSAGE_ID:
        return None
    found = []
    for _, tip in store.tips():
        with suppress(CorruptError, FormatTooNewError, TransferError):
            match = _before_message(store, tip, ident)
            if match is not None and (not own or Precedence(store).is_own(match)):
                found.append(match)
    return one_of(store, found, ident)
