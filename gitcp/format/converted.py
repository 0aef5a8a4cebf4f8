"""Checkpoints and ledger commits with ids of another form (docs/format.md, 26).

Pure and always the same: one commit gives one commit, wherever and whenever it is made.
"""

from collections.abc import Callable, Mapping

import msgspec

from gitcp.format import jsontext
from gitcp.format.checkpoint import Converted
from gitcp.format.commit import join_commit, with_converted
from gitcp.format.oid import ObjectFormat

# Returns what a commit is called there; one that is not there keeps its id.
Named = Callable[[str], str]


def manifest(
    raw: bytes,
    *,
    files: bytes | None,
    skipped: int,
    of: ObjectFormat,
    named: Named,
) -> bytes:
    """Returns `checkpoint.json` with other ids: of the files' tree, and of the ledger.

    `skipped` paths more are listed, `of` is the form that the ids had. Fields that this
    version does not know stay.

    Raises:
        ValueError: `raw` is not a manifest.
    """
    fields = jsontext.members(raw)
    told = jsontext.members(fields["files"])
    told["tree"] = msgspec.json.encode(files.hex() if files is not None else None)
    fields["files"] = _text(told)
    if skipped:
        before = jsontext.decode(fields["skipped"])
        fields["skipped"] = msgspec.json.encode(before + skipped)
    base = None
    if fields.get("base", b"null") != b"null":
        state = jsontext.members(fields["base"])
        base = jsontext.decode(state["commit"])
        state["commit"] = b"null"
        fields["base"] = _text(state)
    if "ledger" in fields:
        ledger = jsontext.decode(fields["ledger"])
        fields["ledger"] = msgspec.json.encode(named(ledger))
    ways = jsontext.elements(fields.get("converted", b"[]"))
    ways.append(msgspec.json.encode(Converted(of.name, base)))
    fields["converted"] = b"[" + b",".join(ways) + b"]"
    return msgspec.json.format(_text(fields), indent=2) + b"\n"


def commit(
    raw: bytes, *, tree: bytes, parents: list[bytes], was: bytes, message: bytes
) -> bytes:
    """Returns a raw commit with other ids, made by the same at the same time.

    `was` is its id. What else its head holds, as a signature, goes: that is of the old one.
    """
    head = raw.partition(b"\n\n")[0].split(b"\n")
    people = [line for line in head if line.startswith((b"author ", b"committer "))]
    return join_commit(tree, parents, people, with_converted(message, was.hex()))


def page(message: bytes, named: Named) -> bytes:
    """Returns the message of a ledger commit whose records name others.

    A record that names none stays byte for byte, and so does its seal.

    Raises:
        ValueError: a record is not JSON.
    """
    subject, gap, rest = message.partition(b"\n\n")
    body, end, trailers = rest.rpartition(b"\n\n")
    lines = [_record(line, named) if line else line for line in body.split(b"\n")]
    return subject + gap + b"\n".join(lines) + end + trailers


def _record(line: bytes, named: Named) -> bytes:
    fields = jsontext.members(line)
    if "ledger" not in fields:
        return line
    fields["ledger"] = msgspec.json.encode(named(jsontext.decode(fields["ledger"])))
    return _text(fields)


def _text(fields: Mapping[str, bytes]) -> bytes:
    pairs = (msgspec.json.encode(name) + b":" + raw for name, raw in fields.items())
    return b"{" + b",".join(pairs) + b"}"
