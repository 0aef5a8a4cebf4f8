"""The front matter of a markdown file: the part of YAML that people write there.

Mappings and lists by indentation, `[a, b]`, quoted and plain text, `|` and `>` blocks,
comments. What else YAML can do (anchors, tags, `{}` with content, several documents) is
refused, so that nothing is ever read as something else than was meant. Every scalar is
text: `yes`, `1.10` and `2026-01-02` stay what they look like. Nothing is None.
"""

import re
import sys
from typing import NamedTuple

Value = str | list["Value"] | dict[str, "Value"] | None

_FENCE = re.compile(r"---[ \t]*")
_ENDS = re.compile(r"(---|\.\.\.)[ \t]*")
# A key: quoted, or plain up to the first colon that a space or the end follows.
_KEY = re.compile(
    r"""(
          "(?:[^"\\]|\\.)*"
        | '(?:[^']|'')*'
        | [^\s"'#\-?:,\[\]{}&*!|>%@`](?:[^:#]|:(?=\S)|(?<!\s)\#)*?
        | -[^\s:]+
    )\s*:(?:[ \t]+|$)""",
    re.VERBOSE | re.ASCII,
)
_BLOCK = re.compile(r"([|>])([+-]?)(\d?)([+-]?)[ \t]*(?:#.*)?")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))")
_ESCAPES = dict(
    zip(
        'nrtbfv0ea_NLP"\\/ ',
        '\n\r\t\b\f\v\0\x1b\a\xa0\x85\u2028\u2029"\\/ ',
        strict=True,
    )
)
_COLON = re.compile(r":(?=[ \t]|$)")
_QUOTE = re.compile("[\"']")
_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^']|'')*'""")
_SURROGATES = (0xD800, 0xDFFF)
_SPACE = " \t"
_NOT_PLAIN = "&*!%@`"
_DEEPEST = 20


class FrontMatterError(ValueError):
    """Something that is not read; the message names the line."""


class Split(NamedTuple):
    """A file in two: what its front matter says, and the markdown below."""

    fields: dict[str, Value]
    body: str


def split(text: str) -> Split:
    """Returns the front matter and the body of a file; without one, no fields.

    Raises:
        FrontMatterError: the front matter does not end, or holds what is not read.
    """
    lines = re.split("\r?\n", text.removeprefix("\ufeff"))
    if not lines or not _FENCE.fullmatch(lines[0]):
        return Split({}, text)
    for number, line in enumerate(lines[1:], 1):
        if _ENDS.fullmatch(line):
            fields = _Reader(lines[1:number]).document()
            return Split(fields, "\n".join(lines[number + 1 :]))
    raise FrontMatterError("line 1: the front matter does not end")


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    def document(self) -> dict[str, Value]:
        if self._peek() is None:
            return {}
        found = self._node(0)
        if self._peek() is not None:
            raise self._error("it is indented less than what is before it")
        if not isinstance(found, dict):
            self._at = 0
            raise self._error("the front matter is not a mapping")
        return found

    def _error(self, what: str) -> FrontMatterError:
        # Behind the fence, which is line 1.
        return FrontMatterError(f"line {self._at + 2}: {what}")

    def _peek(self) -> tuple[int, str] | None:
        """Returns indent and content of the next line that says something."""
        while self._at < len(self._lines):
            line = self._lines[self._at]
            content = line.lstrip(" ")
            if content.strip(_SPACE) and not content.startswith("#"):
                if content.startswith("\t"):
                    raise self._error("it is indented by a tab")
                return len(line) - len(content), content.rstrip(_SPACE)
            self._at += 1
        return None

    def _node(self, depth: int) -> Value:
        if depth > _DEEPEST:
            raise self._error("it is nested too deeply")
        found = self._peek()
        assert found is not None
        indent, content = found
        if content == "-" or content.startswith("- "):
            return self._list(indent, depth)
        if _KEY.match(content):
            return self._mapping(indent, depth)
        return self._continued(indent)

    def _list(self, indent: int, depth: int) -> list[Value]:
        items: list[Value] = []
        while (found := self._peek()) is not None:
            at, content = found
            if at < indent or not (content == "-" or content.startswith("- ")):
                break
            if at > indent:
                raise self._error("it is indented more than what is before it")
            rest = content[1:].lstrip(" ")
            if not rest or rest.startswith("#"):
                self._at += 1
                items.append(self._below(indent, depth))
            elif rest == "-" or rest.startswith("- ") or _KEY.match(rest):
                # A list or mapping that begins beside the dash.
                inner = indent + len(content) - len(rest)
                self._lines[self._at] = " " * inner + rest
                items.append(self._node(depth + 1))
            else:
                items.append(self._value(rest, indent, beside=False))
        return items

    def _mapping(self, indent: int, depth: int) -> dict[str, Value]:
        fields: dict[str, Value] = {}
        while (found := self._peek()) is not None:
            at, content = found
            if at < indent:
                break
            if at > indent:
                raise self._error("it is indented more than what is before it")
            match = _KEY.match(content)
            if match is None:
                raise self._error("it is not `key: value`")
            key = self._scalar(match[1])
            assert isinstance(key, str)
            if key in fields:
                raise self._error(f"{key!r} is there twice")
            rest = content[match.end() :]
            if not rest or rest.startswith("#"):
                self._at += 1
                fields[key] = self._below(indent, depth, dash=True)
            else:
                fields[key] = self._value(rest, indent)
        return fields

    def _below(self, indent: int, depth: int, *, dash: bool = False) -> Value:
        """Returns what is indented below a key or a dash; None where nothing is."""
        found = self._peek()
        if found is None:
            return None
        at, content = found
        listed = dash and at == indent and (content == "-" or content.startswith("- "))
        return self._node(depth + 1) if at > indent or listed else None

    def _value(self, rest: str, indent: int, *, beside: bool = True) -> Value:
        if block := _BLOCK.fullmatch(rest):
            return self._block(block, indent)
        if rest.startswith("["):
            return self._flow(rest, indent)
        if rest[0] in "\"'":
            return self._quoted(rest, indent)
        self._lines[self._at] = " " * (indent + 1) + rest
        return self._continued(indent + 1, beside=beside)

    def _block(self, match: re.Match[str], indent: int) -> str:
        """Reads `|` (line by line) or `>` (lines of a paragraph joined)."""
        self._at += 1
        lines: list[str] = []
        inner = indent + int(match[3]) if match[3] else None
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip(_SPACE)
            width = len(line) - len(line.lstrip(" "))
            if line and width <= indent:
                break
            if line and inner is None:
                inner = width
            lines.append(line[inner or 0 :] if line else "")
            self._at += 1
        text = "\n".join(lines) if match[1] == "|" else _folded(lines)
        text = text.rstrip("\n")
        return text if "-" in match[2] + match[4] or not text else text + "\n"

    def _continued(self, indent: int, *, beside: bool = False) -> Value:
        """Reads plain text, which may go on in lines indented as much.

        `beside` a key it may hold `: `, as people write it, who need not know that YAML
        wants quotes then. Elsewhere that may have been meant as a key.
        """
        text = ""
        last = self._at
        while (found := self._peek()) is not None:
            at, content = found
            if at < indent or (text and _KEY.match(content)):
                break
            if content[0] in _NOT_PLAIN or content.startswith(("{", "? ", "| ", "> ")):
                if content == "{}" and not text:
                    self._at += 1
                    return {}
                raise self._error(f"{content[:20]!r} is more YAML than is read here")
            if (text or not beside) and _COLON.search(content):
                raise self._error("a text with a colon in it needs quotes")
            if any(line.strip(_SPACE) for line in self._lines[last : self._at]):
                raise self._error("a comment stands inside a text")
            blank = self._at - last
            said, hash_sign, _ = content.partition(" #")
            text += ("\n" * blank or " ") * bool(text) + said.rstrip(_SPACE)
            self._at += 1
            last = self._at
            if hash_sign:
                break
        return None if text in {"~", "null"} else text

    def _quoted(self, rest: str, indent: int) -> str:
        mark = rest[0]
        closed = re.compile(
            r'"(?:[^"\\]|\\.)*"' if mark == '"' else r"'(?:[^']|'')*'", re.DOTALL
        )
        text = rest
        first, blank = self._at, 0
        while (match := closed.match(text)) is None:
            self._at += 1
            line = self._lines[self._at] if self._at < len(self._lines) else None
            said = line.strip(_SPACE) if line is not None else ""
            if line is None or (said and len(line) - len(line.lstrip(" ")) <= indent):
                self._at = first
                raise self._error("the quote does not end")
            if not said:
                blank += 1
                continue
            # A backslash before the end of the line joins without a space.
            joins = mark == '"' and re.search(r"(?<!\\)(?:\\\\)*\\$", text)
            if joins:
                text = text[:-1] + "\n" * blank + said
            else:
                text = text.rstrip(_SPACE) + ("\n" * blank or " ") + said
            blank = 0
        after = text[match.end() :].strip(_SPACE)
        if after and not after.startswith("#"):
            raise self._error(f"{after[:20]!r} stands behind a quote")
        found = self._scalar(match[0])
        self._at += 1
        return found

    def _flow(self, rest: str, indent: int) -> list[Value]:
        text = rest
        while True:
            pieces = _flow_items(text)
            if pieces is not None:
                break
            first = self._at
            self._at += 1
            following = self._peek()
            whole = text.endswith((",", "[")) and not _QUOTE.search(
                _QUOTED.sub("", text)
            )
            if following is None or following[0] <= indent or not whole:
                self._at = first
                raise self._error("the list does not end, or is more than a flat list")
            text += " " + following[1]
        items: list[Value] = [self._scalar(piece) for piece in pieces]
        self._at += 1
        return items

    def _scalar(self, text: str) -> str:
        if text.startswith("'"):
            return text[1:-1].replace("''", "'")
        if not text.startswith('"'):
            if text[:1] in _NOT_PLAIN and text:
                raise self._error(f"{text[:20]!r} is more YAML than is read here")
            return text

        def plain(found: re.Match[str]) -> str:
            code = found[1] or found[2] or found[3]
            if code:
                number = int(code, 16)
                if (
                    number > sys.maxunicode
                    or _SURROGATES[0] <= number <= _SURROGATES[1]
                ):
                    raise self._error(f"{found[0]} is not a character")
                return chr(number)
            if found[4] not in _ESCAPES:
                raise self._error(f"the escape \\{found[4]} is not known")
            return _ESCAPES[found[4]]

        joined = re.sub(
            r"(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})",
            lambda pair: (
                pair[0]
                .encode()
                .decode("unicode_escape")
                .encode("utf-16", "surrogatepass")
                .decode("utf-16")
            ),
            text[1:-1],
        )
        return _ESCAPE.sub(plain, joined)


def _folded(lines: list[str]) -> str:
    """Joins the lines of each paragraph; those indented more stay by themselves."""
    text = ""
    blank, apart = 0, True
    for line in lines:
        if not line:
            blank += 1
            continue
        more = line[0] in " \t"
        if apart or more:
            text += "\n" * (blank + bool(text)) + line
        else:
            text += ("\n" * blank or " ") + line
        blank, apart = 0, more
    return text


_ITEM = re.compile(
    r"""\s*(
          "(?:[^"\\]|\\.)*"
        | '(?:[^']|'')*'
        | [^\s"'\[\]{},\#&*!|>%@`](?:[^,\[\]{}\#]|(?<!\s)\#)*?
    )\s*(,|\])""",
    re.VERBOSE | re.ASCII,
)
_END = re.compile(r"\s*\]\s*(?:#.*)?$", re.ASCII)


def _flow_items(text: str) -> list[str] | None:
    """Returns the items of `[a, "b"]`; None where it does not end, or is nested."""
    at = 1
    items: list[str] = []
    while True:
        if _END.match(text, at):
            return items
        match = _ITEM.match(text, at)
        if match is None:
            return None
        items.append(match[1])
        at = match.end() - (match[2] == "]")
