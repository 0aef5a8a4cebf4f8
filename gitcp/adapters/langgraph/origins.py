"""Decides which commits of a thread were made here, and how those of other threads got in.

A seal covers all that a checkpoint says. It does not cover the parents and the trailers of its
commit (docs/format.md, 5), and the index of a thread is made of these.
"""

from collections.abc import Mapping

from gitcp.adapters.langgraph.index import Index
from gitcp.adapters.langgraph.reader import ThreadReader
from gitcp.format import layout
from gitcp.format.commit import Trailers, trailers_of
from gitcp.format.graph import decode_header
from gitcp.names import encode
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.origin import ELSEWHERE, HERE, Origin
from gitcp.store.store import Store
from gitcp.trust.trusted_remotes import Pulled
from gitcp.wal.client import LogClient

_FOREIGN = Origin(ELSEWHERE, ELSEWHERE, here=False)


class Origins:
    """The origins of one thread's commits; the caller holds the thread's mutex."""

    def __init__(
        self,
        store: Store,
        reader: ThreadReader,
        log: LogClient,
        session: str,
        pulled: Pulled,
    ) -> None:
        self._store = store
        self._reader = reader
        self._log = log
        self._session = encode(session)
        self._pulled = pulled
        self._joined: tuple[frozenset[bytes], Mapping[bytes, bytes | None]] | None = (
            None
        )

    def of(self, oid: bytes) -> Origin:
        """Returns where a commit of the thread was made, and what it carries on."""
        if oid in self._reader.logged:
            # Made here: its seal needs no checking.
            sealed = self._reader.manifest(oid).origin
            return Origin(sealed.files, sealed.logs) if sealed is not None else HERE
        checkpoint = self._store.checkpoint(oid)
        if checkpoint is None:
            return HERE
        origin = checkpoint.origin
        if origin.foreign:
            return origin
        # A seal of 0.1.0 may be copied, and says nothing of the event.
        copied = not origin.whole and oid.hex() in self._pulled
        return origin if not copied and self._is_said(checkpoint) else _FOREIGN

    def doubt(self, oid: bytes, index: Index) -> bytes | None:
        """Returns the commit that has to be trusted before a commit is; None if none has.

        That is the commit itself or, if it is of another thread, the one that put it here.
        """
        return oid if self.of(oid).foreign else self._put_here_by(oid, index)

    def vouches(self, oid: bytes, index: Index) -> bool:
        """Whether a commit was made here, whatever it carries on, and put here by none else."""
        return self.of(oid).here and self._put_here_by(oid, index) is None

    def _put_here_by(self, oid: bytes, index: Index) -> bytes | None:
        trailers = self._trailers(oid)
        if trailers is None or trailers.session == self._session:
            return None
        return self._from_others(index).get(oid)

    def _is_said(self, checkpoint: Checkpoint) -> bool:
        """Whether the trailers of a commit say what the seal covers."""
        said, trailers = checkpoint.manifest, checkpoint.trailers
        if (encode(said.session), encode(said.branch), said.seq) != (
            trailers.session,
            trailers.branch,
            trailers.seq,
        ):
            return False
        header = decode_header(checkpoint.raw)
        if header is None:
            return True
        _, own = self._reader.own(checkpoint.oid)
        return layout.EVENT in own and header.fits(self._reader.event(checkpoint.oid))

    def _from_others(self, index: Index) -> Mapping[bytes, bytes | None]:
        """Returns the commits of other threads below this one's lines, with the doubt.

        A thread that is copied begins with a commit that names the one before it.
        """
        tips = frozenset(line.tip for line in index.lines.values())
        if self._joined is None or self._joined[0] != tips:
            found: dict[bytes, bytes | None] = {}
            for tip in tips:
                self._walk(tip, found)
            self._joined = tips, found
        return self._joined[1]

    def _walk(self, tip: bytes, found: dict[bytes, bytes | None]) -> None:
        oid: bytes | None = tip
        above: tuple[bytes, Trailers] | None = None
        doubt: bytes | None = None
        while oid is not None and (trailers := self._trailers(oid)) is not None:
            if (
                doubt is None
                and above is not None
                and above[1].session != trailers.session
                and not self._forks(above[0], trailers.id)
            ):
                doubt = above[0]
            if trailers.session != self._session:
                if oid in found and (doubt is not None or found[oid] is None):
                    # Another line has shown as much for all below.
                    return
                found[oid] = doubt
            above = oid, trailers
            parents = self._log.commit(oid).parents
            oid = parents[0] if parents else None

    def _forks(self, oid: bytes, ident: str) -> bool:
        """Whether a commit was made here as a fork of a checkpoint."""
        return self.of(oid).here and self._reader.manifest(oid).forked_from == ident

    def _trailers(self, oid: bytes) -> Trailers | None:
        return trailers_of(self._log.commit(oid))
