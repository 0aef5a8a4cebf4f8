"""Checks labels; older ones that are no longer allowed can still be selected."""

import re

from gitcp.errors import UsageError
from gitcp.names import check_typed

# `label=NAME` selects a label and nothing else.
PREFIX = "label="
_NUMBER = re.compile(r"#?\d+")
_LAST = re.compile(r"last(?:~\d*)?|~.*")
_HEX = re.compile(r"[0-9a-fA-F]{4,64}")
_COMMIT = re.compile(r"(?:HEAD|@)(?:[~^@{].*)?")
_UNIT = r"(?:second|sec|minute|min|hour|day|week|fortnight|month|year)s?"
_DAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?"
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2})?(?: ?[ap]m)?"
_TIME = re.compile(
    rf"(?:now|today|yesterday|noon|midnight|teatime|{_DAY})(?: {_CLOCK})?"
    rf"|(?:\d+|an?|one|last)[ .]{_UNIT}(?:[ .]ago)?|last {_DAY}"
    rf"|\d{{4}}-\d{{2}}-\d{{2}}(?:[T ].*)?|{_CLOCK}",
    re.IGNORECASE,
)
_MEANINGS = (
    (_NUMBER, "a checkpoint's number"),
    (_LAST, "a place before the last checkpoint"),
    (_HEX, "the digits of an id"),
    (_COMMIT, "a git commit"),
    (_TIME, "a time"),
)


def check_typed_label(label: str) -> str:
    """Returns a label that a person gave, as `check_label` and `check_typed` do."""
    return check_label(check_typed(label, "label"))


def check_label(label: str) -> str:
    """Returns a label if a selector of the same text finds it.

    Raises:
        UsageError: a selector would take it for something else.
    """
    for pattern, meaning in _MEANINGS:
        if pattern.fullmatch(label):
            raise UsageError(
                f"the label {label!a} could not be selected: it reads as {meaning}",
                hint="choose another word",
            )
    if label.startswith(PREFIX):
        raise UsageError(
            f"the label {label!a} could not be selected: {PREFIX}NAME selects NAME",
            hint="choose another word",
        )
    return label
