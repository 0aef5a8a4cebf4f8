"""Finds the checkpoint before a prompt, by the prompt's message id."""

from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from gitcp.adapters.claude_sdk.hooks import AGENT
from gitcp.agents import bindings, transcripts
from gitcp.checkpoints import restore, restore_plan
from gitcp.checkpoints.message_search import before_message
from gitcp.checkpoints.restore_request import request_restore
from gitcp.checkpoints.session import BaseSession
from gitcp.clients import registry
from gitcp.errors import GitcpError, NotFoundError, UsageError
from gitcp.format.checkpoint import show_path
from gitcp.project.workspace import Current, Workspace, open_workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.trust.trusted_remotes import Trusting, is_trusted


class _Fields(NamedTuple):
    target: Checkpoint
    saved: Checkpoint | None
    files_changed: tuple[str, ...]
    left: tuple[str, ...]


class Rewound(_Fields):
    """The result of a rewind.

    `target` is the checkpoint at the prompt, `saved` the one that holds what was there
    before the rewind (None if the newest one did, and for a dry run). `files_changed`
    are the paths written, deleted or made, `left` those that were left as they are, with
    the reason.
    """

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Self]:
        """Returns itself: `await rewind_files(...)` reads as with the SDK's client."""

        async def itself() -> Self:
            return self

        return itself().__await__()


def rewind_files(
    user_message_uuid: str,
    session: BaseSession | None = None,
    *,
    dry_run: bool = False,
    trust: bool = False,
) -> Rewound:
    """Brings the files back as they were when a prompt was sent.

        message.uuid  # of a UserMessage, with extra_args={"replay-user-messages": None}
        done = rewind_files(message.uuid, session)

    All files: what shell commands did is undone as well, made directories go, deleted
    and renamed files come back. What is there now is saved first (`done.saved`), and what
    no checkpoint holds is never overwritten. The conversation stays as it is. Without a
    session all those of the repository around the current directory are searched. With
    `dry_run` nothing is written.

    Anyone who may push can send a session that has the message. So files that were made
    elsewhere count only if no others do, and need `trust`, unless they came from a remote that
    the user trusts (`gitcp trust`). With it all that they bring is restored.

    Raises:
        NotFoundError: no checkpoint was made before that message.
        UsageError: the files were made elsewhere, and are not trusted.
        WouldOverwriteError: something that no checkpoint holds is in the way.
        PartialError: done, but files changed meanwhile and were left alone.
        BusyError: another save or restore is under way.
    """
    workspace = session.workspace if session is not None else open_workspace(".")
    workspace.refresh()
    target, onto = _at(workspace, session, user_message_uuid, trust=trust)
    trust = trust or is_trusted(workspace.store, target)
    request = request_restore(target, conversation=False, onto=onto, trust=trust)
    if dry_run:
        plan = restore_plan.plan_restore(workspace, request)
        steps, saved, left = plan.steps, None, (*plan.steps.left, *plan.obstacles)
    else:
        done = restore.restore(workspace, request)
        steps, saved, left = done.plan, done.saved, done.left
    return Rewound(
        target,
        saved,
        tuple(show_path(step.path) for step in steps.steps),
        tuple(f"{show_path(one.path)}: {one.reason}" for one in left),
    )


def _at(
    workspace: Workspace, session: BaseSession | None, ident: str, *, trust: bool
) -> tuple[Checkpoint, Current]:
    trusting = Trusting(workspace.store)
    others: list[tuple[Checkpoint, Current]] = []
    for tip in _tips(workspace, session):
        with suppress(GitcpError):
            found = before_message(workspace.store, tip, ident) or _live(
                workspace, tip, ident
            )
            if found is not None:
                place = found, Current(tip.session, tip.branch)
                if found.origin.files is None:
                    return place
                others.append(place)
    for other in others:
        if trust or other[0] in trusting:
            return other
    if others:
        raise UsageError(
            f"the files from before the message {ident!a} were made elsewhere"
            f" ({others[0][0].origin.where}), so gitcp does not bring them back unless you"
            " say so",
            hint="look at them with `gitcp show`; then `gitcp trust REMOTE` once, or"
            " trust=True",
        )
    where = f"in {session.name}" if session is not None else "here"
    raise NotFoundError(
        f"there is no checkpoint {where} from before a message {ident!a}",
        hint="checkpoint_hooks(session) makes them; `gitcp log` shows what there is",
    )


def _tips(workspace: Workspace, session: BaseSession | None) -> Iterator[Checkpoint]:
    """Yields the branches to search: the session's own or the current one, then others."""
    store = workspace.store
    first = workspace.current()
    if session is not None:
        first = Current(session.name, session.branch)
    tip = store.tip(first.session, first.branch)
    if tip is not None:
        yield tip
    found = []
    for key, oid in store.refs().items():
        with suppress(GitcpError):
            other = store.checkpoint(oid)
            if other is None or other == tip:
                continue
            if session is None or store.names(key, oid)[0] == session.name:
                found.append(other)
    yield from sorted(found, key=lambda one: one.raw.epoch, reverse=True)


def _live(workspace: Workspace, tip: Checkpoint, ident: str) -> Checkpoint | None:
    """Finds a message that the client has written, and no checkpoint holds yet.

    That is so within a turn, and after one that was interrupted.
    """
    client = registry.client(AGENT)
    for binding in bindings.latest_first(workspace, AGENT):
        here = (binding.session, binding.branch) == (tip.session, tip.branch)
        if not here or binding.transcript is None:
            continue
        raw = transcripts.read(Path(binding.transcript))
        held = transcripts.meta(tip, binding.source)
        at = client.position(raw, ident)
        if at is not None and (held is None or held.bytes <= at):
            return tip
    return None
