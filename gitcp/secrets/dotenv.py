"""Reads the values of a project's `.env` files, which are known to be secrets."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote_from_bytes

from gitcp.secrets import heuristics, rules
from gitcp.secrets.budget import Budget
from gitcp.secrets.encodings import cores
from gitcp.secrets.text import Text

_LINE = re.compile(
    rb"(?m)^[ \t]*(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*[=:][ \t]*"
    rb"(?:\"((?:[^\"\\]|\\.)*)\"|'([^']*)'|`([^`]*)`|([^\r\n#]*(?:#[^\s#][^\r\n#]*)*))"
)
_NAME = re.compile(rb"\.env(?:\..+|rc)?|.+\.env")
_EXAMPLES = (
    b"example",
    b"sample",
    b"template",
    b"dist",
    b"schema",
    b"defaults",
    b"tpl",
)
_SECRET = re.compile(
    rb"(?i)key|token|secret|pass|pwd|auth|cred|dsn|salt|private|signature|webhook|_pat\b"
    rb"|_url\b|_uri\b|conn"
)
_PRUNED = frozenset({".git", "node_modules", ".venv", "venv", "__pycache__", ".tox"})
_LARGEST = 1 << 20
_SHORTEST = 8
_ENVIRONMENT_SHORTEST = 16
_UNNAMED_SHORTEST = 16
_VERY_RANDOM = 3.5


def is_dotenv(path: bytes) -> bool:
    """Whether a path is that of an `.env` file, but not of an example."""
    name = path.rpartition(b"/")[2].lower()
    return _NAME.fullmatch(name) is not None and not any(
        word in name for word in _EXAMPLES
    )


def values(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Yields the values of an `.env` file that are secrets, with their places."""
    for match in _LINE.finditer(data):
        number = match.lastindex
        if number is None or number < 2:  # noqa: PLR2004  the groups of values
            continue
        raw = match[number].strip()
        for value in _parts(match[1], raw):
            yield value, match.start(number)


def _parts(name: bytes, value: bytes) -> Iterator[bytes]:
    """Yields the secret part of a value: all of it, or the password of a URL."""
    for line in value.replace(b"\\n", b"\n").splitlines():
        # Of a key over many lines, one distinctive line is enough.
        for match in rules.matches(Text(line), Budget.unlimited()):
            yield match.value
    if _worth_finding(name, value):
        yield value


def _worth_finding(name: bytes, value: bytes) -> bool:
    """Whether a value can be told from ordinary text at any place."""
    if len(value) < _SHORTEST or b"\n" in value or heuristics.placeholder(value):
        return False
    if _SECRET.search(name) and b"://" not in value:
        return heuristics.assigned(value, quoted=True, password=True)
    return (
        len(value) >= _UNNAMED_SHORTEST
        and heuristics.random(value)
        and b" " not in value
        and heuristics.entropy(value) >= _VERY_RANDOM
        and re.search(rb"[a-z]", value) is not None
        and not re.fullmatch(
            rb"[\w-]+(?:\.[\w-]+)+(?::\d+)?|\d[\d.:T-]+Z?|.*[/@:].*", value
        )
    )


def of_project(top: Path) -> dict[bytes, str]:
    """Returns the secret values in a project's `.env` files, and the file of each.

    Nested repositories and installed packages are not the project's own.
    """
    found: dict[bytes, str] = {}
    pending = [os.fsencode(top)]
    while pending:
        directory = pending.pop(0)
        try:
            entries = list(os.scandir(directory))
        except OSError:
            # If the file cannot be read, no checkpoint can hold it.
            continue
        if directory != os.fsencode(top) and any(
            one.name == b".git" for one in entries
        ):
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if os.fsdecode(entry.name) not in _PRUNED:
                    pending.append(entry.path)
            elif b"env" in entry.name and is_dotenv(entry.name):
                data = _read(entry.path)
                shown = os.fsdecode(os.path.relpath(entry.path, os.fsencode(top)))
                found.update((value, shown) for value, _ in values(data))
    return found


def _read(path: bytes) -> bytes:
    try:
        if not os.path.isfile(path):
            return b""
        with open(path, "rb") as file:
            return file.read(_LARGEST)
    except OSError:
        return b""


def of_environment(environment: Mapping[str, str]) -> set[bytes]:
    """Returns the values of the process environment whose names say that they are secrets."""
    return {
        os.fsencode(value)
        for name, value in environment.items()
        if len(value) >= _ENVIRONMENT_SHORTEST
        and re.search(r"(?i)key|token|secret|passw|credential", name)
        and "/" not in value
        and heuristics.random(os.fsencode(value))
    }


def needles(known: Iterable[bytes]) -> dict[bytes, bytes]:
    """Returns the byte strings that show a value: as it is, in URLs and in base64."""
    found: dict[bytes, bytes] = {}
    for value in known:
        found[value] = value
        found.setdefault(quote_from_bytes(value, safe="").encode(), value)
        for core in cores(value):
            found.setdefault(core, value)
            found.setdefault(core.translate(bytes.maketrans(b"+/", b"-_")), value)
    return found
