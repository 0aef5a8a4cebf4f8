"""`gitcp save`: saves a checkpoint."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from gitcp.checkpoints.save import save
from gitcp.cli import documents
from gitcp.cli.emit import Output
from gitcp.cli.helping import Command
from gitcp.cli.options import command, read_input, writer
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
# What a transcript begins with tells whose it is, in bytes.
_BEGINNING = 1 << 20
_ACTIVE = "--active"
# option -> kind in the decision log
_KINDS = {
    "decision": "decision",
    "tried": "tried",
    "fact": "fact",
    "next_step": "next",
    "log_note": "note",
    "bug": "bug",
    "task": "task",
}


def _spread(args: list[str]) -> list[str]:
    """Gives each of the paths after one `--active` an option of its own."""
    spread: list[str] = []
    active = False
    for arg in args:
        if arg.startswith("-"):
            active = arg.partition("=")[0] == _ACTIVE
        elif active and spread[-1] != _ACTIVE:
            spread.append(_ACTIVE)
        spread.append(arg)
    return spread


class _Ordered(Command):
    """Remembers the order of the log entries, which `--why` refers to.

    Takes several paths after `--active`: a save has no arguments that they could be.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = _spread(args)
        values, _, order = self.make_parser(ctx).parse_args(args=list(args))
        seen: dict[str, int] = {}
        entries: list[tuple[str, str]] = []
        for parameter in order:
            name = parameter.name or ""
            if name in _KINDS or name == "why":
                value = values[name]
                at = seen.get(name, 0)
                seen[name] = at + 1
                entries.append((name, value[at] if isinstance(value, list) else value))
        ctx.meta["entries"] = entries
        return super().parse_args(ctx, args)


def _entries(ctx: click.Context, active: tuple[str, ...]) -> tuple[Decision, ...]:
    entries: list[Decision] = []
    for name, text in ctx.meta["entries"]:
        if name != "why":
            entries.append(Decision(text, kind=_KINDS[name]))
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

    # What is not a regular file can be read only once.
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
        # Two files of which nothing is known are hardly one conversation.
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


def json_value(text: str, what: str) -> msgspec.Raw:
    """Returns JSON given at the command line, verbatim but compact.

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


@command("save", cls=_Ordered)
@click.option(
    "-m", "--message", "note", metavar="NOTE", help="A note that describes this state"
)
@click.option("--label", metavar="NAME", help="A name to select the checkpoint by")
@click.option(
    "-s",
    "--session",
    "where",
    metavar="SESSION[/BRANCH]",
    help="The session and branch to save to",
)
@click.option("--messages", metavar="FILE", help="The whole conversation; - for stdin")
@click.option(
    "--append", metavar="FILE", help="Only the new messages, as JSON lines; - for stdin"
)
@click.option("--transcript", metavar="FILE", help="An agent's own transcript file")
@click.option("--agent", metavar="NAME", help="The agent that wrote the transcript")
@click.option("--decision", multiple=True, metavar="T", help="A decision (repeatable)")
@click.option("--tried", multiple=True, metavar="T", help="A dead end (repeatable)")
@click.option("--fact", multiple=True, metavar="T", help="A case fact (repeatable)")
@click.option(
    "--next", "next_step", multiple=True, metavar="T", help="A next step (repeatable)"
)
@click.option(
    "--note", "log_note", multiple=True, metavar="T", help="A remark (repeatable)"
)
@click.option("--bug", multiple=True, metavar="T", help="A bug found (repeatable)")
@click.option(
    "--why", multiple=True, metavar="T", help="The reason for the entry before it"
)
@click.option("--task", metavar="T", help="The current task")
@click.option(
    _ACTIVE, multiple=True, metavar="PATH…", help="Files being worked on (repeatable)"
)
@click.option("--position", metavar="JSON", help="The position of a pipeline")
@click.option(
    "--trigger", metavar="NAME", default="manual", help="What caused the checkpoint"
)
@click.option("--allow-empty", is_flag=True, help="Save even if nothing changed")
@click.option(
    "--include", multiple=True, metavar="GLOB", help="Also capture these ignored paths"
)
@click.option(
    "--init",
    is_flag=True,
    help="In a folder without git: create a private store without asking",
)
@click.pass_context
def save_command(ctx: click.Context, out: Output, /, **given: Any) -> None:
    """Make a checkpoint of files, conversation and decisions.

    In a folder without git, it first asks whether to create a private store. The store is
    in your state directory; gitcp puts nothing into the folder.
    """
    if given["label"] is not None:
        from gitcp.checkpoints.labels import check_typed_label

        check_typed_label(given["label"])
    workspace = _opened(out, init=given["init"])
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
            decisions=_entries(ctx, given["active"]),
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


def _opened(out: Output, *, init: bool) -> Workspace:
    try:
        return writer(out)
    except NotARepositoryError as exc:
        from gitcp.cli.private_folder import offer

        offer(out, exc, init=init)
    return writer(out)


def _report(out: Output, saved: Saved, note: str | None) -> None:
    checkpoint = saved.checkpoint
    if saved.rewritten:
        out.warn(
            "the conversation does not continue the stored one, so this"
            " checkpoint replaces its end (earlier checkpoints keep theirs)"
        )
    if out.json:
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
