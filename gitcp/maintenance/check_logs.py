"""Checks the logs of checkpoints: segments, digests, totals; each segment once."""

from typing import NamedTuple

from gitcp.errors import CorruptError
from gitcp.format import layout, log, tree
from gitcp.format.checkpoint import LogTotals
from gitcp.format.layout import LogName
from gitcp.format.tree import DIRECTORY, Entry
from gitcp.git.objects import Objects
from gitcp.maintenance.problems import Problems
from gitcp.names import encode
from gitcp.store.checkpoint import Checkpoint

_LOGS = layout.RESERVED + b"/" + layout.LOG + b"/"


class _Chain(NamedTuple):
    """The totals of a log after some of its segments."""

    digest: str
    size: int
    lines: int


class LogRoom:
    """Limits how many bytes of logs are read: one blob may be listed many times."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most

    def take(self, size: int) -> None:
        """Counts bytes that are about to be read.

        Raises:
            CorruptError: there is no room for `size` bytes.
        """
        self._left -= size
        if self._left < 0:
            raise CorruptError(
                "the fetched logs are larger than gitcp.pullMaxSize"
                f" ({self._most:,} bytes) allows",
                hint="nothing of it was adopted",
            )


class LogCheck:
    """Checks logs, and adds problems to `problems`."""

    def __init__(
        self, objects: Objects, problems: Problems, room: LogRoom | None
    ) -> None:
        """`room` limits how many bytes of logs are read; None: no limit."""
        self._objects = objects
        self._problems = problems
        self._room = room
        self._chains: dict[LogName, tuple[list[bytes], list[_Chain]]] = {}

    def check(self, found: Checkpoint) -> None:
        """Checks the logs of a checkpoint against its manifest."""
        metas: dict[LogName, log.Meta] = {}
        root = found.log_tree
        for one, entry in self._objects.tree(root).items() if root else ():
            if entry.mode != DIRECTORY:
                continue
            for source, inner in self._objects.tree(entry.oid).items():
                where = _LOGS + one + b"/" + source
                try:
                    meta = self._log(one.decode(), inner, where)
                except CorruptError as exc:
                    self._problems.add_error(where, exc)
                    continue
                if encode(meta.name).encode() != source:
                    self._problems.add(where, f"its meta.json is that of {meta.name!a}")
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
        where = _LOGS + name.path
        if stored != said and not self._problems.any_below(where):
            self._problems.add(where, "does not match checkpoint.json")

    def _log(self, one: str, source: Entry, where: bytes) -> log.Meta:
        """Checks I5: the segments match the totals in meta.json."""
        entries = dict(tree.walk(source.oid, self._objects.tree))
        entry = entries.pop(layout.META, None)
        if source.mode != DIRECTORY or entry is None:
            raise CorruptError(f"{where.decode('utf-8', 'replace')} has no meta.json")
        meta = log.decode_meta(self._objects.blob(entry.oid), where.decode())
        expected = [layout.segment_path(number) for number in range(len(entries))]
        if sorted(entries) != expected or len(entries) != meta.segments:
            self._problems.add(where, "a segment is missing, or there is one too many")
            return meta
        segments = [entries[path].oid for path in expected]
        chain = self._chain(LogName(one, meta.name), segments)
        if (chain.digest, chain.size) != (meta.digest, meta.bytes):
            self._problems.add(
                where, "its segments do not match the digest in meta.json"
            )
        elif meta.kind in {"messages", "decisions"} and chain.lines != meta.messages:
            self._problems.add(where, "does not hold as many records as meta.json says")
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
                for _ in log.decode_decisions(
                    data, f"checkpoint {self._problems.checkpoint}"
                ):
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
