"""A checkpoint that exists: files, conversation, decisions, read on use."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from gitcp.at_fork import computed
from gitcp.errors import AgentRecordError, CorruptError
from gitcp.format import checkpoint as manifests
from gitcp.format import jsontext, layout, log
from gitcp.format.checkpoint import Manifest
from gitcp.format.commit import Commit, Trailers
from gitcp.format.layout import LogName
from gitcp.format.log import Decision
from gitcp.git.objects import Objects
from gitcp.store import logs
from gitcp.store.allowance import Allowance
from gitcp.store.contents import Contents
from gitcp.store.described import Described
from gitcp.store.origin import Origin, Seals

# Limits of a conversation made elsewhere that is parsed for people, in bytes and lines.
# Parsed, a text may take twenty times its size.
_LAID_OUT = 8 * 1024 * 1024
_LINES_LAID_OUT = 100_000

# Loaded on use: it lies above the store (docs/decisions/0072).
_BRIEFING = "gitcp.checkpoints.briefing"


class FileCounts(NamedTuple):
    """How many files were added, modified and deleted."""

    added: int
    modified: int
    deleted: int


class Around(Protocol):
    """What a repository knows of a checkpoint; see `gitcp.store.surroundings`."""

    def number_of(self, checkpoint: "Checkpoint") -> int | None:
        """Returns its number there."""

    def number_for(self, ident: str) -> int | None:
        """Returns the number there of a checkpoint with an id."""

    def changed(self, checkpoint: "Checkpoint") -> FileCounts:
        """Counts what changed since the state before it."""

    def label_of(self, checkpoint: "Checkpoint") -> str | None:
        """Returns its label there."""

    def label_component_of(self, checkpoint: "Checkpoint") -> str | None:
        """Returns its label there as a ref component."""


class Checkpoint(Contents, Described):
    """A saved state: files, conversation, decisions. Immutable.

    `commit` is the commit's id in hex. What the commit message says (`id`, `seq`,
    `trigger`) costs nothing to read; the rest is read on use.
    """

    def __init__(
        self,
        objects: Objects,
        oid: bytes,
        commit: Commit,
        trailers: Trailers,
        seals: Seals,
        allowance: Allowance,
        manifest: Manifest | None = None,
        around: "Around | None" = None,
    ) -> None:
        """Takes the `manifest` where it is known; otherwise it is read on use."""
        super().__init__(objects, oid, commit, trailers)
        self._around = around
        self._seals = seals
        self._allowance = allowance
        self._known = manifest

    def __repr__(self) -> str:
        trailers = self.trailers
        return f"<Checkpoint {trailers.id} {trailers.session}/{trailers.branch}:{trailers.seq}>"

    @property
    def number(self) -> int | None:
        """Its number in this repository, for ever; None if it has none."""
        return self._around.number_of(self) if self._around is not None else None

    def number_for(self, ident: str) -> int | None:
        """Returns the number of another checkpoint in this repository, by its id."""
        return self._around.number_for(ident) if self._around is not None else None

    @property
    def label(self) -> str | None:
        """Its label: the one it was given last in this repository, or its own."""
        if self._around is not None:
            return self._around.label_of(self)
        return self.manifest.label

    @property
    def label_component(self) -> str | None:
        """The same as a ref component, which is known without reading its content."""
        if self._around is not None:
            return self._around.label_component_of(self)
        return self.trailers.label

    @property
    def changed(self) -> "FileCounts":
        """How many files changed since the state before it in its work tree."""
        if self._around is not None:
            return self._around.changed(self)
        files = self.manifest.files
        return FileCounts(files.added, files.modified, files.deleted)

    @computed
    def manifest(self) -> Manifest:
        """The content of checkpoint.json.

        Raises:
            CorruptError: the file is missing or damaged.
            FormatTooNewError: a newer gitcp wrote it.
        """
        if self._known is not None:
            return self._known
        entry = self._own(layout.CHECKPOINT)
        where = f"checkpoint {self.id}"
        if entry is None:
            raise CorruptError(
                f"{where} has no checkpoint.json", hint="run `gitcp verify`"
            )
        return manifests.decode_manifest(self.objects.blob(entry.oid), where)

    @computed
    def origin(self) -> Origin:
        """Where its files and its logs were made: here, or elsewhere."""
        return self._seals.of(self, self.manifest)

    @property
    def holds_files(self) -> bool:
        """Whether files were captured; if not, it holds logs only."""
        return self.manifest.files.captured

    def refuse_if_vast(self) -> None:
        """Raises if it came from elsewhere, and holds more than may be walked.

        Raises:
            TransferError: so it is; the hint says how to continue.
        """
        self._allowance.check(self, lambda: self.origin)

    def context(self) -> str:
        """Returns what a new conversation should know, as Markdown.

        The facts, the task, decisions, dead ends and next steps up to this checkpoint;
        nothing is left out. What was recorded elsewhere is quoted under a warning.

        Raises:
            CorruptError: the decision log is damaged.
        """
        briefing: str = import_module(_BRIEFING).context(self)
        return briefing

    def conversation(self, source: str | None = None) -> bytes:
        """Returns the conversation's bytes, exactly as stored.

        Raises:
            CorruptError: a segment is missing or damaged.
        """
        stored = self.manifest.conversation
        if source is None:
            if stored is None:
                return b""
            source = stored.source
        return logs.content(
            self.log_tree, LogName("conversation", source), self.objects
        )

    def conversation_stream(self) -> Iterator[bytes]:
        """Yields what `conversation` returns, in pieces of a few megabytes at most.

        Raises:
            CorruptError: a segment is missing or damaged.
        """
        stored = self.manifest.conversation
        if stored is not None:
            self.refuse_if_vast()
            name = LogName("conversation", stored.source)
            yield from logs.stream(self.log_tree, name, self.objects)

    def conversation_to_read(self) -> tuple[bytes, bool]:
        """Returns the part of a conversation to show people, and whether that is all.

        For one made elsewhere that is its last lines: parsed, a record takes many times
        the memory of its text.

        Raises:
            CorruptError: a segment is missing or damaged.
        """
        stored = self.manifest.conversation
        if stored is None or self.origin.logs is None:
            return self.conversation(), True
        self.refuse_if_vast()
        name = LogName("conversation", stored.source)
        data, whole = logs.end_of(self.log_tree, name, self.objects, _LAID_OUT)
        lines = data.count(b"\n")
        if lines <= _LINES_LAID_OUT:
            return data, whole
        return b"\n".join(data.rsplit(b"\n", _LINES_LAID_OUT)[1:]), False

    def messages(self) -> list[Any]:
        """Returns the messages, equal to what was saved.

        Raises:
            AgentRecordError: a record is not JSON, as in a transcript truncated mid-line.
            CorruptError: a segment is missing or damaged.
        """
        messages = []
        for number, line in enumerate(self.conversation().split(b"\n"), 1):
            if not line.strip():
                continue
            try:
                messages.append(jsontext.decode(line))
            except ValueError as exc:
                raise AgentRecordError(
                    f"record {number} of the conversation in checkpoint {self.id}"
                    f" is not JSON: {exc}",
                    hint=f"`gitcp messages {self.number or self.id} --format jsonl`"
                    " gives its bytes",
                ) from exc
        return messages

    def decisions(self) -> list[Decision]:
        """Returns the decision log, oldest first.

        Raises:
            CorruptError: the log is damaged.
        """
        raw = logs.content(self.log_tree, layout.DECISIONS, self.objects)
        return list(log.decode_decisions(raw, f"checkpoint {self.id}"))
