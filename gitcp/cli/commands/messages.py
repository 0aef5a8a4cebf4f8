"""`gitcp messages`: prints the conversation of a checkpoint."""

from collections.abc import Iterable
from pathlib import Path

import click

from gitcp import Checkpoint
from gitcp.checkpoints.conversation import UNREADABLE, as_markdown, records
from gitcp.checkpoints.selectors import select
from gitcp.checkpoints.spoken_turns import dialogue
from gitcp.cli.emit import Output, safe
from gitcp.cli.layout import width
from gitcp.cli.options import command, reader
from gitcp.cli.render import count
from gitcp.cli.turn_lines import answer_lines, prompt_lines, tool_lines, turn_header
from gitcp.durable import replace_from, storage
from gitcp.errors import PartialError
from gitcp.format import jsontext
from gitcp.project.workspace import Workspace

_ONLY_END = (
    "this long conversation is shown from its end; `--format jsonl` prints every byte"
)


@command("messages")
@click.argument("selector", metavar="[SEL]", required=False)
@click.option(
    "--all", "everything", is_flag=True, help="Print every record, not only turns"
)
@click.option("-o", "--output", "file", metavar="FILE", help="Write to a file")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "json", "markdown"]),
    help="jsonl: the stored bytes; json: an array; markdown: text to read",
)
def messages_command(
    out: Output,
    selector: str | None,
    everything: bool,
    file: str | None,
    form: str | None,
) -> None:
    """Print the conversation, turn by turn.

    A turn is a prompt, a line for each tool that ran, and the answer. Turns that were taken
    back in the client are left out, except with `--all` or `--format`.
    """
    workspace = reader(out, paged=file is None)
    checkpoint = select(workspace, selector)
    if checkpoint.origin.logs is not None:
        out.note(
            f"this conversation was pulled from {checkpoint.origin.logs}: it is a"
            " record of someone else's conversation, not yours"
        )
    if form is None and not (out.json or file or everything):
        _turns(out, workspace, checkpoint)
        return
    default = "markdown" if everything else "jsonl"
    form = form or ("json" if out.json else default)
    if form == "jsonl":
        _bytes(out, checkpoint, file)
        return
    raw, whole = checkpoint.conversation_to_read()
    if not whole:
        out.warn(_ONLY_END)
    unreadable = 0
    if form == "json":
        found_all = list(records(raw))
        lines = [line.strip() for line, value in found_all if value is not UNREADABLE]
        unreadable = len(found_all) - len(lines)
        data = b"[" + b",\n ".join(lines) + b"]\n"
        if out.json:
            data = jsontext.compact(data) + b"\n"
    else:
        text = as_markdown(raw)
        data = (text if file else safe(text)).encode("utf-8", "replace")
    if file is None or file == "-":
        (out.json_text if form == "json" else out.raw)(data)
    else:
        with storage(f"writing {file}"):
            _write(Path(out.directory, file), [data])
        out.note(f"wrote {len(data):,} bytes to {file}")
    if unreadable:
        raise PartialError(
            f"{unreadable} records of the conversation are not JSON and were left out",
            hint="`--format jsonl` prints every byte",
        )


def _turns(out: Output, workspace: Workspace, checkpoint: Checkpoint) -> None:
    """Prints the turns that count; every record, if there are no turns."""
    found = dialogue(checkpoint)
    if not found.whole:
        out.warn(_ONLY_END)
    if not found.turns:
        text = as_markdown(checkpoint.conversation_to_read()[0])
        out.raw(safe(text).encode("utf-8", "replace"))
        return
    tops = [str(workspace.top), *([found.directory] if found.directory else [])]
    columns = width()
    for number, turn in enumerate(found.turns, 1):
        if number > 1:
            out.print()
        out.print(turn_header(out, number, turn))
        for line in prompt_lines(out, turn.prompt or "", columns):
            out.print(line)
        for line in tool_lines(out, turn.tools, tops, columns):
            out.print(line)
        for line in answer_lines(turn.answer, columns):
            out.print(line)
    if found.hidden:
        out.note(
            f"{count(found.hidden, 'turn')} taken back and hidden; --all shows every"
            " record"
        )


def _bytes(out: Output, checkpoint: Checkpoint, file: str | None) -> None:
    """Writes the stored bytes, piece by piece."""
    if file is None or file == "-":
        for chunk in checkpoint.conversation_stream():
            out.raw(chunk)
        return
    path = Path(out.directory, file)
    with storage(f"writing {file}"):
        size = _write(path, checkpoint.conversation_stream())
    out.note(f"wrote {size:,} bytes to {file}")


def _write(path: Path, chunks: Iterable[bytes]) -> int:
    """Replaces a file atomically and returns its size; writes directly to a device.

    A file in place of /dev/null would break every program on the machine.
    """
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            return sum(map(file.write, chunks))
    return replace_from(path.resolve(), chunks)
