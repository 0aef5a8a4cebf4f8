"""Object ids: their type, their length, and how they are computed, for SHA-1 and SHA-256.

The one place that knows the length and the hash of an id. Which of the two a repository has
is said by its `form`; an id tells its own by its length.
"""

import hashlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hashlib import _Hash


class ObjectFormat(NamedTuple):
    """How a repository names objects: git's word for the hash, and an id's raw length."""

    name: str
    size: int

    @property
    def digits(self) -> int:
        """How many hex digits an id has."""
        return 2 * self.size

    @property
    def title(self) -> str:
        """What people call the hash."""
        return f"SHA-{self.name.removeprefix('sha')}"

    @property
    def pattern(self) -> str:
        """The regular expression of an id in hex digits."""
        return f"[0-9a-f]{{{self.digits}}}"

    def hasher(self, kind: str, size: int) -> "_Hash":
        """Returns a hash that gives an object's id once it was fed the content."""
        head = f"{kind} {size}\0".encode()
        if self.name == "sha1":
            return hashlib.sha1(head, usedforsecurity=False)
        return hashlib.sha256(head, usedforsecurity=False)

    def oid(self, kind: str, data: bytes) -> bytes:
        """Returns the id of an object; plain bytes, which records can hold."""
        digest = self.hasher(kind, len(data))
        digest.update(data)
        return digest.digest()


SHA1 = ObjectFormat("sha1", 20)
SHA256 = ObjectFormat("sha256", 32)
FORMS = {form.name: form for form in (SHA1, SHA256)}
# An id of either kind in hex digits: what is written down names objects of one repository.
PATTERN = f"{SHA1.pattern}(?:[0-9a-f]{{{SHA256.digits - SHA1.digits}}})?"
# As many digits as the longer one.
MOST_DIGITS = SHA256.digits


def form_of(oid: bytes) -> ObjectFormat:
    """Returns the form of an id, which its length tells."""
    return SHA256 if len(oid) == SHA256.size else SHA1


def form_of_hex(oid: str) -> ObjectFormat:
    """Returns the form of an id in hex digits."""
    return SHA256 if len(oid) == SHA256.digits else SHA1


def is_object(oid: bytes, kind: str, data: bytes) -> bool:
    """Whether a content is that of the object with this id."""
    return form_of(oid).oid(kind, data) == oid
