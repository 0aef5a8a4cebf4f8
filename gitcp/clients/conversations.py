"""The base class for the modules that read one form of conversation each."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gitcp.clients import records, triggers
from gitcp.clients.client import (
    ClientPlaces,
    Event,
    ResumeFiles,
    Source,
    StoredConversation,
)


class Message(NamedTuple):
    """A message of a person or the model; `ident` is the record's id in the client."""

    ident: str | None
    role: str
    text: str


class Conversations:
    """The conversations of one client, each a file of JSON lines."""

    def completed(
        self,
        event: Event,
        hook: str,
        payload: Mapping[str, Any],
        environment: Mapping[str, str],
        folder: Path,
    ) -> Event | None:
        """Adds to an event what the common fields lack; `folder` is the client's."""
        del hook, payload, environment, folder
        return event

    def messages(self, raw: bytes) -> Iterator[Message]:
        """Yields the messages, in order."""
        raise NotImplementedError

    def is_flushed(self, event: Event, tail: bytes) -> bool:
        """Whether the end of the file holds the last words of the turn."""
        expected = (event.final_text or "").strip()
        if event.what != triggers.TURN_END or not expected:
            return True
        return any(
            one.role == "assistant" and one.text.strip() == expected
            for one in self.messages(tail)
        )

    def has_messages(self, tail: bytes) -> bool:
        """Whether a person or the model said something."""
        return any(True for _ in self.messages(tail))

    def sources(self, event: Event) -> list[Source]:
        """Returns the file of the conversation."""
        return [] if event.transcript is None else [Source("", event.transcript)]

    def directory(self, content: bytes) -> str | None:
        """Returns the directory that the conversation began in, if its records name one."""
        for line in records.lines(content):
            cwd = self.cwd(line)
            if cwd:
                return cwd
        return None

    def cwd(self, line: bytes) -> str | None:
        """Returns the directory that a record names."""
        del line
        return None

    def written(
        self, kept: StoredConversation, folder: Path, places: ClientPlaces
    ) -> ResumeFiles | None:
        """Returns the files of a copy under a new id, below the client's folder.

        The command is only the new id: the caller puts the client's command before it.
        """
        del kept, folder, places
        return None
