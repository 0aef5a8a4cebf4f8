"""Lines of `labels.jsonl`: labels that checkpoints got later (docs/format.md, 23)."""

import msgspec

from gitcp.format.layout import BranchKey


class LabelLine(msgspec.Struct, frozen=True):
    """The label of a checkpoint from a time on; None: it has none any more.

    `branch` is the encoded name of its session and that of its branch, with a slash.
    """

    id: str
    branch: str
    at: str
    label: str | None

    @property
    def key(self) -> BranchKey:
        """The checkpoint's own branch."""
        session, _, branch = self.branch.partition("/")
        return BranchKey(session, branch)


def encode_label(line: LabelLine) -> bytes:
    """Returns a line, with the newline."""
    return msgspec.json.encode(line) + b"\n"


def decode_label(raw: bytes) -> LabelLine | None:
    """Returns what a line without its newline says; None if it is damaged."""
    try:
        return msgspec.json.decode(raw, type=LabelLine)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
