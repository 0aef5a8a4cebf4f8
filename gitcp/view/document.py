"""The JSON document inside the page. Its field names are short, as they repeat often."""

from typing import Literal

import msgspec

SCHEMA = "gitcp.page/1"


class Step(msgspec.Struct, omit_defaults=True):
    """A text of the agent's, or a tool call with its result.

    A call has a `tool` and its main `arg`; `out` is its shortened output, which has `size`
    characters in total. `failed` says that the client recorded an error.
    """

    text: str = ""
    tool: str = ""
    arg: str = ""
    out: str = ""
    size: int = 0
    failed: bool = False


class Spoken(msgspec.Struct, omit_defaults=True):
    """A prompt with all that followed. `back` says that the user rewound it in the client."""

    prompt: str | None = None
    at: float | None = None
    steps: list[Step] = []
    back: bool = False


class File(msgspec.Struct, omit_defaults=True):
    """A changed file: `status` is A, M or D, `old` its path before a rename.

    `add` and `sub` count lines, None if it is not text. `whose` is empty if the change is the
    turn's own, else `unsure`, `others` or `also`, and `turns` has the numbers of the other
    turns. `why` says why there is no `patch`.
    """

    path: str
    status: str
    old: str = ""
    add: int | None = None
    sub: int | None = None
    patch: str = ""
    why: str = ""
    whose: Literal["", "unsure", "others", "also"] = ""
    turns: list[int] = []


class Reason(msgspec.Struct, omit_defaults=True):
    """An entry of the decision log: a decision, a dead end, a next step."""

    kind: str
    text: str
    why: str = ""
    at: str = ""
    paths: list[str] = []


class Row(msgspec.Struct, omit_defaults=True):
    """A row of the timeline: a turn, a single checkpoint, or changes made by hand.

    `n` is its number, None if it has none, `seq` its sequence number; `lane` is the index of
    its branch among the lanes, `up` the index of the row that it follows. `changed` and
    `unsure` count files added, modified and deleted, as `log` does. `foreign` names the
    remote that it was pulled from.
    """

    id: str
    lane: int
    at: str
    kind: Literal["turn", "save", "hand"]
    trigger: str
    seq: int = 0
    n: int | None = None
    up: int | None = None
    prompt: str = ""
    note: str = ""
    label: str = ""
    agent: str = ""
    open: bool = False
    changed: tuple[int, int, int] = (0, 0, 0)
    unsure: tuple[int, int, int] = (0, 0, 0)
    beside: list[int] = []
    inside: list[int] = []
    back_to: int | None = None
    foreign: str = ""
    skipped: int = 0
    talk: list[Spoken] = []
    files: list[File] = []
    reasons: list[Reason] = []
    notes: list[str] = []

    @property
    def name(self) -> str:
        """The name of the row: its number, or else its id."""
        return f"#{self.n}" if self.n else self.id


class Lane(msgspec.Struct, omit_defaults=True):
    """A branch."""

    session: str
    branch: str


class Page(msgspec.Struct, omit_defaults=True):
    """A session as the page shows it: rows oldest first.

    `talk`, `files` and `reasons` say whether the page has them. `selected` is the index of the
    requested row. `notes` list the parts that were left out. `redacted` counts the secrets
    that are replaced by their fingerprints.
    """

    schema: str
    project: str
    session: str
    made: str
    version: str
    lanes: list[Lane]
    rows: list[Row]
    talk: bool
    files: bool
    reasons: bool
    selected: int | None = None
    redacted: int = 0
    notes: list[str] = []
