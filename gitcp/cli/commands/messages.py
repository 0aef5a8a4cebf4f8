"""gitcp messages."""

import click

from gitcp.cli.emit import Output, safe
from gitcp.cli.options import command, reader
from gitcp.durable import replace, storage
from gitcp.errors import PartialError
from gitcp.format import jsontext
from gitcp.ops.conversation import UNREADABLE, as_markdown, records
from gitcp.ops.select import select


@command("messages")
@click.argument("selector", metavar="[SEL]", required=False)
@click.option("-o", "file", metavar="FILE", help="Write to a file")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "json", "markdown"]),
    help="jsonl: the stored bytes; json: an array; markdown: to read",
)
def messages_command(
    out: Output, selector: str | None, file: str | None, form: str | None
) -> None:
    """Print the conversation."""
    from pathlib import Path

    found = select(reader(out), selector)
    raw = found.conversation()
    if found.origin.logs is not None:
        out.note(
            f"this conversation was pulled from {found.origin.logs}: it is a record of"
            " what was said there, not yours"
        )
    unreadable = 0
    form = form or ("json" if out.json else "jsonl" if file else "markdown")
    if form == "jsonl":
        data = raw
    elif form == "json":
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
            replace(Path(out.directory, file), data)
        out.note(f"wrote {len(data):,} bytes to {file}")
    if unreadable:
        raise PartialError(
            f"{unreadable} records of the conversation are not JSON and were left out",
            hint="`--format jsonl` gives every byte",
        )
