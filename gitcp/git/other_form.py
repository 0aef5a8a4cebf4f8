"""The error for a repository with another hash (SHA-1, SHA-256): nothing can be shared."""

import re

from gitcp.errors import TransferError
from gitcp.format.oid import FORMS, SHA1, SHA256, ObjectFormat

# What git says of a remote without refs; the last one up to 2.39.
_SAID = ("hash algorithm", "mismatched algorithms", "unexpected capabilities^{}")
_HEAD = 4096


class OtherFormError(TransferError):
    """A remote, or a file, names its objects by another hash."""


def of(ours: ObjectFormat | None, where: str) -> OtherFormError:
    """Returns the error for a remote or a file; None: git does not say which form is whose."""
    if ours is None:
        what = "by another hash than this repository"
    else:
        theirs = SHA1 if ours is SHA256 else SHA256
        what = f"by {theirs.title}, this repository by {ours.title}"
    return OtherFormError(
        f"{where} names its objects {what}, so nothing can be pushed or pulled"
        " between them",
        hint="nothing was changed; use `gitcp export` there and `gitcp import` here to"
        " move a session",
    )


def is_meant(reason: str) -> bool:
    """Whether this is why git failed."""
    return any(words in reason for words in _SAID)


def of_bundle(path: str) -> ObjectFormat | None:
    """Returns the form of the ids in a bundle; None if it does not say so.

    Raises:
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        first, _, rest = file.read(_HEAD).partition(b"\n")
    if first == b"# v2 git bundle":
        return SHA1
    said = re.match(rb"(?:@[^\n]*\n)*?@object-format=(\w+)\n", rest)
    return FORMS.get(said[1].decode()) if said else None
