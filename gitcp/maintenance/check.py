"""Checks checkpoints one after another; checks each object once."""

from collections.abc import Container
from contextlib import suppress
from functools import cache, partial

from gitcp.errors import CorruptError, GitcpError
from gitcp.format import layout, safety
from gitcp.format.layout import BranchKey, LedgerKey
from gitcp.git import promised
from gitcp.git.objects import COMMIT
from gitcp.maintenance.check_logs import LogCheck, LogRoom
from gitcp.maintenance.check_trees import TreeCheck, check_hash
from gitcp.maintenance.ledgers import faults
from gitcp.maintenance.problems import Problems
from gitcp.maintenance.threads import Parents
from gitcp.names import encode
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

_OWN = layout.RESERVED + b"/"


class Check:
    """One run of the check; every object is checked once."""

    def __init__(
        self,
        store: Store,
        new: Container[bytes] | None = None,
        room: LogRoom | None = None,
    ) -> None:
        """`new` are the only objects to check (None: all), `room` limits the logs to read."""
        self._store = store
        self._new = new
        self._objects = store.repository.objects
        self.checked = 0
        self.problems = Problems()
        repository = store.repository
        self._trees = TreeCheck(
            self._objects,
            self.problems,
            cache(partial(promised.promised, repository.git_dir, repository.config)),
        )
        self._log_check = LogCheck(self._objects, self.problems, room)
        self._seen: set[bytes] = set()
        self._parents = Parents()

    # --- branches ---------------------------------------------------------------

    def branch(self, key: BranchKey, tip: str) -> None:
        """Checks a branch, oldest checkpoint first."""
        ref = key.ref.encode()
        line: list[Checkpoint] = []
        self.problems.checkpoint = None
        oid: bytes | None = bytes.fromhex(tip)
        while (
            oid is not None
            and oid not in self._seen
            and (self._new is None or oid in self._new)
        ):
            self._seen.add(oid)
            try:
                found = self._store.checkpoint(oid)
                check_hash(self._objects, oid, COMMIT)
            except GitcpError as exc:
                what = "the tip" if not line else "the commit before it"
                self.problems.add(
                    b"" if line else ref, f"{what}: {exc.message}", COMMIT, oid
                )
                oid = self._below(key, line)
                continue
            if found is None:
                if not line:
                    self.problems.add(
                        ref, f"points to {oid.hex()}, which is not a checkpoint"
                    )
                break
            self.problems.checkpoint = found.id
            line.append(found)
            oid = found.raw.parents[0] if found.raw.parents else None
        if line and (line[0].trailers.session, line[0].trailers.branch) != key:
            self.problems.checkpoint = line[0].id
            self.problems.add(ref, "points to a checkpoint of another branch")
        for found in reversed(line):
            self.problems.checkpoint = found.id
            self.checked += 1
            self._parents.note(found)
            self._checkpoint(found)

    def _below(self, key: BranchKey, line: list[Checkpoint]) -> bytes | None:
        """Returns the commit where a line continues below one that cannot be read."""
        if self._new is not None:
            return None
        if line:
            said = line[-1].trailers
            key = BranchKey(said.session, said.branch)
        below = line[-1].seq if line else None
        found = self._store.salvage.newest(key, below=below)
        return found.oid if found else None

    def damaged(self, name: str) -> None:
        """Notes a ref that names no commit: its checkpoints are not checked."""
        self.problems.checkpoint = None
        what = "it names no commit; `gitcp verify --lost` looks for what it held"
        self.problems.add(name.encode(), what)

    def threads(self) -> None:
        """Checks the parents in the LangGraph threads that were met."""
        for checkpoint, what in self._parents.circles():
            self.problems.checkpoint = checkpoint
            self.problems.add(layout.RESERVED + b"/" + layout.EVENT, what)

    def ledger(self, component: str, tip: str) -> None:
        """Checks the effects ledger of a session."""
        self.problems.checkpoint = None
        where = LedgerKey(component).ref.encode()
        for fault in faults(self._store.repository, component, tip):
            self.problems.add(where, fault.problem, fault.kind, fault.oid)

    def _checkpoint(self, found: Checkpoint) -> None:
        self._order(found)
        if self._new is None:
            with suppress(CorruptError):  # found again below
                found.chunk_lists  # noqa: B018  what pointers stand for
            self._trees.check(found.raw.tree, b"", 0)
        for check in (self._manifest, self._chunked, self._lists, self._logs):
            # If a damaged object breaks this check, it has been reported already.
            try:
                check(found)
            except CorruptError as exc:
                self.problems.add_error(_OWN, exc)
            except GitcpError as exc:
                self.problems.add(_OWN, exc.message)

    def _order(self, found: Checkpoint) -> None:
        """Checks I2 and I3."""
        said = found.trailers
        if len(found.raw.parents) > 1:
            self.problems.add(b"", "has more than one parent (I2)")
        before = None
        # After a prune, the first remaining checkpoint may have any number.
        first = said.seq == 1 or said.pruned is not None
        if found.raw.parents:
            with suppress(CorruptError):  # named already
                before = self._store.checkpoint(found.raw.parents[0])
                if before is None and not first:
                    self.problems.add(
                        b"",
                        f"is number {said.seq} of its branch but nothing is before it"
                        " (I3)",
                    )
        elif not first:
            self.problems.add(
                b"", f"is number {said.seq} of its branch but has no parent (I3)"
            )
        if before is None:
            return
        same = (before.trailers.session, before.trailers.branch) == (
            said.session,
            said.branch,
        )
        expected = before.seq + 1 if same else 1
        if said.pruned is not None:
            if said.seq < expected:
                self.problems.add(
                    b"",
                    f"has place {said.seq} on its branch and should have {expected} or more (I3)",
                )
        elif said.seq != expected:
            self.problems.add(
                b"",
                f"has place {said.seq} on its branch and should have {expected} (I3)",
            )

    # --- what gitcp wrote ---------------------------------------------------------

    def _manifest(self, found: Checkpoint) -> None:
        where = _OWN + layout.CHECKPOINT
        said, trailers = found.manifest, found.trailers
        pairs = {
            "id": (said.id, trailers.id),
            "session": (encode(said.session), trailers.session),
            "branch": (encode(said.branch), trailers.branch),
            "seq": (said.seq, trailers.seq),
        }
        for name, (one, other) in pairs.items():
            if one != other:
                self.problems.add(where, f"its {name} is not the commit message's")
        files = found.files_oid.hex() if found.files_oid else None
        if said.files.tree != files:
            self.problems.add(where, "names another tree of files")

    def _lists(self, found: Checkpoint) -> None:
        if len(found.skipped()) != found.manifest.skipped:
            self.problems.add(
                _OWN + layout.SKIPPED,
                "does not have as many lines as checkpoint.json says",
            )
        for path in found.empty_dirs:
            problem = safety.path_problem(path)
            if problem:
                self.problems.add(
                    path, f"an empty directory: the name {problem}", unsafe=True
                )

    def _chunked(self, found: Checkpoint) -> None:
        if self._new is None:
            self._trees.chunked(found)

    def _logs(self, found: Checkpoint) -> None:
        if self._new is None:
            # New objects were measured in quarantine.
            found.refuse_if_vast()
        self._log_check.check(found)
