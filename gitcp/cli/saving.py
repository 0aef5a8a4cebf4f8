"""Carries out `gitcp save`, whether or not click parsed its options."""

import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from gitcp.checkpoints.save import save
from gitcp.cli.emit import Output
from gitcp.cli.opening import Enter, to_change
from gitcp.cli.render import count, headline
from gitcp.errors import NotARepositoryError, UsageError
from gitcp.format import jsontext
from gitcp.format.checkpoint import left_out_of, show_path
from gitcp.format.log import Decision
from gitcp.project.workspace import Workspace, may_have_been_private
from gitcp.store.draft import Draft, Saved

if TYPE_CHECKING:
    from gitcp.checkpoints.message_input import Incoming

_JSON_LIMIT = 1024 * 1024
# In bytes: the beginning of a transcript shows which client wrote it.
_BEGINNING = 1 << 20
# In bytes: a pipe or device may have no end, and all that is read stays in memory.
_STREAM = 512 << 20
# option -> kind in the decision log
KINDS = {
    "decision": "decision",
    "tried": "tried",
    "fact": "fact",
    "next_step": "next",
    "log_note": "note",
    "bug": "bug",
    "task": "task",
}


def save_as(
    out: Output, enter: Enter, given: dict[str, Any], log: Iterable[tuple[str, str]]
) -> None:
    """Saves by the options, and reports it; `log` has the options for the log, in order."""
    if given["label"] is not None:
        from gitcp.checkpoints.labels import check_typed_label

        check_typed_label(given["label"])
    workspace = _opened(out, enter, init=given["init"])
    current = workspace.current()
    if given["where"] is not None:
        current = current.named(given["where"])
    session, branch = current.session, current.branch
    incoming = _incoming(given, workspace, (session, branch))
    position = given["position"]
    saved = save(
        workspace,
        Draft(
            given["trigger"],
            note=given["note"],
            label=given["label"],
            records=(incoming.records,) if incoming else (),
            decisions=_entries(log, given["active"]),
            position=json_value(position, "--position")
            if position is not None
            else None,
            metadata=incoming.metadata if incoming else None,
            allow_empty=given["allow_empty"],
        ),
        session=session,
        branch=branch,
        include=given["include"],
    )
    if incoming is not None and incoming.raw is not None:
        from gitcp.checkpoints import message_input
        from gitcp.checkpoints.input_cache import SourceKey

        source = SourceKey(session, branch, "main")
        message_input.remember(workspace, source, incoming.raw, saved.checkpoint)
    _report(out, saved, given["note"])
    if may_have_been_private(workspace):
        from gitcp.cli.private_folder import tell_left_behind

        tell_left_behind(out, workspace)


def _opened(out: Output, enter: Enter, *, init: bool) -> Workspace:
    try:
        return to_change(out, enter)
    except NotARepositoryError as exc:
        from gitcp.cli.private_folder import offer

        offer(out, exc, init=init)
    return to_change(out, enter)


def _report(out: Output, saved: Saved, note: str | None) -> None:
    checkpoint = saved.checkpoint
    if saved.rewritten:
        out.warn(
            "the conversation does not continue the stored one, so this"
            " checkpoint replaces its end (earlier checkpoints keep theirs)"
        )
    if out.json:
        from gitcp.cli import documents

        out.document(
            {
                "schema": "gitcp.save/1",
                "created": saved.created,
                "checkpoint": documents.checkpoint(checkpoint),
            }
        )
    elif saved.created:
        out.print(f"Saved {headline(out, checkpoint)}")
        missing = (
            left_out_of(checkpoint.skipped()) if checkpoint.manifest.skipped else ()
        )
        if missing:
            out.note(
                f"  not captured: {count(len(missing), 'path')};"
                f" `gitcp show {checkpoint.number or checkpoint.id}` lists them"
            )
    else:
        out.print(f"Nothing changed since {headline(out, checkpoint)}")
        if note is not None:
            out.note(
                "  the note was not saved; --allow-empty makes a checkpoint for it"
            )


def _entries(
    log: Iterable[tuple[str, str]], active: tuple[str, ...]
) -> tuple[Decision, ...]:
    entries: list[Decision] = []
    for name, text in log:
        if name != "why":
            entries.append(Decision(text, kind=KINDS[name]))
        elif entries:
            entries[-1] = msgspec.structs.replace(entries[-1], why=text)
        else:
            raise UsageError(
                "--why explains the entry before it, but there is no such entry",
                hint="put it after --decision, --tried, --fact, --next, --note or --bug",
            )
    if active:
        entries.append(
            Decision("files in work", kind="active", paths=tuple(map(shown, active)))
        )
    return tuple(entries)


def _incoming(
    given: dict[str, Any], workspace: Workspace, where: tuple[str, str]
) -> "Incoming | None":
    names = [name for name in ("messages", "append", "transcript") if given[name]]
    if len(names) > 1:
        raise UsageError(
            f"--{names[0]} and --{names[1]} are mutually exclusive",
            hint="use one of them",
        )
    if given["agent"] and names != ["transcript"]:
        raise UsageError("--agent requires --transcript", hint="add --transcript FILE")
    if not names:
        return None
    # Most checkpoints are of files alone.
    from gitcp.checkpoints import message_input
    from gitcp.checkpoints.input_cache import SourceKey

    file = given[names[0]]
    if names == ["transcript"]:
        return _transcript(file, given["agent"], workspace, where)
    raw = read_input(file)
    shown = "stdin" if file == "-" else file
    if names == ["messages"]:
        return message_input.growing(workspace, SourceKey(*where, "main"), raw, shown)
    return message_input.more(raw, shown)


def _transcript(
    file: str, agent: str | None, workspace: Workspace, where: tuple[str, str]
) -> "Incoming":
    from gitcp.checkpoints import message_input
    from gitcp.checkpoints.input_cache import SourceKey
    from gitcp.clients.detect import LOOK_AT, detect

    # Only a regular file can be read more than once.
    again = file != "-" and os.path.isfile(file)
    raw = read_input(file, most=_BEGINNING if again else -1)
    if again and raw.count(b"\n") < LOOK_AT:
        # A record may have any length.
        raw = read_input(file)
    kind, agent_session = detect(raw)
    kind = agent or kind
    if agent_session:
        source = f"{kind}-{agent_session}"
    elif kind == "unknown" and file != "-":
        # Two files of unknown origin are unlikely to be one conversation.
        source = f"unknown-{show_path(os.path.basename(os.fsencode(file)))}"
    else:
        source = kind
    if again:
        key = SourceKey(*where, source)
        return message_input.transcript_file(
            workspace, key, Path(file), kind, agent_session, lambda: read_input(file)
        )
    held = message_input.stored(workspace, *where, source)
    return message_input.transcript(raw, kind, source, agent_session, held=held)


def shown(path: str) -> str:
    """Returns a path of the command line as Unicode text."""
    return show_path(os.fsencode(path))


def read_input(name: str, *, most: int = -1) -> bytes:
    """Returns the content of a file, or of stdin for `-`; at most `most` bytes, if given.

    Raises:
        UsageError: the file cannot be read, or it is a pipe or device that does not end.
    """
    try:
        if name == "-":
            return _to_end(sys.stdin.buffer, "stdin")
        with open(name, "rb") as file:
            if most >= 0 or stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file.read(most)
            return _to_end(file, name)
    except OSError as exc:
        raise UsageError(
            f"{name} cannot be read: {exc.strerror}", hint="check the path"
        ) from exc


def _to_end(stream: BinaryIO, name: str) -> bytes:
    data = stream.read(_STREAM + 1)
    if len(data) > _STREAM:
        raise UsageError(
            f"{name} did not end within {_STREAM:,} bytes",
            hint="name a file: gitcp reads a regular file of any size",
        )
    return data


def json_value(text: str, what: str) -> msgspec.Raw:
    """Returns JSON from the command line, verbatim but compact.

    Raises:
        UsageError: the text is not JSON, or too long.
    """
    raw = text.encode("utf-8", "surrogateescape")
    if len(raw) > _JSON_LIMIT:
        raise UsageError(
            f"{what} is longer than 1 MiB", hint="keep it in a file instead"
        )
    try:
        jsontext.decode(raw)
        return msgspec.Raw(msgspec.json.format(raw, indent=-1))
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise UsageError(
            f"{what} is not JSON: {exc}", hint="quote it for the shell"
        ) from exc
