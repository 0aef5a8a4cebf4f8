"""An agent as gitcp sees it: a transcript that grows, and hooks that are called."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

from gitcp.agents import hook_events
from gitcp.clients import registry
from gitcp.project.workspace import open_workspace
from gitcp.store.checkpoint import Checkpoint


class Agent:
    """A session of Claude Code, without the client."""

    def __init__(self, top: Path, config: Path, ident: str | None = None) -> None:
        self.top = top
        self.ident = ident or str(uuid.uuid4())
        self.transcript = config / "projects" / "x" / f"{self.ident}.jsonl"
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        self.turns = 0

    def write(self, raw: bytes) -> None:
        """Adds bytes to the transcript."""
        with self.transcript.open("ab") as file:
            file.write(raw)

    def record(self, kind: str, **more: Any) -> dict[str, Any]:
        """Adds a record to the transcript."""
        record = {"type": kind, "sessionId": self.ident, **more}
        self.write(json.dumps(record).encode() + b"\n")
        return record

    def spoke(self, role: str, text: str, **more: Any) -> dict[str, Any]:
        """Adds a message."""
        return self.record(
            role,
            uuid=str(uuid.uuid4()),
            cwd=str(self.top),
            message={"role": role, "content": [{"type": "text", "text": text}]},
            **more,
        )

    def payload(self, hook: str, **more: Any) -> bytes:
        """What the client would send."""
        fields = {
            "session_id": self.ident,
            "transcript_path": str(self.transcript),
            "cwd": str(self.top),
            "hook_event_name": hook,
            **more,
        }
        return json.dumps(fields).encode()

    def hook(self, hook: str, **more: Any) -> Checkpoint | None:
        """Calls a hook in this process; returns the checkpoint it made."""
        client = registry.client("claude-code")
        event = hook_events.read_event(
            client, hook, self.payload(hook, **more), os.environ
        )
        if event is None:
            return None
        return hook_events.handle(hook_events.workspace_of(event), client, event)

    def told(
        self, text: str, hook: str = "UserPromptSubmit", **more: str
    ) -> str | None:
        """What its hook would answer to a prompt; changes nothing."""
        client = registry.client("claude-code")
        raw = self.payload(hook, prompt=text, **more)
        event = hook_events.read_event(client, hook, raw, os.environ)
        assert event is not None
        workspace = hook_events.workspace_of(event)
        return hook_events.overtaken(workspace, client, event) or hook_events.reminded(
            workspace, client, event
        )

    def ask(self, text: str) -> Checkpoint | None:
        """A prompt arrives: the hook first, then the record."""
        self.turns += 1
        prompt = f"{self.ident}-p{self.turns}"
        made = self.hook("UserPromptSubmit", prompt=text, prompt_id=prompt)
        self.asked = self.spoke("user", text, promptId=prompt)
        return made

    def about_to_run(self, command: str) -> Checkpoint | None:
        """The hook before a command of the shell."""
        return self.hook(
            "PreToolUse", tool_name="Bash", tool_input={"command": command}
        )

    def answer(self, text: str) -> Checkpoint | None:
        """The turn ends, and then some bookkeeping."""
        self.spoke("assistant", text)
        made = self.hook("Stop", last_assistant_message=text)
        self.record("system", subtype="stop_hook_summary")
        return made

    def turn(self, text: str, **files: str) -> Checkpoint | None:
        """A whole turn that writes files; returns the checkpoint at its end."""
        self.ask(text)
        for name, content in files.items():
            (self.top / name).write_text(content)
        return self.answer(f"done: {text}")

    def line(self) -> list[Checkpoint]:
        """Its checkpoints, oldest first."""
        store = open_workspace(self.top).store
        tip = store.tip(f"claude-code-{self.ident[:8]}", "main")
        return list(store.line(tip))[::-1] if tip else []
