"""Finds the sessions that OpenCode keeps of a project, in its database.

They have the form in which its API passes them to gitcp's plugin: each message with its parts
as one line, and the description of the session beside them. gitcp writes nothing there.
"""

import json
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from gitcp.clients import opencode
from gitcp.clients.client import ClientPlaces, Source
from gitcp.clients.history import Kept, Leave, is_within
from gitcp.format import jsontext

_TABLES = ("session", "message", "part")
_SESSIONS = (
    "SELECT id, parent_id, directory, project_id, slug, path, title, version, agent,"
    " model, permission, cost, time_created, time_updated FROM session"
    " ORDER BY time_created, id"
)
_MESSAGES = (
    "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
)
_PARTS = "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id"


def find(
    places: ClientPlaces, roots: Sequence[Path], leave: Leave, *, name: str = "opencode"
) -> Iterator[Kept]:
    """Yields the sessions of a project, with those of subagents beside them.

    `name` is the client's name: OpenCode or a fork of it.
    """
    path = opencode.data_directory(places, name) / f"{name}.db"
    try:
        regular = stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return
    if not regular:
        leave(str(path), "not a regular file")
        return
    try:
        import sqlite3  # noqa: PLC0415  some builds of Python have none
    except ModuleNotFoundError:
        leave(str(path), "this Python was built without SQLite")
        return
    try:
        address = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as database:
            database.set_authorizer(_reads_only)
            yield from _sessions(database, path, roots, leave)
    except sqlite3.Error as exc:
        leave(str(path), f"cannot be read: {exc}")


def _reads_only(action: int, table: str | None, *_: object) -> int:
    """Allows SQLite to read only three tables, even through a view in place of one.

    `trusted_schema = OFF` refuses the whole of Kilo's database: its indexes call json_extract().
    """
    import sqlite3  # noqa: PLC0415  some builds of Python have none

    if action == sqlite3.SQLITE_SELECT:
        return sqlite3.SQLITE_OK
    read = action == sqlite3.SQLITE_READ and table in _TABLES
    return sqlite3.SQLITE_OK if read else sqlite3.SQLITE_DENY


def _sessions(
    database: Any, path: Path, roots: Sequence[Path], leave: Leave
) -> Iterator[Kept]:
    cursor = database.execute(_SESSIONS)
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor]
    children: dict[str, list[str]] = {}
    for row in rows:
        children.setdefault(row["parent_id"], []).append(row["id"])
    for row in rows:
        if row["parent_id"] is not None or not is_within(str(row["directory"]), roots):
            continue
        try:
            content = _content(database, row["id"])
            sources = [
                Source("", content=content),
                Source(opencode.DESCRIPTION, content=_described(row)),
            ]
            sources += [
                Source(f"{child}.jsonl", content=_content(database, child))
                for child in children.get(row["id"], ())
            ]
        except (ValueError, TypeError) as exc:
            leave(f"{path}, session {row['id']!a}", f"cannot be read: {exc}")
            continue
        changed = (row["time_updated"] or 0) / 1000
        yield Kept(row["id"], path, changed, len(content), tuple(sources))


def _content(database: Any, session: str) -> bytes:
    """Returns the messages of a session as lines, each message with its parts.

    Raises:
        ValueError, TypeError: the database holds something else.
    """
    parts: dict[str, list[dict[str, Any]]] = {}
    for ident, message, data in database.execute(_PARTS, (session,)):
        placed = {"id": ident, "sessionID": session, "messageID": message}
        parts.setdefault(message, []).append({**placed, **_object(data)})
    lines = []
    for ident, data in database.execute(_MESSAGES, (session,)):
        info = {"id": ident, "sessionID": session, **_object(data)}
        lines.append(_line({"info": info, "parts": parts.get(ident, [])}))
    return b"".join(lines)


def _described(row: dict[str, Any]) -> bytes:
    made: dict[str, Any] = {
        "id": row["id"],
        "slug": row["slug"],
        "projectID": row["project_id"],
        "directory": row["directory"],
        "path": row["path"],
        "title": row["title"],
        "version": row["version"],
        "agent": row["agent"],
        "cost": row["cost"],
        "time": {"created": row["time_created"], "updated": row["time_updated"]},
    }
    for name in ("model", "permission"):
        if row[name] is not None:
            made[name] = jsontext.decode(row[name].encode())
    return _line({name: value for name, value in made.items() if value is not None})


def _object(text: Any) -> dict[str, Any]:
    found = jsontext.decode(text.encode("utf-8", "replace"))
    if not isinstance(found, dict):
        raise TypeError("a record is no object")
    return found


def _line(document: dict[str, Any]) -> bytes:
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace") + b"\n"
