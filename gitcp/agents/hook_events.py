"""Handles hook events of agents: from one event to a checkpoint, or none."""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from gitcp.agents import bindings
from gitcp.agents.bindings import Binding
from gitcp.agents.meanwhile import (
    overtaking,
    save_beside,
    save_changed,
    save_files,
    says_more,
    told,
)
from gitcp.checkpoints.turn_notes import asked_in, shortened, turn_note
from gitcp.clients import triggers
from gitcp.clients.client import Client, Event
from gitcp.errors import AgentRecordError, GitcpError
from gitcp.format import jsontext
from gitcp.format.layout import branch_ref
from gitcp.format.log import AgentSession
from gitcp.format.numbers import Assigned
from gitcp.project.settings import Settings
from gitcp.project.workspace import (
    Workspace,
    may_have_been_private,
    open_workspace,
)
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.numbers import last_restore

INTERVAL = "interval"
# In seconds. A client waits for its hooks, so they wait for a lock less long than a command
# does. Even after several locks, time is left to log which one was held.
_LOCK = 4.0
_REF_LOCK = 2.0
# If only these happened, bookkeeping in the transcript is not a reason for a checkpoint.
_QUIET = frozenset(
    {triggers.TURN_START, triggers.COMPACT, triggers.SESSION_END, INTERVAL}
)
# A command endangers files only: if no file changed since the last checkpoint, no new one
# is due.
_FILES_ONLY = frozenset({triggers.BEFORE_COMMAND})
# Events that change a binding.
_NOTED = frozenset({triggers.TURN_START, triggers.SESSION_END})
# At these events the whole transcript is compared, in case the client has rewritten it.
_THOROUGH = frozenset({triggers.COMPACT, triggers.SESSION_END})


def read_event(
    client: Client, hook: str, raw: bytes, environment: Mapping[str, str]
) -> Event | None:
    """Returns the event that a client reported to its hook; None if gitcp ignores it.

    Raises:
        AgentRecordError: the client does not send such a payload.
    """
    try:
        return client.event(hook, _payload(raw), environment)
    except ValueError as exc:
        raise AgentRecordError(
            f"{client.title} passed unknown data to its hook {hook!a}: {exc}",
            hint="nothing was saved; run `gitcp save`",
        ) from exc


def _payload(raw: bytes) -> dict[str, Any]:
    payload = jsontext.decode(raw)
    if not isinstance(payload, dict):
        raise ValueError("it is not an object")  # noqa: TRY004  JSON of another shape
    return payload


def workspace_of(event: Event) -> Workspace:
    """Returns the work tree that an event belongs to.

    An agent in another repository, such as a submodule, still works for the project that
    it was started in. In a linked work tree of the project it works for that work tree.

    Raises:
        NotARepositoryError, UnsupportedRepositoryError: the event is not from a work tree
            that gitcp can save.
    """
    if event.project is None or os.path.realpath(event.project) == os.path.realpath(
        event.cwd
    ):
        return open_workspace(event.project or event.cwd)
    with suppress(GitcpError):
        workspace = open_workspace(event.cwd)
        with suppress(GitcpError):
            project = open_workspace(event.project)
            if project.repository.common_dir != workspace.repository.common_dir:
                return project
        return workspace
    return open_workspace(event.project)


def warning(workspace: Workspace, event: Event) -> str | None:
    """Returns a warning for the user at the start of a turn or session, or None.

    No setting turns it off: gitcp saves nothing until the restore is finished or undone.
    """
    if event.what not in triggers.BEGINNINGS or not workspace.is_interrupted():
        return None
    return (
        f"gitcp: a restore was interrupted in {workspace.top}. Files may be half"
        " restored, and nothing is saved until `gitcp restore --continue`"
        " finishes the restore or `gitcp restore --abort` undoes it."
    )


def overtaken(workspace: Workspace, client: Client, event: Event) -> str | None:
    """Returns a message to the model about a restore that its client has not seen, or None."""
    if event.what != triggers.TURN_START or workspace.settings.hooks_off:
        return None
    return told(workspace, bindings.find(workspace, client.name, event.session))


def left_behind(workspace: Workspace, event: Event) -> str | None:
    """Returns a message that the folder's own checkpoints wait for `gitcp adopt`, or None.

    Only as the first turn begins in a repository that has no checkpoint yet.
    """
    if event.what != triggers.TURN_START or workspace.settings.hooks_off:
        return None
    if not may_have_been_private(workspace):
        return None
    if next(workspace.store.numbers.newest_first(), None) is not None:
        return None
    from gitcp.project import folders  # noqa: PLC0415  rarely needed

    found = folders.left_behind(workspace, workspace.top)
    if found is None:
        return None
    return (
        f"gitcp: checkpoints of {found.folder} from before it had a git repository are in a"
        " private store; `gitcp adopt` moves them into the repository."
    )


def reminded(workspace: Workspace, client: Client, event: Event) -> str | None:
    """Returns the reasons to give to an agent as its session begins, or None."""
    if event.what != triggers.SESSION_START or workspace.settings.hooks_off:
        return None
    from gitcp.agents.reminder import reminder  # noqa: PLC0415  once a session

    return reminder(workspace, client, event)


def handle(workspace: Workspace, client: Client, event: Event) -> Checkpoint | None:
    """Does what an event asks for; returns the checkpoint if one was made.

    Raises:
        GitcpError: nothing was saved.
    """
    settings = workspace.settings
    if settings.hooks_off:
        return None
    if event.record is not None and event.transcript is not None:
        from gitcp.agents import transcripts  # noqa: PLC0415  most clients need it not

        transcripts.note(event.transcript, event.record)
    if event.what == triggers.RECORD_ONLY:
        return None
    binding = bindings.find(workspace, client.name, event.session)
    if event.what == triggers.SESSION_START:
        _begin(workspace, client, event, binding)
        return None
    if binding is not None and event.what == triggers.SESSION_END:
        binding = _end(workspace, binding)
    trigger = trigger_of(settings, event)
    if trigger is None:
        if event.what == triggers.TURN_START:
            binding = _acknowledge(workspace, binding)
        if not _interval_over(workspace, binding):
            return None
        trigger = INTERVAL
    restore = overtaking(workspace, binding)
    workspace = workspace.with_lock_timeout(_LOCK, refs=_REF_LOCK)
    if restore is not None and event.what != triggers.TURN_START:
        assert binding is not None
        ends = event.what == triggers.SESSION_END
        if not ends or not says_more(workspace, client, event, binding):
            return save_beside(workspace, client, restore)
    return _save(workspace, client, event, binding, trigger, restore)


def _acknowledge(workspace: Workspace, binding: Binding | None) -> Binding | None:
    """Notes that a client is open and knows of the last restore, if nothing is saved."""
    restore = overtaking(workspace, binding)
    if binding is None or (restore is None and not binding.ended):
        return binding
    known = restore.id if restore is not None else binding.restore
    return bindings.keep(
        workspace, msgspec.structs.replace(binding, restore=known, ended=False)
    )


def _end(workspace: Workspace, binding: Binding) -> Binding:
    """Notes that a client was closed. Called first, because a save may fail or not be due.

    Does not change the time of `seen`: in an old binding it shows which restores the client
    knows.
    """
    ended = msgspec.structs.replace(binding, ended=True)
    return bindings.keep(workspace, ended, seen=False)


def trigger_of(settings: Settings, event: Event) -> str | None:
    """Returns the trigger of the checkpoint to make at an event; None: none is due."""
    if event.what == triggers.TOOL and settings.frequency != "tool":
        return None
    if settings.triggers and event.what not in settings.triggers:
        return None
    if event.command is not None:
        from gitcp.clients.read_only import only_reads  # noqa: PLC0415  one hook of many

        if only_reads(event.command):
            return None
    return event.what


def _interval_over(workspace: Workspace, binding: Binding | None) -> bool:
    """Whether the interval has passed since the last checkpoint of a session."""
    settings = workspace.settings
    if not settings.interval or (
        settings.triggers and INTERVAL not in settings.triggers
    ):
        return False
    if binding is None or binding.session is None:
        return False
    # If the ref was written lately, the interval is not over, and no module has to be
    # loaded.
    written = workspace.repository.refs.written(
        branch_ref(binding.session, binding.branch)
    )
    if written is not None and 0 <= time.time() - written < settings.interval:
        return False
    tip = workspace.store.tip(binding.session, binding.branch)
    # A checkpoint from the future was made before the clock was corrected.
    return tip is not None and not 0 <= time.time() - tip.raw.epoch < settings.interval


def _begin(
    workspace: Workspace, client: Client, event: Event, binding: Binding | None
) -> None:
    """Notes that a session began as a fork, because later events do not say so."""
    if binding is None and event.start_reason == "fork":
        bindings.keep(workspace, Binding(client.name, event.session, None))


def _save(
    workspace: Workspace,
    client: Client,
    event: Event,
    binding: Binding | None,
    trigger: str,
    restore: Assigned | None,
) -> Checkpoint | None:
    # Most calls of hooks come here with nothing to do, and the client waits for them.
    from gitcp.agents import transcripts  # noqa: PLC0415
    from gitcp.checkpoints.known_sources import KnownSources  # noqa: PLC0415
    from gitcp.checkpoints.save import save  # noqa: PLC0415
    from gitcp.store.draft import Draft  # noqa: PLC0415

    bound = binding
    if bound is None or not bound.is_settled:
        from gitcp.agents import branching as forks  # noqa: PLC0415

        bound = forks.settle(workspace, client, event, binding)
    note = _note(event, bound, trigger)
    if restore is not None:
        note = shortened(f"after the restore #{restore.number}, {note or trigger}")
    if bound.session is None:
        # The client has written nothing of this fork yet. Only the files can be saved,
        # and they belong to the branch that the work tree is on.
        made = save_files(workspace, Draft(trigger, note=note, quiet=True))
        _remember(workspace, event, bound)
        return made
    line = bound.session, bound.branch
    if trigger == triggers.SESSION_END and _was_unused(workspace, client, event, bound):
        return save_changed(workspace, client)

    def with_records(draft: Draft) -> Draft:
        gathered = transcripts.gather(
            client,
            event,
            bound.source,
            workspace.store.tip(*line),
            KnownSources(workspace.directory),
            thorough=trigger in _THOROUGH,
        )
        quiet = trigger in _FILES_ONLY or (
            trigger in _QUIET and not gathered.has_messages
        )
        return draft._replace(records=gathered.records, quiet=quiet)

    saved = save(
        workspace,
        Draft(trigger, note=note),
        session=bound.session,
        branch=bound.branch,
        complete=with_records,
        steer=False,
        agent=AgentSession(client.name, event.session),
    )
    if event.what in _NOTED or binding != bound:
        unseen = restore is not None and event.what == triggers.SESSION_END
        _remember(workspace, event, bound, unseen=unseen)
    return saved.checkpoint if saved.created else None


def _was_unused(
    workspace: Workspace, client: Client, event: Event, bound: Binding
) -> bool:
    """Whether a session that ends has no messages, and no checkpoint."""
    from gitcp.agents import transcripts  # noqa: PLC0415
    from gitcp.checkpoints.known_sources import KnownSources  # noqa: PLC0415

    assert bound.session is not None
    if workspace.store.tip(bound.session, bound.branch) is not None:
        return False
    known = KnownSources(workspace.directory)
    return not transcripts.gather(client, event, bound.source, None, known).has_messages


def _remember(
    workspace: Workspace, event: Event, binding: Binding, *, unseen: bool = False
) -> None:
    """Notes what an event told; `unseen` says that the client does not know the last restore."""
    asked = asked_in(event.prompt_text) if event.prompt_text else binding.asked
    file = str(event.transcript) if event.transcript else binding.transcript
    restore = last_restore(workspace.store.numbers)
    known = restore.id if restore is not None else None
    bindings.keep(
        workspace,
        msgspec.structs.replace(
            binding,
            asked=asked,
            transcript=file,
            ended=event.what == triggers.SESSION_END,
            restore=binding.restore if unseen else known,
        ),
        seen=not unseen,
    )


def _note(event: Event, binding: Binding, trigger: str) -> str | None:
    """Returns a note on the turn's subject, which tells this checkpoint from others."""
    asked = asked_in(event.prompt_text) if event.prompt_text else binding.asked
    return turn_note(trigger, asked, event.tools, event.command)
