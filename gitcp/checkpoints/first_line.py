"""The first line of a text, shortened for lists, without secrets.

Once it is cut, a secret no longer looks like one to the scanner before a push, so the
text is scanned while it is whole.
"""

import re
from collections.abc import Iterable

# Most texts that people write have none of this, and need no scanner.
_SUSPECT = re.compile(
    r"(?i)(?=\S{10})[^\s\d]{0,99}\d|\S{24}|pass|pwd|secret|token|cred|mnemonic|phrase|-BEGIN"
)
_COMMAND = 40
LEFT_OUT = "(left out: it holds a secret)"


def brief(text: str, most: int) -> str:
    """Returns the first line of a text that has one, at most so many letters of it.

    A word is kept or left out as a whole. If the text holds a secret, that is said instead.
    """
    line = next(
        (candidate.strip() for candidate in text.splitlines() if candidate.strip()), ""
    )
    line = line.encode("utf-8", "replace").decode()
    if _SUSPECT.search(text) and holds_secret([text.encode("utf-8", "replace")]):
        return LEFT_OUT
    if len(line) <= most:
        return line
    return line[: _end_of_word(line, most - 1)].rstrip() + "…"


def before_command(command: str) -> str:
    """Returns what the note of a checkpoint before a command begins with."""
    return f"before `{brief(command, _COMMAND)}`"


def holds_secret(texts: Iterable[bytes], known: Iterable[bytes] = ()) -> bool:
    """Whether the built-in rules see a secret in one of some texts, or a known value."""
    # Compiling the rules takes longer than all else that a hook does.
    from gitcp.secrets.scanner import Fingerprints, Scanner  # noqa: PLC0415

    scanner = Scanner(Fingerprints(b""), environment=known)
    return any(scanner.scan([text]) for text in texts)


def _end_of_word(line: str, most: int) -> int:
    """Returns where to cut a line: not within a word of ASCII, but one of mere letters."""
    at = most
    if line[:at].isalpha():
        return at
    while at and _joins(line[at - 1]) and _joins(line[at]):
        at -= 1
    return at


def _joins(letter: str) -> bool:
    return letter.isascii() and not letter.isspace()
