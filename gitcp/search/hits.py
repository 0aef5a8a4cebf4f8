"""The hits of a search, and the filters that narrow it."""

from typing import NamedTuple

from gitcp.search.words import Excerpt


class Filters(NamedTuple):
    """What is searched: `places` of `passages.PLACES`; `since` in seconds since 1970.

    With `everything` it is the whole repository, else what belongs to this work tree. Of the
    hits the best `most` are wanted.
    """

    places: frozenset[str]
    since: float | None = None
    agent: str | None = None
    everything: bool = False
    most: int = 10


class Hit(NamedTuple):
    """A place where all that was searched for stands, as git has it now.

    `number` is that of the checkpoint in which it was first there, of a path that in which it
    changed last. `line` is a line of the file, or of the conversation's records, from 1 on.
    `prompt` is what the turn was asked; `at` is when it was said, or saved. `made_at` names
    where the checkpoint came from, None for here.
    """

    number: int | None
    id: str
    session: str
    branch: str
    where: str
    path: bytes | None
    line: int | None
    excerpt: Excerpt
    at: str
    prompt: str | None
    made_at: str | None


class Found(NamedTuple):
    """The hits, the best first; what had to be left out, and why no index was kept."""

    hits: list[Hit]
    unreadable: list[str]
    unkept: str | None = None
