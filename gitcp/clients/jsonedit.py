"""Changes one place in a user's JSON file, and no byte around it.

It keeps comments and trailing commas, which some clients allow.
"""

import json
import re
from typing import Any, NamedTuple

_GAP = r"(?s)(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*"
_STRING = r'(?s)"(?:[^"\\]|\\.)*"'
_SCALAR = r"[^\s,\]}/\"]+"
_DEEPEST = 200


class JsonNode(NamedTuple):
    """A value: the start and end of its text, and its members.

    `members` are names and values of an object; the members of an array have the name "".
    """

    start: int
    end: int
    kind: str
    members: tuple[tuple[str, int, "JsonNode"], ...] = ()

    def get(self, name: str) -> "JsonNode | None":
        """Returns a member of an object; of duplicates, the last."""
        value = None
        for own, _, node in self.members:
            if own == name:
                value = node
        return value


def parse(text: str) -> JsonNode:
    """Returns the positions of all values in a JSON text.

    Raises:
        ValueError: the text is not valid JSON.
    """
    node = _value(text, _past(text, 0), 0)
    if _past(text, node.end) != len(text):
        raise ValueError(f"something follows at character {node.end}")
    return node


def value(text: str, node: JsonNode) -> Any:
    """Returns the value of a node."""
    if node.kind == "{":
        return {name: value(text, inner) for name, _, inner in node.members}
    if node.kind == "[":
        return [value(text, inner) for _, _, inner in node.members]
    return json.loads(text[node.start : node.end])


def add(text: str, node: JsonNode, addition: Any, *, name: str | None = None) -> str:
    """Returns the text with one more member, last in an object or array.

    The new member is laid out like the members before it.
    """
    unit, outer = _indent(text, node)
    inner = outer + unit
    newline = "\r\n" if "\r\n" in text else "\n"
    shown = json.dumps(addition, indent=unit or 2, ensure_ascii=False)
    shown = shown.replace("\n", newline + inner)
    if name is not None:
        shown = f"{json.dumps(name)}: {shown}"
    if not node.members:
        # Text that was between the brackets stays before the closing bracket.
        rest = text[node.start + 1 : node.end - 1]
        closing = rest if newline in rest or rest.strip() else f"{newline}{outer}{rest}"
        replacement = (
            f"{text[node.start]}{newline}{inner}{shown}{closing}{text[node.end - 1]}"
        )
        return text[: node.start] + replacement + text[node.end :]
    last = node.members[-1][2].end
    between = text[last : node.end - 1]
    comma = "" if re.sub(_GAP, "", between).startswith(",") else ","
    at = last + (between.index(",") + 1 if not comma else 0)
    one_line = "\n" not in text[node.start : node.end]
    gap = " " if one_line else newline + inner
    return text[:at] + comma + gap + shown + text[at:]


def remove(text: str, node: JsonNode, index: int) -> str:
    """Returns the text without one member and its comma."""
    _, start, inner = node.members[index]
    if index > 0:
        before = node.members[index - 1][2].end
        return text[:before] + text[inner.end :]
    if len(node.members) > 1:
        return text[:start] + text[node.members[1][1] :]
    after = _past(text, inner.end)
    end = after + 1 if text[after] == "," else inner.end
    if not text[end : node.end - 1].strip():
        end = node.end - 1
    return text[: node.start + 1] + text[end:]


def _indent(text: str, node: JsonNode) -> tuple[str, str]:
    """Returns one step of indentation, and the indentation of the line of a value."""
    line = text[text.rfind("\n", 0, node.start) + 1 : node.start]
    outer = line[: len(line) - len(line.lstrip(" \t"))]
    if node.members:
        start = node.members[-1][1]
        lead = text[text.rfind("\n", 0, start) + 1 : start]
        if not lead.strip() and lead.startswith(outer) and len(lead) > len(outer):
            return lead[len(outer) :], outer
    match = re.search(r"\n([ \t]+)\S", text)
    return (match[1] if match and len(match[1]) <= 8 else "  "), outer  # noqa: PLR2004


def _match(pattern: str, text: str, at: int) -> re.Match[str] | None:
    return re.compile(pattern).match(text, at)


def _past(text: str, at: int) -> int:
    match = _match(_GAP, text, at)
    assert match is not None
    return match.end()


def _value(text: str, at: int, depth: int) -> JsonNode:
    if at >= len(text) or depth > _DEEPEST:
        raise ValueError(f"cut short, or too deep, at character {at}")
    if text[at] in "{[":
        return _container(text, at, depth)
    pattern = _STRING if text[at] == '"' else _SCALAR
    match = _match(pattern, text, at)
    if match is None:
        raise ValueError(f"no value at character {at}")
    json.loads(match[0])
    return JsonNode(at, match.end(), "v")


def _container(text: str, start: int, depth: int) -> JsonNode:
    kind, closing = text[start], "}" if text[start] == "{" else "]"
    members: list[tuple[str, int, JsonNode]] = []
    at = _past(text, start + 1)
    while at < len(text) and text[at] != closing:
        begin, name = at, ""
        if kind == "{":
            match = _match(_STRING, text, at)
            if match is None:
                raise ValueError(f"no name at character {at}")
            name = json.loads(match[0])
            at = _past(text, match.end())
            if text[at : at + 1] != ":":
                raise ValueError(f"no colon at character {at}")
            at = _past(text, at + 1)
        node = _value(text, at, depth + 1)
        members.append((name, begin, node))
        at = _past(text, node.end)
        if text[at : at + 1] == ",":
            at = _past(text, at + 1)
        elif text[at : at + 1] != closing:
            raise ValueError(f"no comma at character {at}")
    if at >= len(text):
        raise ValueError("cut short")
    return JsonNode(start, at + 1, kind, tuple(members))
