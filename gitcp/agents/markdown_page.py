"""Reads one markdown checkpoint of another tool: its fields as decision entries.

There is no standard for such pages. This looks for front matter, and for headings with
lists below them, under many names. It ignores the rest; the caller keeps the page itself.
"""

import datetime
import re
from collections.abc import Iterator
from typing import NamedTuple

from gitcp.agents import front_matter
from gitcp.agents.front_matter import Value
from gitcp.format.log import Decision

# names, without case and separators -> kinds of entries
_FIELDS = {
    "time": "timestamp created createdat date datetime time savedat saved when",
    "summary": "summary title note message description headline sessionsummary",
    "task": "currenttask task goal objective objectives workingon",
    "active": "activefiles files active filesinwork modifiedfiles keyfiles changedfiles"
    " filestouched filesmodified",
    "decision": "decisions decision decided keydecisions decisionsmade"
    " technicaldecisions architecturaldecisions",
    "tried": "tried attempted attempts deadends failed failedapproaches failedattempts"
    " whatwastried triedandfailed whatdidntwork",
    "next": "nextsteps next nextstep nextactions todo todos remaining whatsnext"
    " nextsession fornextsession openwork openfollowups followups",
    "fact": "facts casefacts keyfacts",
    "bug": "bugs bugsfound issues",
    "note": "notes learnings remarks accomplished whatwasaccomplished taskscompleted"
    " completedtasks",
}
_MEANS = {name: kind for kind, names in _FIELDS.items() for name in names.split()}
_WHY = frozenset({"why", "reason", "rationale", "because", "result", "outcome"})
# As in `Next steps (suggested)`.
_ASIDE = re.compile(r"\([^()]*\)")
# A rule, or a label in bold alone in its line.
_IDLE = re.compile(r"[ \t]*(?:([-*_])([ \t]*\1){2,}|\*\*[^*]+(?:\*\*:|:\*\*))[ \t]*")
# A path in a line that describes it.
_CODE = re.compile(r"`([^`]+)`")
_HEADING = re.compile(r"#{1,6}[ \t]+(.*?)[ \t#]*")
_BULLET = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(.*)")
_STAMP = re.compile(
    r"(\d{4})-?(\d\d)-?(\d\d)[T_ -]?(\d\d)[-:]?(\d\d)[-:]?(\d\d)?(?!\d)"
)
_NOTE = 200


class MarkdownPage(NamedTuple):
    """A parsed page: when it was written, its summary line, and its entries."""

    at: datetime.datetime | None
    summary: str | None
    entries: tuple[Decision, ...]


def read(text: str, name: str) -> MarkdownPage:
    """Parses a page; `name` is the name of its file, which may hold the time.

    Raises:
        FrontMatterError: the front matter cannot be read.
        UsageError: PyYAML is not installed.
    """
    fields, body = front_matter.split(text)
    at = None
    summary = None
    entries: list[Decision] = []
    for kind, value in (*_known(fields), *_sections(body)):
        if kind == "time":
            at = at or _time(value)
        elif kind == "summary":
            summary = summary or " ".join(_texts(value)) or None
        elif kind == "active":
            paths = tuple(map(_path, _texts(value)))
            if paths:
                entries.append(Decision("files in work", kind="active", paths=paths))
        else:
            entries += _entries(kind, value)
    at = at or _stamp(name)
    stamp = _written(at) if at is not None else None
    if summary:
        entries.insert(0, Decision(summary, kind="note"))
    return MarkdownPage(
        at,
        summary[:_NOTE] if summary else None,
        tuple(
            Decision(one.text, one.why, one.kind, stamp, one.paths) for one in entries
        ),
    )


def _plain(name: str) -> str:
    """Returns a name without case, separators and text in brackets."""
    return re.sub(r"[\W_]", "", _ASIDE.sub("", name)).lower()


def _path(text: str) -> str:
    code = _CODE.match(text)
    return code[1] if code is not None else text


def _known(fields: dict[str, Value]) -> Iterator[tuple[str, Value]]:
    for name, value in fields.items():
        kind = _MEANS.get(_plain(name))
        if kind is not None:
            yield kind, value
        elif isinstance(value, dict):
            # Grouped, as `context: {current_task: …}`.
            yield from _known(value)


def _sections(body: str) -> Iterator[tuple[str, Value]]:
    """Yields the fields that headings name, with the content below each heading."""
    kind: str | None = None
    lines: list[str] = []
    for line in [*body.split("\n"), "# end"]:
        heading = _HEADING.fullmatch(line.rstrip())
        if heading is None:
            lines.append("" if _IDLE.fullmatch(line) else line)
            continue
        if kind is not None and "\n".join(lines).strip():
            yield kind, _items("\n".join(lines))
        kind, lines = _MEANS.get(_plain(heading[1])), []


def _items(text: str) -> list[Value]:
    """Returns the items of a list, or the paragraphs if there is no list."""
    items: list[Value] = []
    listed = any(map(_BULLET.fullmatch, text.split("\n")))
    for paragraph in re.split(r"\n[ \t]*\n", text):
        fresh = True
        for line in paragraph.split("\n"):
            bullet = _BULLET.fullmatch(line)
            if bullet is not None:
                items.append(bullet[1].strip())
            elif line.strip() and items and (listed or not fresh):
                items[-1] = f"{items[-1]} {line.strip()}"
            elif line.strip():
                items.append(line.strip())
            fresh = False
    return items


def _texts(value: Value) -> Iterator[str]:
    if isinstance(value, str):
        many = any(map(_BULLET.fullmatch, value.split("\n")))
        texts = _items(value) if many else [" ".join(value.split())]
        yield from (one for one in texts if isinstance(one, str) and one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        yield from (entry.text for entry in _entries("note", [value]))


def _entries(kind: str, value: Value) -> Iterator[Decision]:
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, dict):
            yield from (Decision(text, kind=kind) for text in _texts(one))
            continue
        why = [
            text for name, each in one.items() if _is_why(name) for text in _texts(each)
        ]
        named_texts = [
            (name, " ".join(_texts(each)))
            for name, each in one.items()
            if not _is_why(name)
        ]
        if named_texts:
            # In `- JWT: because …` the key is the subject; else the first value is.
            (name, text), *rest = named_texts
            known = _MEANS.get(_plain(name)) or _plain(name) in _NAMES
            parts = [text if known or not text else f"{name}: {text}"]
            parts += [f"{name}: {text}" for name, text in rest if text]
            yield Decision(
                "; ".join(filter(None, parts)) or name, "; ".join(why) or None, kind
            )
        elif why:
            yield Decision("; ".join(why), kind=kind)


_NAMES = frozenset(
    {"what", "text", "name", "approach", "step", "attempt", "path", "file", "id"}
)


def _is_why(name: str) -> bool:
    return _plain(name) in _WHY


def _time(value: Value) -> datetime.datetime | None:
    if not isinstance(value, str):
        return None
    text = value.strip()
    try:
        if re.fullmatch(r"\d{10}(\.\d+)?", text):
            return datetime.datetime.fromtimestamp(float(text), datetime.UTC)
        if re.fullmatch(r"\d{13}", text):
            return datetime.datetime.fromtimestamp(int(text) / 1000, datetime.UTC)
        # A time without a zone is in local time.
        return datetime.datetime.fromisoformat(text).astimezone(datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return _stamp(text)


def _stamp(text: str) -> datetime.datetime | None:
    """Finds `20260301-100000` or `2026-03-01T10-00-00` in a name."""
    match = _STAMP.search(text)
    if match is None:
        return None
    try:
        numbers = [int(part or 0) for part in match.groups()]
        local = datetime.datetime(*numbers)  # type: ignore[arg-type]  # noqa: DTZ001
        return local.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        return None


def _written(at: datetime.datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
