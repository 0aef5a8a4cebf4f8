"""Checks checkpoints one after the other; every object is checked once."""

from collections.abc import Container
from contextlib import suppress
from typing import NamedTuple

from gitcp.errors import CorruptError, GitcpError
from gitcp.format import layout, log, safety, tree
from gitcp.format.checkpoint import LogTotals
from gitcp.format.layout import BranchKey, LedgerKey, LogName
from gitcp.format.oid import object_hash, object_id
from gitcp.format.tree import DIRECTORY, GITLINK, Entry
from gitcp.git.objects import BLOB, COMMIT, TREE, Objects
from gitcp.maintenance.ledgers import faults
from gitcp.maintenance.threads import Parents
from gitcp.names import encode
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

_OWN = layout.RESERVED + b"/"

# What a problem is about.
DAMAGED, UNSAFE, HEAD = "damaged", "unsafe", "head"


class Problem(NamedTuple):
    """Something wrong; `checkpoint` is None where not even its id can be read.

    `kind` and `oid` name the object at fault where it is missing or damaged; `unsafe`
    marks a path that must not be written. `about` says what sort of problem it is.
    """

    checkpoint: str | None
    path: bytes
    problem: str
    kind: str | None = None
    oid: bytes | None = None
    unsafe: bool = False
    about: str = DAMAGED


class _Chain(NamedTuple):
    """A log after some of its segments."""

    digest: str
    size: int
    lines: int


class _Below(NamedTuple):
    """A sound tree: the longest path below it and how deep it goes."""

    longest: int
    deepest: int


class LogRoom:
    """How many bytes of logs may be read: one blob may be listed many times."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most

    def take(self, size: int) -> None:
        """Takes away what is going to be read.

        Raises:
            CorruptError: it is too much.
        """
        self._left -= size
        if self._left < 0:
            raise CorruptError(
                f"the logs that came hold more than gitcp.pullMaxSize ({self._most:,}"
                " bytes) allows",
                hint="nothing of it was adopted",
            )


class Check:
    """One run of the check; every object is checked once."""

    def __init__(
        self,
        store: Store,
        new: Container[bytes] | None = None,
        room: LogRoom | None = None,
    ) -> None:
        """Takes what is `new`, if not all is looked at, and how much of logs to read."""
        self._store = store
        self._room = room
        self._new = new
        self._objects = store.repository.objects
        self.checked = 0
        self.problems: list[Problem] = []
        self._seen: set[bytes] = set()
        self._blobs: dict[bytes, str | None] = {}
        self._trees: dict[bytes, _Below] = {}
        self._chains: dict[LogName, tuple[list[bytes], list[_Chain]]] = {}
        self._id: str | None = None
        self._parents = Parents()

    def _wrong(
        self,
        path: bytes,
        problem: str,
        kind: str | None = None,
        oid: bytes | None = None,
        *,
        unsafe: bool = False,
    ) -> None:
        about = UNSAFE if unsafe else DAMAGED
        self.problems.append(Problem(self._id, path, problem, kind, oid, unsafe, about))

    # --- branches ---------------------------------------------------------------

    def branch(self, key: BranchKey, tip: str) -> None:
        """Checks a branch, oldest checkpoint first."""
        ref = key.ref.encode()
        line: list[Checkpoint] = []
        self._id = None
        oid: bytes | None = bytes.fromhex(tip)
        while (
            oid is not None
            and oid not in self._seen
            and (self._new is None or oid in self._new)
        ):
            self._seen.add(oid)
            try:
                found = self._store.checkpoint(oid)
                _rehashed(self._objects, oid, COMMIT)
            except GitcpError as exc:
                what = "the tip" if not line else "the commit before it"
                self._wrong(b"" if line else ref, f"{what}: {exc.message}", COMMIT, oid)
                oid = self._below(key, line)
                continue
            if found is None:
                if not line:
                    self._wrong(
                        ref, f"points to {oid.hex()}, which is not a checkpoint"
                    )
                break
            self._id = found.id
            line.append(found)
            oid = found.raw.parents[0] if found.raw.parents else None
        if line and (line[0].trailers.session, line[0].trailers.branch) != key:
            self._id = line[0].id
            self._wrong(ref, "points to a checkpoint of another branch")
        for found in reversed(line):
            self._id = found.id
            self.checked += 1
            self._parents.note(found)
            self._checkpoint(found)

    def _below(self, key: BranchKey, line: list[Checkpoint]) -> bytes | None:
        """Returns where a line goes on below a commit that cannot be read."""
        if self._new is not None:
            return None
        if line:
            said = line[-1].trailers
            key = BranchKey(said.session, said.branch)
        below = line[-1].seq if line else None
        found = self._store.salvage.newest(key, below=below)
        return found.oid if found else None

    def damaged(self, name: str) -> None:
        """Notes a ref that names nothing: what it held is not checked."""
        self._id = None
        what = "it names no commit; `gitcp verify --lost` looks for what it held"
        self._wrong(name.encode(), what)

    def threads(self) -> None:
        """Checks the parents in the threads of LangGraph that were met."""
        for checkpoint, what in self._parents.circles():
            self._id = checkpoint
            self._wrong(layout.RESERVED + b"/" + layout.EVENT, what)

    def ledger(self, component: str, tip: str) -> None:
        """Checks the effects ledger of a session."""
        self._id = None
        where = LedgerKey(component).ref.encode()
        for fault in faults(self._store.repository, component, tip):
            self._wrong(where, fault.problem, fault.kind, fault.oid)

    def _checkpoint(self, found: Checkpoint) -> None:
        self._order(found)
        if self._new is None:
            self._tree(found.raw.tree, b"", 0)
        for check in (self._manifest, self._lists, self._logs):
            # What a damaged object breaks further on has been named already.
            try:
                check(found)
            except CorruptError as exc:
                if not self._known(exc):
                    self._wrong(_OWN, exc.message)
            except GitcpError as exc:
                self._wrong(_OWN, exc.message)

    def _known(self, exc: CorruptError) -> bool:
        """Whether this checkpoint has a problem with the object that an error names."""
        return any(
            problem.checkpoint == self._id
            and problem.oid is not None
            and problem.oid.hex() in exc.message
            for problem in self.problems
        )

    def _order(self, found: Checkpoint) -> None:
        """Checks I2 and I3."""
        said = found.trailers
        if len(found.raw.parents) > 1:
            self._wrong(b"", "has more than one parent (I2)")
        before = None
        # After a pruning the first that is left has any number.
        first = said.seq == 1 or said.pruned is not None
        if found.raw.parents:
            with suppress(CorruptError):  # named already
                before = self._store.checkpoint(found.raw.parents[0])
                if before is None and not first:
                    self._wrong(b"", f"is #{said.seq} but nothing is before it (I3)")
        elif not first:
            self._wrong(b"", f"is #{said.seq} but has no parent (I3)")
        if before is None:
            return
        same = (before.trailers.session, before.trailers.branch) == (
            said.session,
            said.branch,
        )
        expected = before.seq + 1 if same else 1
        if said.pruned is not None:
            if said.seq < expected:
                self._wrong(
                    b"", f"is #{said.seq} and should be #{expected} or more (I3)"
                )
        elif said.seq != expected:
            self._wrong(b"", f"is #{said.seq} and should be #{expected} (I3)")

    # --- objects ----------------------------------------------------------------

    def _tree(self, oid: bytes, prefix: bytes, depth: int) -> _Below | None:
        """Checks a tree and what is below; None where something is wrong there."""
        below = self._trees.get(oid)
        if below is None:
            below = self._read_tree(oid, prefix, depth)
            if below is None:
                return None
            self._trees[oid] = below
        if (
            len(prefix) + below.longest > safety.PATH_LIMIT
            or depth + below.deepest > safety.DEPTH_LIMIT
        ):
            self._wrong(prefix, "holds a path that is too long or deep", unsafe=True)
            return None
        return below

    def _read_tree(self, oid: bytes, prefix: bytes, depth: int) -> _Below | None:
        shown = prefix.removesuffix(b"/")
        if depth > safety.DEPTH_LIMIT:
            self._wrong(shown, "lies too deep", unsafe=True)
            return None
        try:
            _rehashed(self._objects, oid, TREE)
            entries = self._objects.tree(oid)
        except CorruptError as exc:
            self._wrong(shown, exc.message, TREE, oid)
            return None
        longest = deepest = 0
        sound = True
        for name, entry in entries.items():
            path = prefix + name
            problem = safety.name_problem(name)
            if problem or entry.mode not in safety.MODES:
                said = problem or f"has the mode {entry.mode:o}"
                self._wrong(path, f"the name {said}", unsafe=True)
                sound = False
            elif entry.mode == DIRECTORY:
                below = self._tree(entry.oid, path + b"/", depth + 1)
                sound = sound and below is not None
                if below is not None:
                    longest = max(longest, len(name) + 1 + below.longest)
                    deepest = max(deepest, 1 + below.deepest)
            else:
                sound = self._blob(path, entry) and sound
                longest = max(longest, len(name))
        return _Below(longest, deepest) if sound else None

    def _blob(self, path: bytes, entry: Entry) -> bool:
        if entry.mode == GITLINK:
            return True
        if entry.oid not in self._blobs:
            self._blobs[entry.oid] = _damage(self._objects, entry.oid)
        problem = self._blobs[entry.oid]
        if problem is not None:
            self._wrong(path, problem, BLOB, entry.oid)
        return problem is None

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
                self._wrong(where, f"its {name} is not the commit message's")
        files = found.files_oid.hex() if found.files_oid else None
        if said.files.tree != files:
            self._wrong(where, "names another tree of files")

    def _lists(self, found: Checkpoint) -> None:
        if len(found.skipped()) != found.manifest.skipped:
            self._wrong(
                _OWN + layout.SKIPPED,
                "does not have as many lines as checkpoint.json says",
            )
        for path in found.empty_dirs:
            problem = safety.path_problem(path)
            if problem:
                self._wrong(
                    path, f"an empty directory: the name {problem}", unsafe=True
                )

    def _logs(self, found: Checkpoint) -> None:
        metas: dict[LogName, log.Meta] = {}
        if self._new is None:
            # What is new in a quarantine has been measured there.
            found.refuse_if_vast()
        root = found.log_tree
        for one, entry in self._objects.tree(root).items() if root else ():
            if entry.mode != DIRECTORY:
                continue
            for source, inner in self._objects.tree(entry.oid).items():
                where = _OWN + layout.LOG + b"/" + one + b"/" + source
                try:
                    meta = self._log(one.decode(), inner, where)
                except CorruptError as exc:
                    if not self._known(exc):
                        self._wrong(where, exc.message)
                    continue
                if encode(meta.name).encode() != source:
                    self._wrong(where, f"its meta.json is that of {meta.name!a}")
                metas[LogName(one.decode(), meta.name)] = meta
        said = found.manifest
        if said.conversation is not None:
            talk = said.conversation
            other = metas.get(LogName("conversation", talk.source))
            mine = (talk.messages, talk.bytes, talk.segments, talk.digest)
            self._same(LogName("conversation", talk.source), other, mine)
        for name, totals in (
            (layout.DECISIONS, said.decisions),
            (layout.STEPS, said.steps),
        ):
            self._totals(name, metas.get(name), totals)

    def _totals(
        self, name: LogName, meta: log.Meta | None, said: LogTotals | None
    ) -> None:
        if said is not None:
            mine = (said.entries, said.bytes, said.segments, said.digest)
            self._same(name, meta, mine)

    def _same(
        self, name: LogName, meta: log.Meta | None, said: tuple[int, int, int, str]
    ) -> None:
        stored = meta and (meta.messages, meta.bytes, meta.segments, meta.digest)
        where = _OWN + layout.LOG + b"/" + name.path
        if stored != said and not any(
            one.checkpoint == self._id and one.path.startswith(where)
            for one in self.problems
        ):
            self._wrong(where, "is not what checkpoint.json says of it")

    def _log(self, one: str, source: Entry, where: bytes) -> log.Meta:
        """Checks I5: the segments are those the totals speak of."""
        entries = dict(tree.walk(source.oid, self._objects.tree))
        entry = entries.pop(layout.META, None)
        if source.mode != DIRECTORY or entry is None:
            raise CorruptError(f"{where.decode('utf-8', 'replace')} has no meta.json")
        meta = log.decode_meta(self._objects.blob(entry.oid), where.decode())
        expected = [layout.segment_path(number) for number in range(len(entries))]
        if sorted(entries) != expected or len(entries) != meta.segments:
            self._wrong(where, "a segment is missing, or there is one too many")
            return meta
        segments = [entries[path].oid for path in expected]
        chain = self._chain(LogName(one, meta.name), segments)
        if (chain.digest, chain.size) != (meta.digest, meta.bytes):
            self._wrong(where, "its segments do not match the digest in meta.json")
        elif meta.kind in {"messages", "decisions"} and chain.lines != meta.messages:
            self._wrong(where, "does not hold as many records as meta.json says")
        return meta

    def _chain(self, name: LogName, segments: list[bytes]) -> _Chain:
        """Returns the totals of a log, reading only segments not read before."""
        oids, chains = self._chains.setdefault(
            name, ([], [_Chain(log.EMPTY_DIGEST, 0, 0)])
        )
        same = 0
        for one, other in zip(oids, segments, strict=False):
            if one != other:
                break
            same += 1
        if same < len(oids) and same < len(segments):
            del oids[same:], chains[same + 1 :]
        for oid in segments[len(oids) :]:
            if self._room is not None:
                self._room.take(self._objects.header(oid)[1])
            if name.log == layout.DECISIONS.log:
                data = self._objects.blob(oid)
                for _ in log.decode_decisions(data, f"checkpoint {self._id}"):
                    pass
            last = chains[-1]
            link = log.Link(last.digest)
            for chunk in self._objects.stream(oid):
                link.add(chunk)
            chains.append(
                _Chain(link.digest, last.size + link.size, last.lines + link.lines)
            )
            oids.append(oid)
        return chains[len(segments)]


def _rehashed(objects: Objects, oid: bytes, kind: str) -> None:
    if object_id(kind, objects.read(oid, kind)) != oid:
        raise CorruptError(f"the object {oid.hex()} is damaged")


def _damage(objects: Objects, oid: bytes) -> str | None:
    """Returns what is wrong with a blob, or None."""
    try:
        _, size = objects.header(oid)
        digest = object_hash(BLOB, size)
        for chunk in objects.stream(oid):
            digest.update(chunk)
    except CorruptError as exc:
        return exc.message
    return None if digest.digest() == oid else f"the object {oid.hex()} is damaged"
