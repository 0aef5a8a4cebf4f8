"""The properties of a checkpoint that its commit message and checkpoint.json hold."""

import datetime
from typing import TYPE_CHECKING, Any

from gitcp.format import jsontext
from gitcp.format.commit import Trailers

if TYPE_CHECKING:
    from gitcp.format.checkpoint import Manifest


class Described:
    """A commit message's trailers, and the content of checkpoint.json, by name."""

    trailers: Trailers

    if TYPE_CHECKING:

        @property
        def manifest(self) -> "Manifest":
            """The content of checkpoint.json."""

    @property
    def id(self) -> str:
        """The checkpoint's own id: 12 hex digits, stable for life."""
        return self.trailers.id

    @property
    def seq(self) -> int:
        """Its number on its branch, from 1."""
        return self.trailers.seq

    @property
    def session(self) -> str:
        """The name of its session."""
        return self.manifest.session

    @property
    def branch(self) -> str:
        """The name of its branch."""
        return self.manifest.branch

    @property
    def note(self) -> str | None:
        """The note it was saved with."""
        return self.manifest.note

    @property
    def trigger(self) -> str:
        """Why it was made."""
        return self.manifest.trigger

    @property
    def created(self) -> datetime.datetime:
        """When it was made, in UTC."""
        return datetime.datetime.fromisoformat(self.manifest.created)

    @property
    def position(self) -> Any:
        """Where a pipeline stood: any JSON value, or None."""
        return jsontext.decode(self.manifest.position)

    @property
    def metadata(self) -> Any:
        """What came with the messages as metadata, or None."""
        return jsontext.decode(self.manifest.metadata)
