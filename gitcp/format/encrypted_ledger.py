"""Encodes a ledger's encrypted commit, before encryption (docs/format.md, 19)."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gitcp.format.commit import WHO, Commit, clamp, pairs

# More than the version of a ledger: a gitcp that knows nothing of this refuses it.
FORMAT = 2
# The one file of a form's tree.
RECORD = b"encrypted"
# Bytes of pages that share a record, unless one of them alone has more: to open a record
# takes an RSA key as long as to read a megabyte.
SHARED = 256 * 1024

_OID = re.compile(r"[0-9a-f]{40}")
_PATH = re.compile(rb"fx/([0-9a-f]{40})(?:/([1-9][0-9]{0,17}\.json))?")
_SUBJECT = "encrypted ledger"


class EncryptedPage(NamedTuple):
    """The trailers of an encrypted ledger commit, in plaintext.

    `plain` is the commit it stands for; the rest is as in that one's trailers. What has
    a `form` is only a note of that one, which is not here any more.
    """

    session: str
    last: int
    plain: str
    form: str | None = None


class HeldPage(NamedTuple):
    """A page in a record: the raw commit, and its large values by name."""

    raw: bytes
    values: Mapping[bytes, bytes]


def encrypted_page_of(commit: Commit) -> EncryptedPage | None:
    """Returns what an encrypted page says of itself, or None for any other commit."""
    if not commit.committer.startswith(WHO + b" "):
        return None
    said = pairs(commit)
    try:
        if int(said["Version"]) != FORMAT:
            return None
        found = EncryptedPage(
            said["Ledger"], int(said["Last"]), said["Encrypted"], said.get("Form")
        )
    except (KeyError, ValueError):
        return None
    if not _OID.fullmatch(found.plain) or found.last < 1:
        return None
    return found


def encode_page_commit(
    tree: bytes, parents: Sequence[bytes], epoch: int, said: EncryptedPage
) -> bytes:
    """Returns the raw commit object."""
    who = b"%b %d +0000" % (WHO, clamp(epoch))
    lines = [
        f"Gitcp-Ledger: {said.session}",
        f"Gitcp-Last: {said.last}",
        f"Gitcp-Version: {FORMAT}",
        f"Gitcp-Encrypted: {said.plain}",
    ]
    if said.form is not None:
        lines.append(f"Gitcp-Form: {said.form}")
    head = [b"tree " + tree.hex().encode()]
    head += [b"parent " + parent.hex().encode() for parent in parents]
    head += [b"author " + who, b"committer " + who]
    message = f"{_SUBJECT}\n\n" + "\n".join(lines) + "\n"
    return b"\n".join(head) + b"\n\n" + message.encode("ascii")


def page_files(oid: str, page: HeldPage) -> list[tuple[bytes, bytes]]:
    """Returns the files of a record that hold a page."""
    place = f"fx/{oid}".encode()
    values = [(place + b"/" + name, data) for name, data in page.values.items()]
    return [(place, page.raw), *values]


def pages_in(files: Mapping[bytes, bytes]) -> dict[str, HeldPage]:
    """Returns the pages that the files of a record hold, by the ids they go by.

    Raises:
        ValueError: it holds something else.
    """
    raw: dict[str, bytes] = {}
    values: dict[str, dict[bytes, bytes]] = {}
    for path, data in files.items():
        found = _PATH.fullmatch(path)
        if found is None:
            raise ValueError("it holds what is not a page")
        oid = found[1].decode()
        if found[2] is None:
            raw[oid] = data
        else:
            values.setdefault(oid, {})[found[2]] = data
    if values.keys() - raw.keys():
        raise ValueError("it holds a value without its page")
    return {oid: HeldPage(one, values.get(oid, {})) for oid, one in raw.items()}
