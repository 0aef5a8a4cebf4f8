"""The hits of a search, and the filters that narrow it."""

from typing import NamedTuple

from gitcp.search.words import Excerpt


class Filters(NamedTuple):
    """The filters of a search: `places` of `passages.PLACES`; `since` in seconds since 1970.

    With `everything` the whole repository is searched, else only the checkpoints of this work
    tree. The best `most` hits are returned.
    """

    places: frozenset[str]
    since: float | None = None
    agent: str | None = None
    everything: bool = False
    most: int = 10


class Hit(NamedTuple):
    """A place that holds all items of the query, as git has it now.

    `number` is that of the first checkpoint with the hit; for a path, of the one that last
    changed it. `line` is a line of the file, or of the conversation's records, from 1 on.
    `prompt` is the turn's prompt; `at` is the time of the message, or of the save. `made_at`
    names the origin of the checkpoint, None for here.
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
    """The hits, the best first; the parts left out, and why no index was kept."""

    hits: list[Hit]
    unreadable: list[str]
    unkept: str | None = None
