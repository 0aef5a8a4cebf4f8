"""The hooks of a client, as it calls them, with a conversation in the client's own form.

A command stands in the client's settings as `gitcp install` wrote it. Events come
under the names of all clients at once; each reads its own.
"""

import hashlib
import json
import os
import re
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gitcp.clients import registry, script_files, triggers
from gitcp.clients.client import SCOPES, ClientPlaces

_AT = "2026-03-06T09:00:00.000Z"
Record = dict[str, Any]
# role, text, id -> a line of a conversation; `top` and `session` are filled in.
Form = Callable[[str, str, str], Record]


def _parts(text: str) -> list[Record]:
    return [{"type": "text", "text": text}]


def _codex(role: str, text: str, ident: str) -> Record:
    kind = "input_text" if role == "user" else "output_text"
    content = [{"type": kind, "text": text}]
    said = {"type": "message", "role": role, "content": content, "id": ident}
    return {"timestamp": _AT, "type": "response_item", "payload": said}


def _copilot(role: str, text: str, ident: str) -> Record:
    kind = f"{role}.message"
    return {"type": kind, "id": ident, "timestamp": _AT, "data": {"content": text}}


def _gemini(role: str, text: str, ident: str) -> Record:
    kind = "user" if role == "user" else "gemini"
    return {"id": ident, "type": kind, "timestamp": _AT, "content": text}


def _pi(role: str, text: str, ident: str) -> Record:
    message = {"role": role, "content": _parts(text)}
    return {"type": "message", "id": ident, "timestamp": _AT, "message": message}


def _qwen(role: str, text: str, ident: str) -> Record:
    message = {"role": role, "parts": [{"text": text}]}
    return {"uuid": ident, "type": role, "timestamp": _AT, "message": message}


def _dialect(role: str, text: str, ident: str) -> Record:
    message = {"role": role, "content": _parts(text)}
    return {"type": role, "uuid": ident, "timestamp": _AT, "message": message}


def _cline(role: str, text: str, ident: str) -> Record:
    return {"id": ident, "role": role, "content": _parts(text), "ts": 1_772_614_800}


def _open(role: str, text: str, ident: str) -> Record:
    info = {"id": ident, "role": role, "time": {"created": 1_772_614_800_000}}
    return {"info": info, "parts": _parts(text)}


FORMS: dict[str, Form] = {
    "claude-code": _dialect,
    "cline": _cline,
    "codex": _codex,
    "copilot": _copilot,
    "gemini": _gemini,
    "kilo": _open,
    "opencode": _open,
    "pi": _pi,
    "qwen": _qwen,
}
_NOTHING_BUT_TEXT = frozenset({"kilo", "opencode"})


class ClientSession:
    """A session of one client in a project, with its hooks and its conversation."""

    def __init__(self, name: str, home: Path, top: Path) -> None:
        self.name, self.top = name, top
        self.ident = str(uuid.uuid4())
        self._form = FORMS[name]
        self._said: list[Record] = [self._head()] if self._head() else []
        self._commands = self._installed(home)
        folder = home / "conversations" / self.ident
        if name == "copilot":
            folder = home / ".copilot" / "session-state" / self.ident
        elif name == "cline":
            folder = home / ".cline" / "data" / "sessions" / self.ident
        folder.mkdir(parents=True)
        self.transcript = folder / "events.jsonl"
        if name == "cline":
            self.transcript = folder / f"{self.ident}.messages.json"
            about = {"session_id": self.ident, "cwd": str(top)}
            (folder / f"{self.ident}.json").write_text(json.dumps(about))

    def _head(self) -> Record | None:
        if self.name == "codex":
            payload = {"id": self.ident, "cwd": str(self.top), "source": "exec"}
            return {"timestamp": _AT, "type": "session_meta", "payload": payload}
        if self.name == "copilot":
            data = {"sessionId": self.ident, "context": {"cwd": str(self.top)}}
            return {"type": "session.start", "id": "0", "timestamp": _AT, "data": data}
        if self.name == "gemini":
            digest = hashlib.sha256(os.fsencode(self.top)).hexdigest()
            return {"sessionId": self.ident, "projectHash": digest, "kind": "main"}
        if self.name == "pi":
            about = {"version": 3, "timestamp": _AT, "cwd": str(self.top)}
            return {"type": "session", "id": self.ident, **about}
        return None

    def _installed(self, home: Path) -> dict[str, tuple[str, str]]:
        """Returns the hook and the command for each meaning."""
        client = registry.client(self.name)
        places = ClientPlaces(self.top, home, os.environ)
        found: dict[str, tuple[str, str]] = {}
        for file in script_files.hook_files(client):
            text = file.settings(SCOPES[0], places).read_bytes()
            for command in script_files.commands(file, text):
                named = re.search(rf" hook {re.escape(self.name)} ([\w.]+)", command)
                if named is None:
                    continue
                event = client.event(named[1], self._payload(named[1]), os.environ)
                if event is not None:
                    found.setdefault(event.what, (named[1], command))
        return found

    def speak(self) -> None:
        """Adds a turn of about 10 KB, as the client writes it down before its hook."""
        for role, word in (("user", "please "), ("assistant", "indeed ")):
            self._said.append(self._form(role, word * 700, uuid.uuid4().hex))
        if self.name == "qwen":
            for one in self._said[-2:]:
                one |= {"sessionId": self.ident, "cwd": str(self.top)}
        if self.name == "copilot":
            data = {"hookType": "agentStop"}
            self._said.append({"type": "hook.start", "id": "h", "data": data})
        if self.name == "cline":
            self.transcript.write_text(json.dumps({"messages": self._said}))
        elif self.name not in _NOTHING_BUT_TEXT:
            lines = (json.dumps(one) + "\n" for one in self._said)
            self.transcript.write_text("".join(lines))

    def _payload(self, hook: str) -> Record:
        ids = ("session_id", "sessionId", "conversation_id")
        hooks = ("hook_event_name", "hookEventName", "event_type")
        common: Record = {
            **dict.fromkeys(ids, self.ident),
            **dict.fromkeys(hooks, hook),
            "cwd": str(self.top),
            "workspaceRoots": [str(self.top)],
            "sessionContext": {"rootSessionId": self.ident},
            "prompt": "please",
            "tool": "list",
            "tool_name": "list",
            "tool_input": {"path": "."},
        }
        if hasattr(self, "transcript"):
            common["transcript_path"] = str(self.transcript)
        if self.name in _NOTHING_BUT_TEXT:
            about = {"id": self.ident, "directory": str(self.top)}
            common["session"] = json.dumps(about)
            common["messages"] = [json.dumps(one) for one in self._said]
        return common

    def fire(self, what: str) -> None:
        """Runs a hook as the client does."""
        hook, command = self._commands[what]
        subprocess.run(
            ["/bin/sh", "-c", command],
            input=json.dumps(self._payload(hook)).encode(),
            cwd=self.top,
            stdout=subprocess.DEVNULL,
            check=True,
        )

    def begin(self) -> None:
        """Runs the hook before a prompt."""
        self.fire(triggers.TURN_START)

    def after_tool(self) -> None:
        """Runs the hook after a tool."""
        self.fire(triggers.TOOL)

    def end(self) -> None:
        """Runs the hook at the end of a turn."""
        self.fire(triggers.TURN_END)
