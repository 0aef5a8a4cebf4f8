"""Caches the documents of an object store: an unchanged one is not read again.

A listing names the content of each object. If the cache is lost, it only costs requests.
"""

import hashlib
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from gitcp import durable
from gitcp.git.repository import Repository
from gitcp.remotes.place import Version

_DIRECTORY = "stores"
_Kept = dict[str, tuple[str, str | None, str]]
_DECODER = msgspec.json.Decoder(_Kept)


class Seen:
    """The documents of one store, by their refs, as text with the version that was read."""

    def __init__(self, repository: Repository, url: str) -> None:
        """Reads the cached documents of the store at an address."""
        name = hashlib.sha256(url.encode()).hexdigest()[:32]
        self._path = repository.store_dir / _DIRECTORY / f"{name}.json"
        self._kept: _Kept = {}
        with suppress(OSError, msgspec.MsgspecError):
            self._kept = _DECODER.decode(self._path.read_bytes())
        self._before = dict(self._kept)

    def get(self, ref: str, e_tag: str | None) -> tuple[bytes, Version] | None:
        """Returns a document, if its content still is the one that a listing names."""
        found = self._kept.get(ref)
        if found is None or e_tag is None or not _same(found[0], e_tag):
            return None
        return found[2].encode(), Version(found[0], found[1])

    def note(self, news: Mapping[str, tuple[bytes, Version]]) -> None:
        """Notes documents that were read or stored."""
        for ref, (raw, version) in news.items():
            if version.e_tag is not None:
                with suppress(UnicodeDecodeError):
                    kept = (version.e_tag, version.version, raw.decode())
                    self._kept[ref] = kept
        if self._kept != self._before:
            # A failed write only costs requests, as a lost file does.
            with suppress(OSError):
                durable.make_directories(self._path.parent)
                data = msgspec.json.encode(self._kept)
                durable.replace(self._path, data, sync=False)
            self._before = dict(self._kept)


def _same(one: str, other: str) -> bool:
    """Whether two ETags name the same content: Azure's listing leaves out the quotes."""
    return one.strip('"') == other.strip('"')
