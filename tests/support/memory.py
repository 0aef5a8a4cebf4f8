"""Objects and refs in memory, for tests of what only reads and moves them.

Here and not in `gitcp.git`: the product has no use for a store that ends with its process.
`tests/integration/git/test_conformance.py` holds them to what the ones on disk do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gitcp.errors import BranchMovedError, GitFailedError
from gitcp.format.oid import SHA1, ObjectFormat
from gitcp.git.objects import BLOB, Objects, damaged, wrong_kind
from gitcp.git.ref_names import refuse_foreign

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_CHUNK = 1024


class MemoryObjects(Objects):
    """Objects in a dictionary, with ids of either hash."""

    def __init__(self, form: ObjectFormat = SHA1) -> None:
        super().__init__(form)
        self._stored: dict[bytes, tuple[str, bytes]] = {}

    def add(self, kind: str, data: bytes) -> bytes:
        """Stores an object and returns its id."""
        oid = self.form.oid(kind, data)
        self._stored[oid] = kind, data
        return oid

    def exists(self, oid: bytes) -> bool:
        return oid in self._stored

    def header(self, oid: bytes) -> tuple[str, int]:
        kind, data = self._get(oid)
        return kind, len(data)

    def read(self, oid: bytes, kind: str) -> bytes:
        found, data = self._get(oid)
        if found != kind:
            raise wrong_kind(oid, found, kind)
        return data

    def stream(self, oid: bytes) -> Iterator[bytes]:
        data = self.read(oid, BLOB)
        for at in range(0, len(data), _CHUNK):
            yield data[at : at + _CHUNK]

    def _get(self, oid: bytes) -> tuple[str, bytes]:
        try:
            return self._stored[oid]
        except KeyError as exc:
            raise damaged(oid, exc) from exc


class MemoryRefs:
    """Refs in a dictionary; a symbolic one is `ref: ` and the name of another."""

    lock_timeout = 0.0

    def __init__(self, refs: Mapping[str, str] | None = None) -> None:
        self._refs = dict(refs or {})

    def symbolic(self, name: str) -> str | None:
        value = self._refs.get(name, "")
        return value.removeprefix("ref: ") if value.startswith("ref: ") else None

    def read(self, name: str) -> str | None:
        target = self.symbolic(name)
        return self._refs.get(name) if target is None else self.read(target)

    def list(self, prefix: str) -> dict[str, str]:
        return {
            name: oid
            for name, oid in sorted(self._refs.items())
            if name.startswith(prefix) and self.symbolic(name) is None
        }

    def any(self, prefix: str) -> bool:
        return any(name.startswith(prefix) for name in self._refs)

    def signature(self, prefix: str) -> object:
        return self.list(prefix)

    def compare_and_swap(
        self,
        name: str,
        *,
        expect: str | None,
        new: str,
        staged: Path,
    ) -> None:
        refuse_foreign(name)
        if self.read(name) != expect:
            raise BranchMovedError(f"{name} moved", hint="run the command again")
        self._refs[name] = new

    def delete(self, refs: Mapping[str, str | None]) -> None:
        for name in refs:
            refuse_foreign(name)
        for name, oid in refs.items():
            if oid is not None and self.read(name) != oid:
                raise GitFailedError(f"{name} moved", hint="run the command again")
        for name in refs:
            self._refs.pop(name, None)
