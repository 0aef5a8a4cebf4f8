#!/usr/bin/env python3
"""Reports phrases of `words.txt` in the project's own text (docs/style.md).

Without arguments looks at every text file that git tracks below `PLACES`, and at the pages
at the top; with arguments, at those of the named files that lie there.
"""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / ".ci" / "words.txt"
PLACES = ("gitcp", "hooks", "tests", "docs", "bench")
# They quote the phrases; or hold what earlier versions, or clients, wrote.
EXCEPT = ("docs/glossary.md", "docs/style.md", "tests/compat", "tests/golden")


class Phrase(NamedTuple):
    """A line of the list."""

    pattern: re.Pattern[str]
    instead: str
    # In lower case; without one of these a text is not searched, as that takes long.
    needed: tuple[str, ...] = ()


class Hit(NamedTuple):
    """One place where a phrase stands; `line` counts from 1."""

    line: int
    text: str
    instead: str


def phrases(source: str) -> list[Phrase]:
    """Reads the list; a phrase between slashes is a regular expression.

    Raises:
        ValueError: a line has no `=`.
    """
    found = []
    for line in source.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        words, equals, instead = line.partition(" = ")
        if not equals:
            raise ValueError(f"no ` = ` in {line!r}")
        # Between words also the marks that begin a comment on the next line.
        gap = r"(?:[-_]|\s+(?:(?:#|//|\*|>)\s*)?)"
        needed: list[str] = []
        if words.startswith("/"):
            text = words.strip("/")
        else:
            needed = words.split()
            text = gap.join(re.escape(word) for word in needed)
        pattern = re.compile(rf"(?<![a-z]){text}(?![a-z])", re.IGNORECASE)
        lower = tuple(word.lower() for word in needed)
        found.append(Phrase(pattern, instead.strip(), lower))
    return found


def hits(text: str, listed: Iterable[Phrase]) -> Iterator[Hit]:
    """Yields each phrase of the list in a text, with the number of its line from 1."""
    lower = text.lower()
    for phrase in listed:
        if not all(word in lower for word in phrase.needed):
            continue
        for found in phrase.pattern.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield Hit(line, " ".join(found[0].split()), phrase.instead)


def is_ours(path: str) -> bool:
    """Whether a path relative to the top is text that the list holds for."""
    parts = PurePosixPath(path).parts
    if any(path == one or path.startswith(f"{one}/") for one in EXCEPT):
        return False
    return parts[0] in PLACES or (len(parts) == 1 and path.endswith(".md"))


def tracked() -> list[str]:
    """Returns every path that git tracks; all files where this is not a repository."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z"]
    try:
        done = subprocess.run(command, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return [
            found.relative_to(ROOT).as_posix()
            for place in (*PLACES, ".")
            for found in (ROOT / place).glob("*" if place == "." else "**/*")
            if found.is_file() and "__pycache__" not in found.parts
        ]
    return done.stdout.decode().split("\0")[:-1]


def main(names: list[str]) -> int:
    """Prints every hit in the named files, or in all; returns the exit status."""
    listed = phrases(LIST.read_text("utf-8"))
    paths = [Path(name).resolve().relative_to(ROOT).as_posix() for name in names]
    count = 0
    for path in sorted(set(paths or tracked())):
        if not is_ours(path) or not (ROOT / path).is_file():
            continue
        try:
            text = (ROOT / path).read_text("utf-8")
        except UnicodeDecodeError:
            continue
        for hit in sorted(hits(text, listed)):
            count += 1
            print(f"{path}:{hit.line}: {hit.text}; write: {hit.instead}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
