"""Branches of checkpoints: tips, walks, appends (I1 to I4)."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from gitcp import notices
from gitcp.errors import (
    CorruptError,
    FormatTooNewError,
    NotFoundError,
)
from gitcp.format import layout
from gitcp.format.checkpoint import Manifest, storable, timestamp
from gitcp.format.commit import Commit, trailers_of
from gitcp.format.layout import BranchKey
from gitcp.git.repository import Repository
from gitcp.names import decode, quoted
from gitcp.store.allowance import Allowance
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.labels import Labels
from gitcp.store.numbers import Numbers
from gitcp.store.origin import Seals
from gitcp.store.salvage import Salvage, Standing
from gitcp.store.surroundings import Surroundings

# How many prunes in a row one read may meet.
_PRUNINGS = 5

Clock = Callable[[], float]
# Returns the position of a session's ledger: its last number and its tip.
FindPosition = Callable[[str], tuple[int, str]]


def _no_ledger(_session: str) -> tuple[int, str]:
    return 0, ""


class Store:
    """The checkpoints of a repository.

    A checkpoint that it appends records the `ledger_position` of its session, to which
    a restore rewinds the steps.
    """

    def __init__(
        self,
        repository: Repository,
        *,
        clock: Clock = time.time,
        ledger_position: FindPosition = _no_ledger,
    ) -> None:
        self.repository = repository
        self.seals = Seals(repository)
        self.allowance = Allowance(repository)
        self.numbers = Numbers(repository)
        self.labels = Labels(repository)
        self._around = Surroundings(self.numbers, self.labels, self.checkpoint)
        self._clock = clock
        self.ledger_position = ledger_position
        self.salvage = Salvage(repository, self.checkpoint)

    def time(self) -> float:
        """Returns the time in seconds since 1970, as a checkpoint can hold it."""
        return storable(self._clock())

    def now(self) -> str:
        """Returns the time as checkpoints hold it."""
        return timestamp(self.time())

    # --- reading --------------------------------------------------------------

    def checkpoint(self, oid: str | bytes) -> Checkpoint | None:
        """Returns the checkpoint in a commit, or None if it is another commit.

        Raises:
            CorruptError: the commit is missing or damaged.
        """
        raw = bytes.fromhex(oid) if isinstance(oid, str) else oid
        return self.made(raw, self.repository.objects.commit(raw))

    def made(
        self, oid: bytes, commit: Commit, manifest: Manifest | None = None
    ) -> Checkpoint | None:
        """Returns what `checkpoint` does, of a commit whose content is at hand."""
        trailers = trailers_of(commit)
        if trailers is None:
            return None
        return Checkpoint(
            self.repository.objects,
            oid,
            commit,
            trailers,
            self.seals,
            self.allowance,
            manifest,
            self._around,
        )

    def tip(self, session: str, branch: str) -> Checkpoint | None:
        """Returns the newest checkpoint of a branch, or None if there is no branch.

        If that one is damaged, returns the newest sound one, and gives a notice.

        Raises:
            CorruptError: the ref does not point to a checkpoint, or none is sound.
        """
        return self.standing(BranchKey.of(session, branch)).checkpoint

    def require_tip(self, session: str, branch: str) -> Checkpoint:
        """Returns the newest checkpoint of a branch.

        Raises:
            NotFoundError: there is no such branch.
        """
        tip = self.tip(session, branch)
        if tip is None:
            raise NotFoundError(
                f"there is no checkpoint in {session}/{branch}",
                hint="`gitcp save` makes one; `gitcp sessions` lists what there is",
            )
        return tip

    def standing(self, key: BranchKey, *, thorough: bool = False) -> Standing:
        """Returns where a branch is, by encoded session and branch.

        With `thorough`, every object of its tip is read, except contents of files.

        Raises:
            CorruptError: as `tip` does.
        """
        ref = key.ref
        while True:
            oid = self.repository.refs.read(ref)
            if oid is None:
                return Standing(None, None)
            try:
                checkpoint = self.checkpoint(oid)
                if checkpoint is not None:
                    if thorough:
                        self.salvage.check_sound(checkpoint)
                    with suppress(FormatTooNewError):
                        _ = checkpoint.manifest
                    return Standing(oid, checkpoint)
            except CorruptError as exc:
                if self.repository.refs.read(ref) != oid:
                    # A prune moved the branch, and the objects that it dropped are
                    # gone.
                    continue
                checkpoint = self.salvage.instead_of(key, oid, exc)
                if checkpoint is None:
                    raise
                return Standing(oid, checkpoint, exc)
            raise CorruptError(
                f"{ref} points to {oid}, which is not a checkpoint",
                hint=f"look at it with `git show {oid}`;"
                f" `git update-ref -d {quoted(ref)}` removes the branch",
            )

    def tips(self) -> Iterator[tuple[BranchKey, Checkpoint]]:
        """Yields the newest checkpoint of each branch, by encoded session and branch.

        For a damaged branch it is the newest sound one; a branch without any is left
        out.
        """
        for key, oid in self.refs().items():
            with suppress(CorruptError):
                checkpoint = self.sound(key, oid)
                if checkpoint is not None:
                    yield key, checkpoint

    def sound(self, key: BranchKey, oid: str) -> Checkpoint | None:
        """Returns the checkpoint that a branch's ref names, or the newest sound one.

        None if the ref names another commit.

        Raises:
            CorruptError: no checkpoint of the branch is sound.
            FormatTooNewError: a newer gitcp wrote it.
        """
        try:
            checkpoint = self.checkpoint(oid)
            if checkpoint is not None:
                _ = checkpoint.manifest
        except CorruptError as exc:
            instead = self.salvage.instead_of(key, oid, exc)
            if instead is None:
                raise
            return instead
        return checkpoint

    def line(self, start: Checkpoint) -> Iterator[Checkpoint]:
        """Yields a checkpoint and those before it, across fork points.

        If a concurrent prune rewrites the branch, it continues with what is left.
        """
        current: Checkpoint | None = start
        while current is not None:
            yield current
            current = self._before(current)

    def holds(self, tip: str, wanted: Checkpoint) -> bool:
        """Whether the line below a commit has a checkpoint."""
        start = self.checkpoint(tip)
        return start is not None and any(
            checkpoint == wanted for checkpoint in self.line(start)
        )

    def _before(self, checkpoint: Checkpoint) -> Checkpoint | None:
        parents = checkpoint.raw.parents
        if not parents:
            return None
        try:
            return self.checkpoint(parents[0])
        except CorruptError as exc:
            if self.repository.objects.exists(parents[0]):
                raise
            missing = exc
        # A reader without a lock (git.readers) may find the objects gone.
        for _ in range(_PRUNINGS):
            try:
                now = list(self._line_now(checkpoint))
            except CorruptError:
                continue
            if not now or checkpoint in now:
                break
            return next((left for left in now if _is_before(left, checkpoint)), None)
        trailers = checkpoint.trailers
        below = self.salvage.newest(trailers.key, below=checkpoint.seq)
        if below is None:
            raise missing
        notices.tell(
            f"the history between {below.id} and {checkpoint.id} is damaged:"
            f" {missing.message}. `gitcp verify` shows more"
        )
        return below

    def _line_now(self, checkpoint: Checkpoint) -> Iterator[Checkpoint]:
        trailers = checkpoint.trailers
        tip = self.repository.refs.read(trailers.key.ref)
        current = self.checkpoint(tip) if tip is not None else None
        while current is not None:
            yield current
            parents = current.raw.parents
            current = self.checkpoint(parents[0]) if parents else None

    def refs(self) -> dict[BranchKey, str]:
        """Returns the tip of each branch by its encoded session and branch."""
        return self._below(layout.SESSIONS)

    def refs_of(self, session: str) -> dict[BranchKey, str]:
        """Returns what `refs` does, of one session."""
        return self._below(layout.session_prefix(session))

    def _below(self, prefix: str) -> dict[BranchKey, str]:
        refs = {}
        for ref, oid in self.repository.refs.list(prefix).items():
            parts = ref.removeprefix(layout.SESSIONS).split("/")
            if len(parts) == 2:  # noqa: PLR2004  session and branch
                refs[BranchKey(*parts)] = oid
        return refs

    def names(self, component: BranchKey, oid: str) -> tuple[str, str]:
        """Returns the whole names behind a branch's ref; cut ones are in its tip."""
        session, branch = map(decode, component)
        if session is None or branch is None:
            tip = self.checkpoint(oid)
            if tip is None:
                return component
            return tip.session, tip.branch
        return session, branch


def _is_before(checkpoint: Checkpoint, other: Checkpoint) -> bool:
    """Whether one comes before another on a line that both are, or were, on."""
    mine, theirs = checkpoint.trailers, other.trailers
    return mine[1:3] != theirs[1:3] or mine.seq < theirs.seq
