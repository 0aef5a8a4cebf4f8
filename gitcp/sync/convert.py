"""Converts the sessions of a repository whose ids have another form (docs/format.md, 26).

The converted checkpoints count as made elsewhere, as everything that is imported. But a
commit that was made here, converted there, and comes back, becomes the original commit.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress

from gitcp.encryption.quarantine import QuarantineLimits, too_much
from gitcp.errors import CorruptError, UnsafePathError
from gitcp.format.commit import Commit, converted, trailers_of
from gitcp.format.encrypted import encrypted_of
from gitcp.format.layout import LedgerKey, RefKey
from gitcp.format.ledger import ledger_trailers
from gitcp.git.objects import COMMIT
from gitcp.git.pack import PackWriter
from gitcp.git.repository import Repository
from gitcp.ledger.commits import read_pages
from gitcp.sync.convert_objects import Hasher, ObjectConverter

_COMMIT_LIMIT = 32 * 1024 * 1024
_HINT = "nothing of it was adopted; do not use it"


class SessionConverter:
    """Converts sessions of one repository into a pack for another; each commit once."""

    def __init__(
        self,
        theirs: Repository,
        ours: Repository,
        pack: PackWriter,
        bounds: QuarantineLimits,
    ) -> None:
        self._theirs = theirs.objects
        self._ours = ours.objects
        self._pack = pack
        self._bounds = bounds
        # Our commits by theirs, and the reverse.
        self._images: dict[bytes, bytes] = {}
        self._sources: dict[bytes, bytes] = {}
        self._there = ObjectConverter(
            self._theirs, pack, ours.form, self._images.get, bounds
        )
        # Converts our commits to their form, only to compare the ids.
        self._hasher = Hasher(theirs.form)
        self._back = ObjectConverter(
            self._ours, self._hasher, theirs.form, self._sources.get
        )

    def tips(self, tips: Mapping[RefKey, str]) -> dict[RefKey, str]:
        """Returns our commits for their tips; new objects are in the pack.

        Raises:
            CorruptError, UnsafePathError: something there is damaged.
            TransferError: the objects exceed the size limit.
        """
        # Ledgers first: checkpoints name their commits.
        ordered = sorted(tips, key=lambda key: not isinstance(key, LedgerKey))
        made = {}
        for key in ordered:
            tip = bytes.fromhex(tips[key])
            if isinstance(key, LedgerKey):
                self._ledger(tip, key.ref)
            else:
                self._branch(tip)
            made[key] = self._images[tip].hex()
        return made

    def _branch(self, tip: bytes) -> None:
        line: list[tuple[bytes, Commit]] = []
        ahead: bytes | None = tip
        while ahead is not None and ahead not in self._images:
            commit = self._commit(ahead)
            if trailers_of(commit) is None:
                break
            if len(commit.parents) > 1:
                raise CorruptError(
                    f"the commit {ahead.hex()} has more than one parent", hint=_HINT
                )
            line.append((ahead, commit))
            if len(line) > self._bounds.commits:
                raise too_much(f"{len(line):,} commits", "pullMaxObjects")
            ahead = commit.parents[0] if commit.parents else None
        for oid, commit in reversed(line):
            self._take(oid, commit, ObjectConverter.checkpoint)
        if tip not in self._images:
            sealed = encrypted_of(self._commit(tip)) is not None
            what = (
                "is encrypted: only `gitcp pull` decrypts it"
                if sealed
                else "is not a checkpoint"
            )
            raise CorruptError(f"{tip.hex()} {what}", hint=_HINT)

    def _ledger(self, tip: bytes, ref: str) -> None:
        def read(oid: str) -> Commit:
            return self._commit(bytes.fromhex(oid))

        for page in read_pages(read, tip.hex(), ref)[0]:
            oid = bytes.fromhex(page.oid)
            self._take(oid, self._commit(oid), ObjectConverter.page)
            # A checkpoint may name a ledger commit that a purge has replaced since.
            for old in page.purged:
                if len(old) == self._theirs.form.digits:
                    self._images.setdefault(bytes.fromhex(old), self._images[oid])

    def _take(
        self,
        oid: bytes,
        commit: Commit,
        make: Callable[[ObjectConverter, bytes, Commit], bytes],
    ) -> None:
        """Finds or makes our commit for one of theirs.

        The commit's own claim is not trusted: ours, converted, has to give that very commit.
        """
        for word in reversed(converted(commit)):
            with suppress(CorruptError, UnsafePathError, ValueError):
                mine = bytes.fromhex(word)
                if len(mine) != self._ours.form.size or not self._ours.exists(mine):
                    continue
                before = self._ours.commit(mine)
                if _name(before) != _name(commit):
                    continue
                raw = make(self._back, mine, before)
                if self._hasher.add(COMMIT, raw) == oid:
                    self._images[oid], self._sources[mine] = mine, oid
                    return
        image = self._pack.add(COMMIT, make(self._there, oid, commit))
        self._images[oid], self._sources[image] = image, oid

    def _commit(self, oid: bytes) -> Commit:
        kind, size = self._theirs.header(oid)
        if kind != COMMIT or size > _COMMIT_LIMIT:
            raise CorruptError(
                f"{oid.hex()} is a {kind} of {size:,} bytes, not a commit", hint=_HINT
            )
        return self._theirs.commit(oid)


def _name(commit: Commit) -> object:
    """Returns what identifies a checkpoint or a ledger commit in any repository."""
    checkpoint = trailers_of(commit)
    return checkpoint.id if checkpoint is not None else ledger_trailers(commit)
