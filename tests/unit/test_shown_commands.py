"""A command that gitcp shows, copied into a shell, runs itself and nothing else."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitcp.names import quoted

PACKAGE = Path(__file__).parents[2] / "gitcp"
HOSTILE = ("x;touch pwn", "$(touch pwn)", "`touch pwn`", "a'; touch pwn '", "a\ntouch pwn",
           "~", "*", "a b", "\x1b[2J", "\u202e", "{a,b}", "!!", "a\\", "")  # fmt: skip

# A command, or an option to add to one, in the text of a message.
_COMMAND = re.compile(
    r"`(?:gitcp|git|cd|mkdir|--keep)\b[^`]*`"
    r"|^\s*(?:cd|git update-ref|gitcp (?:cat|config|decisions|messages|push|show)) .*"
)
# Values that cannot hold what a shell interprets: numbers, ids, words of gitcp's own.
_PLAIN = re.compile(
    r"(?:\w+\.)*(?:number|n|id|seq|before|ident|store)(?: or (?:\w+\.)*id)?"
    r"|name|name\.removeprefix\('#'\)|target|oid|tip|present|before|ident"
    r"|client\.name|one\.scope|agent|scope|self\.name|OFF|SESSION|setting|theirs\.form\.name"
    r"|gone\[0\]\.store|context\.command_path if context else 'gitcp'"
)
# Values whose words are quoted where they are made.
_QUOTED = re.compile(
    r"(?:shlex\.quote|shlex\.join|quoted|_quoted|(?:answers\.)?command)\(.*\)"
    r"|path|dashes|top|where|word|words|command|'' if default else f' \{shlex\.quote\(remote\)\}'"
)


def values(path: Path) -> Iterator[tuple[str, str]]:
    """Yields each value in a command that a module shows, with the command."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if not isinstance(node, ast.JoinedStr):
            continue
        held = [one for one in node.values if isinstance(one, ast.FormattedValue)]
        numbers = iter(range(len(held)))
        text = "".join(
            str(one.value) if isinstance(one, ast.Constant) else f"\0{next(numbers)}\0"
            for one in node.values
        )
        for command in _COMMAND.findall(text):
            for number in re.findall(r"\0(\d+)\0", command):
                yield ast.unparse(held[int(number)].value), command


def test_every_value_in_a_shown_command_is_quoted():
    bare = [
        f"{path.relative_to(PACKAGE)}: {value} in {command!r}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for value, command in values(path)
        if not (_PLAIN.fullmatch(value) or _QUOTED.fullmatch(value))
    ]
    assert bare == []


@pytest.mark.parametrize("text", HOSTILE)
def test_a_quoted_name_is_one_word_on_one_line(tmp_path, text):
    word = quoted(text)
    assert word.isprintable()
    if text.isprintable():
        assert shlex.split(word) == [text]
    for shell in ("sh", "bash"):
        done = subprocess.run(
            [shell, "-c", f"printf '[%s]' {word}"],
            check=True,
            cwd=tmp_path,
            capture_output=True,
        )
        shown = done.stdout.decode()
        assert shown == f"[{text}]" or not text.isprintable()
        assert shown.count("[") == 1 + text.count("[")
    assert list(tmp_path.iterdir()) == []
