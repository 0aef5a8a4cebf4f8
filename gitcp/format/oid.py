"""Object ids: what they are, how they are computed, and how long they are.

The one place that knows the length and the hash of an id. Repositories with SHA-256 ids
are refused today (`git.served`); what reads them asks for `SHA256` here.
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
    def pattern(self) -> str:
        """The regular expression of an id in hex digits."""
        return f"[0-9a-f]{{{self.digits}}}"

    def hasher(self, kind: str, size: int) -> "_Hash":
        """Returns a hash that gives an object's id once it was fed the content."""
        head = f"{kind} {size}\0".encode()
        return hashlib.new(self.name, head, usedforsecurity=False)

    def oid(self, kind: str, data: bytes) -> bytes:
        """Returns the id of an object; plain bytes, which records can hold."""
        digest = self.hasher(kind, len(data))
        digest.update(data)
        return digest.digest()


SHA1 = ObjectFormat("sha1", 20)
SHA256 = ObjectFormat("sha256", 32)
# What gitcp reads and writes today.
CURRENT = SHA1
SIZE = CURRENT.size
DIGITS = CURRENT.digits
PATTERN = CURRENT.pattern
object_id = CURRENT.oid
object_hash = CURRENT.hasher
