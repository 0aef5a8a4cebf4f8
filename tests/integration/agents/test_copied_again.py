"""A restored conversation that goes on is stored as its client has it, and is restored again."""

from __future__ import annotations

import json
import os
import uuid
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from gitcp.agents import hook_events
from gitcp.agents.resume import place
from gitcp.clients import registry
from gitcp.clients.client import StoredConversation
from gitcp.store.checkpoint import Checkpoint
from tests.support.inprocess import invoke, ok

# For each client: where it keeps a conversation, and the names of its hooks.
PLACES = {
    "codex": ".codex/sessions/2026/11/27/rollout-2026-11-27T00-00-00-{}.jsonl",
    "copilot": ".copilot/session-state/{}/events.jsonl",
    "gemini": ".gemini/tmp/repo/chats/session-2026-11-27T00-00-{}.jsonl",
}
HOOKS = {
    "codex": ("UserPromptSubmit", "Stop"),
    "copilot": ("UserPromptSubmit", "Stop"),
    "gemini": ("BeforeAgent", "AfterAgent"),
}


class Client:
    """A conversation of a client that names it only at the beginning of its file."""

    def __init__(self, name: str, top: Path, ident: str, file: Path) -> None:
        self.name, self.top, self.ident, self.file = name, top, ident, file
        if not file.exists():
            file.parent.mkdir(parents=True)
            self.add(self.header())

    def add(self, record: dict[str, Any]) -> None:
        with self.file.open("ab") as file:
            file.write(json.dumps(record).encode() + b"\n")

    def header(self) -> dict[str, Any]:
        if self.name == "codex":
            payload = {"id": self.ident, "cwd": str(self.top), "source": "cli"}
            return {"type": "session_meta", "payload": payload}
        if self.name == "copilot":
            begun = {"sessionId": self.ident, "context": {"cwd": str(self.top)}}
            return {"type": "session.start", "id": "1", "data": begun}
        project = sha256(os.fsencode(self.top)).hexdigest()
        return {"sessionId": self.ident, "projectHash": project, "kind": "main"}

    def said(self, role: str, text: str) -> dict[str, Any]:
        ident = str(uuid.uuid4())
        if self.name == "codex":
            content = [{"type": "input_text", "text": text}]
            payload = {"type": "message", "id": ident, "role": role, "content": content}
            return {"type": "response_item", "payload": payload}
        if self.name == "copilot":
            return {"type": f"{role}.message", "id": ident, "data": {"content": text}}
        kind = "user" if role == "user" else "gemini"
        return {"type": kind, "id": ident, "content": text}

    def hook(self, name: str, **more: Any) -> Checkpoint | None:
        payload = {
            "session_id": self.ident,
            "transcript_path": str(self.file),
            "cwd": str(self.top),
            "hook_event_name": name,
            **more,
        }
        client = registry.client(self.name)
        raw = json.dumps(payload).encode()
        event = hook_events.read_event(client, name, raw, os.environ)
        assert event is not None
        return hook_events.handle(hook_events.workspace_of(event), client, event)

    def turn(self, text: str) -> Checkpoint | None:
        begins, ends = HOOKS[self.name]
        self.hook(begins, prompt=text)
        self.add(self.said("user", text))
        self.add(self.said("assistant", f"{text}!"))
        if self.name == "copilot":
            stopping = {"hookType": "agentStop"}
            self.add({"type": "hook.start", "id": "h", "data": stopping})
        return self.hook(
            ends, last_assistant_message=f"{text}!", prompt_response=f"{text}!"
        )


def restored(repo: Path, sealed: Path, name: str, checkpoint: Checkpoint) -> Client:
    """The copy that a restore writes."""
    shown = ok(repo, "restore", checkpoint.id, "--yes")["resume"]
    ident = shown.split()[-1]
    part = ident[:8] if name == "gemini" else ident
    folder = sealed / PLACES[name].split("/")[0]
    (file,) = (path for path in folder.rglob("*.jsonl") if part in str(path))
    return Client(name, repo, ident, file)


@pytest.mark.parametrize("name", sorted(PLACES))
def test_a_copy_is_stored_as_it_is_and_copied_again(repo, sealed, name):
    ident = str(uuid.uuid4())
    part = ident[:8] if name == "gemini" else ident
    first = Client(name, repo, ident, sealed / PLACES[name].format(part))
    first.turn("one")
    made = first.turn("two")
    assert made is not None
    for text in ("three", "four"):
        copy = restored(repo, sealed, name, made)
        assert copy.ident.encode() in copy.file.read_bytes().splitlines()[0]
        number = ok(repo, "log")["checkpoints"][0]["number"]
        made = copy.turn(text)
        assert made is not None
        # The beginning of the turn had nothing new but the id of the copy.
        assert ok(repo, "log")["checkpoints"][0]["number"] == number + 1
        stored = invoke(repo, "messages", made.id, "--format", "jsonl").stdout
        assert stored == copy.file.read_bytes()


@pytest.mark.parametrize("name", sorted(PLACES))
def test_what_was_stored_with_the_id_of_another_copy_gets_a_new_one(repo, sealed, name):
    ident = str(uuid.uuid4())
    first = Client(name, repo, ident, sealed / PLACES[name].format(ident[:8]))
    first.add(first.said("user", "one"))
    first.add(first.said("assistant", "1"))
    kept = StoredConversation("of-a-copy", first.file.read_bytes(), {}, repo)
    written = registry.client(name).resume_files(kept, place(repo))
    assert written is not None
    ((_, content),) = (one for one in written.files if one[0].suffix == ".jsonl")
    begins = content.splitlines()[0]
    assert written.session.encode() in begins
    assert ident.encode() not in begins
