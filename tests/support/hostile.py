"""Sessions as a stranger would forge them: a sound one with one field made hostile."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gitcp.format import log
from tests.support.forge import Entry, Forge, record

_MARK = "@@hostile@@"


def values(canary: Path) -> list[bytes]:
    """Hostile values, as JSON: paths, commands, options, escapes, sizes, types."""
    texts = [
        "../../../../../../x",
        "/etc/passwd",
        f"{canary}",
        "x/../../../../.claude/settings",
        ".git/hooks/post-checkout",
        "a\0b",
        "\x1b]52;c;QUFB\x07\x1b[31m\x9b31m\u202e\u2066\r",
        "--trust",
        "-x",
        f"$(touch {canary})",
        f"`touch {canary}`;touch {canary}|touch {canary}",
        f"!touch {canary}",
        "line\nbreak\u2028\u2029",
        "A" * 70_000,
        "",
    ]
    other = [
        b"null",
        b"true",
        b"-1",
        b"9" * 400,
        b"1e308",
        b"0.5",
        b"[]",
        b"{}",
        b'[{"type":"text","text":{"a":1}}]',
        b"[" * 900 + b"]" * 900,
        b'"\\ud800"',
    ]
    return [json.dumps(one).encode() for one in texts] + other


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yields the way to each field of a JSON value."""
    if path:
        yield path
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    for key, one in inner:
        yield from places(one, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], raw: bytes) -> bytes:
    """Returns a JSON value with one field replaced by a text of JSON."""
    whole = json.loads(json.dumps(value))
    at = whole
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = _MARK
    return json.dumps(whole).encode().replace(f'"{_MARK}"'.encode(), raw)


class Session(NamedTuple):
    """What a checkpoint is made of: the record, logs by source, more files of its own."""

    kind: str = "messages"
    records: tuple[bytes, ...] = (b'{"role":"user","content":"hi"}',)
    beside: Mapping[str, bytes] = {}
    decisions: bytes = b""
    own: Mapping[str, bytes] = {}
    files: Mapping[str, bytes] = {}


def text_of(value: bytes) -> bytes:
    """Returns a hostile value as a line of text."""
    found = json.loads(value) if value[:1] == b'"' else value.decode()
    raw: bytes = found.encode("utf-8", "replace")
    return raw.replace(b"\n", b" ").replace(b"\0", b"")


class Mallory:
    """An attacker who writes any objects and refs into a shared repository."""

    def __init__(self, hub: Path) -> None:
        self.hub = hub
        self.forge = Forge()

    def _tree(self, files: Mapping[str, bytes]) -> bytes:
        entries: list[Entry] = []
        inner: dict[str, dict[str, bytes]] = {}
        for name, data in files.items():
            head, _, rest = name.partition("/")
            if rest:
                inner.setdefault(head, {})[rest] = data
            else:
                entries.append((b"100644", head.encode(), self.forge.blob(data)))
        for head, below in inner.items():
            entries.append((b"40000", head.encode(), self._tree(below)))
        # git sorts a directory as if its name ended in a slash.
        return self.forge.tree(
            sorted(entries, key=lambda one: one[1] + b"/" * (one[0] == b"40000"))
        )

    def push(
        self,
        name: str,
        session: Session,
        *,
        field: tuple[tuple[Any, ...], bytes] | None = None,
        sample: Mapping[str, Any] | None = None,
        meta: tuple[str, bytes] | None = None,
        trailer: tuple[str, bytes] | None = None,
    ) -> None:
        """Puts a session there; one field of its record, meta or trailers is hostile.

        `sample` is a record to take from what a field lies in, where this one has none.
        """
        logs: dict[str, bytes] = {}
        content = b"".join(one + b"\n" for one in session.records)
        totals = self._log(logs, "conversation", "main", session.kind, content, meta)
        for source, data in session.beside.items():
            self._log(logs, "conversation", f"main/{source}", session.kind, data)
        decided = None
        if session.decisions:
            found = self._log(
                logs, "decisions", "main", "decisions", session.decisions, meta
            )
            decided = {
                "entries": found["messages"],
                **{key: found[key] for key in ("bytes", "segments", "digest")},
            }
        files = self._tree(session.files) if session.files else None
        said = json.loads(
            record(
                files,
                session=name,
                conversation={
                    "source": "main",
                    "kind": session.kind,
                    **totals,
                    "agent_session": "ses_abc",
                },
                decisions=decided,
                skipped=session.own.get("skipped.jsonl", b"").count(b"\n"),
            )
        )
        manifest = json.dumps(said).encode()
        if field is not None:
            top = field[0][0]
            if sample is not None and not said.get(top):
                said[top] = sample[top]
            manifest = replaced(said, *field)
        own = {"checkpoint.json": manifest, **session.own, **logs}
        whole = {f".gitcp/{path}": data for path, data in own.items()}
        tree = self._tree({**whole, **session.files})
        trailers = {
            "Checkpoint": b"0123456789ab",
            "Session": name.encode(),
            "Branch": b"main",
            "Seq": b"1",
            "Trigger": b"manual",
        }
        if trailer is not None:
            trailers[trailer[0]] = trailer[1]
        lines = b"".join(
            b"Gitcp-%b: %b\n" % (key.encode(), one) for key, one in trailers.items()
        )
        oid = self.forge.commit(tree, [], b"note\n\n" + lines)
        self.forge.into(self.hub, {f"refs/gitcp/s/{name}/main": oid})

    def _log(
        self,
        logs: dict[str, bytes],
        kind_of_log: str,
        source: str,
        kind: str,
        content: bytes,
        wrong: tuple[str, bytes] | None = None,
    ) -> dict[str, Any]:
        totals = {
            "messages": content.count(b"\n"),
            "bytes": len(content),
            "segments": 1,
            "digest": log.chain(hashlib.sha256(b"").hexdigest(), content),
        }
        meta = {"format": 1, "name": source, "kind": kind, **totals}
        meta["agent_session"] = "ses_abc"
        raw = json.dumps(meta).encode()
        if wrong is not None:
            raw = replaced(meta, (wrong[0],), wrong[1])
        place = f"log/{kind_of_log}/{source.replace('/', '%2f').replace('.', '%2e')}"
        logs[f"{place}/meta.json"] = raw + b"\n"
        logs[f"{place}/0000/00.jsonl"] = content
        return totals

    def ledger(self, name: str, lines: list[bytes], last: bytes | None = None) -> None:
        """Puts a ledger of steps there."""
        end = last if last is not None else str(len(lines)).encode()
        message = b"#1 intent\n\n%b\n\nGitcp-Ledger: %b\nGitcp-Last: %b\n" % (
            b"\n".join(lines),
            name.encode(),
            end,
        )
        oid = self.forge.commit(self.forge.tree([]), [], message)
        self.forge.into(self.hub, {f"refs/gitcp/fx/{name}": oid})
