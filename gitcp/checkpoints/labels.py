"""Validates new labels; older labels that are no longer valid can still be selected."""

import re

from gitcp.checkpoints.times import is_time
from gitcp.errors import UsageError
from gitcp.names import check_typed

# `label=NAME` selects a label and nothing else.
PREFIX = "label="
_NUMBER = r"#?\d+"
_LAST = r"last(?:~\d*)?|~.*"
_HEX = r"[0-9a-fA-F]{4,64}"
_COMMIT = r"(?:HEAD|@)(?:[~^@{].*)?"
_MEANINGS = (
    (_NUMBER, "a checkpoint's number"),
    (_LAST, "a place before the last checkpoint"),
    (_HEX, "the digits of an id"),
    (_COMMIT, "a git commit"),
)


def check_typed_label(label: str) -> str:
    """Returns a label that a person gave, as `check_label` and `check_typed` do."""
    return check_label(check_typed(label, "label"))


def check_label(label: str) -> str:
    """Returns a label if a selector of the same text finds it.

    Raises:
        UsageError: a selector would read it as something else.
    """
    if is_time(label):
        raise UsageError(
            f"the label {label!a} could not be selected: it means a time",
            hint="choose another word",
        )
    for pattern, meaning in _MEANINGS:
        if re.fullmatch(pattern, label):
            raise UsageError(
                f"the label {label!a} could not be selected: it means {meaning}",
                hint="choose another word",
            )
    if label.startswith(PREFIX):
        raise UsageError(
            f"the label {label!a} could not be selected: {PREFIX}NAME selects NAME",
            hint="choose another word",
        )
    return label
