"""Finds the sessions that Kilo keeps of a project, in a database of OpenCode's form."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from gitcp.clients import opencode_history
from gitcp.clients.client import ClientPlaces
from gitcp.clients.history import Kept, Leave


def find(places: ClientPlaces, roots: Sequence[Path], leave: Leave) -> Iterator[Kept]:
    """Yields the sessions of a project, with those of subagents beside them."""
    yield from opencode_history.find(places, roots, leave, name="kilo")
