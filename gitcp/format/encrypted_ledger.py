"""Encodes a ledger's encrypted commit, before encryption (docs/format.md, 19)."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gitcp.format.commit import WHO, Commit, pairs, raw_commit
from gitcp.format.oid import PATTERN

# More than the version of a ledger: a gitcp that knows nothing of this refuses it.
FORMAT = 2
# The one file of a form's tree.
RECORD = b"encrypted"
# Bytes of pages that share a record, unless one of them alone has more: to open a record
# takes an RSA key as long as to read a megabyte.
SHARED = 256 * 1024

_OID = re.compile(PATTERN)
_PATH = re.compile(rf"fx/({PATTERN})(?:/([1-9][0-9]{{0,17}}\.json))?".encode())
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
    trailers = pairs(commit)
    try:
        if int(trailers["Version"]) != FORMAT:
            return None
        page = EncryptedPage(
            trailers["Ledger"],
            int(trailers["Last"]),
            trailers["Encrypted"],
            trailers.get("Form"),
        )
    except (KeyError, ValueError):
        return None
    if not _OID.fullmatch(page.plain) or page.last < 1:
        return None
    return page


def encode_page_commit(
    tree: bytes, parents: Sequence[bytes], epoch: int, page: EncryptedPage
) -> bytes:
    """Returns the raw commit object."""
    lines = [
        f"Gitcp-Ledger: {page.session}",
        f"Gitcp-Last: {page.last}",
        f"Gitcp-Version: {FORMAT}",
        f"Gitcp-Encrypted: {page.plain}",
    ]
    if page.form is not None:
        lines.append(f"Gitcp-Form: {page.form}")
    message = f"{_SUBJECT}\n\n" + "\n".join(lines) + "\n"
    return raw_commit(tree, parents, epoch, message.encode("ascii"))


def page_files(oid: str, page: HeldPage) -> list[tuple[bytes, bytes]]:
    """Returns the files of a record that hold a page."""
    directory = f"fx/{oid}".encode()
    values = [(directory + b"/" + name, data) for name, data in page.values.items()]
    return [(directory, page.raw), *values]


def pages_in(files: Mapping[bytes, bytes]) -> dict[str, HeldPage]:
    """Returns the pages that the files of a record hold, by the ids they go by.

    Raises:
        ValueError: a path is not one of a page or of its values.
    """
    raw: dict[str, bytes] = {}
    values: dict[str, dict[bytes, bytes]] = {}
    for path, data in files.items():
        match = _PATH.fullmatch(path)
        if match is None:
            raise ValueError("it holds what is not a page")
        oid = match[1].decode()
        if match[2] is None:
            raw[oid] = data
        else:
            values.setdefault(oid, {})[match[2]] = data
    if values.keys() - raw.keys():
        raise ValueError("it holds a value without its page")
    return {oid: HeldPage(one, values.get(oid, {})) for oid, one in raw.items()}
