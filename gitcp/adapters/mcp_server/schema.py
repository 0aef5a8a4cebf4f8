"""Describes the tools to clients, briefly: every request of a model holds each word of it."""

from typing import Any, NamedTuple

_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_ID = {"type": "string", "description": "number such as 12, or label, or last"}
_KINDS = ("decision", "tried", "fact", "task", "next", "note", "bug")
_WHAT = ("changes", "patch", "talk", "reasons", "file")
_PARTS = ("files", "talk", "both")


class ToolSchema(NamedTuple):
    """One tool: its name, what it says of itself, and its parameters."""

    name: str
    description: str
    properties: dict[str, Any]
    required: tuple[str, ...] = ()
    reads_only: bool = True
    destroys: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of its parameters."""
        made: dict[str, Any] = {"type": "object", "properties": self.properties}
        if self.required:
            made["required"] = list(self.required)
        return made


def _one_of(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


TOOLS = (
    ToolSchema(
        "checkpoint",
        "Save all project files with decisions, dead ends (tried) and next steps."
        " Do it when something works and before something risky.",
        {
            "note": _TEXT,
            "label": _TEXT,
            "decisions": _TEXTS,
            "tried": _TEXTS,
            "next": _TEXTS,
        },
        ("note",),
        reads_only=False,
    ),
    ToolSchema(
        "timeline",
        "List checkpoints, newest first; with query, find words in prompts,"
        " conversation, decisions, notes and files.",
        {"query": _TEXT, "session": _TEXT, "limit": {"type": "integer"}},
    ),
    ToolSchema(
        "inspect",
        "Show a checkpoint: changed paths, patch, conversation, reasons, or one"
        " file. Long answers end with the offset to continue from.",
        {
            "id": _ID,
            "what": _one_of(*_WHAT),
            "path": _TEXT,
            "offset": {"type": "integer"},
        },
        ("id",),
    ),
    ToolSchema(
        "plan_restore",
        "Show what restoring would change; returns the plan handle that restore takes.",
        {"id": _ID, "paths": _TEXTS, "parts": _one_of(*_PARTS)},
        ("id",),
    ),
    ToolSchema(
        "restore",
        "Carry out a plan after the user agreed to it. The present state is saved first."
        " Refused if files changed since the plan.",
        {"plan": _TEXT},
        ("plan",),
        reads_only=False,
        destroys=True,
    ),
    ToolSchema(
        "decide",
        "Record a decision, dead end, fact or next step; the next checkpoint holds it.",
        {"text": _TEXT, "why": _TEXT, "kind": _one_of(*_KINDS), "path": _TEXT},
        ("text",),
        reads_only=False,
    ),
    ToolSchema(
        "why",
        "Show which turn wrote a file's lines, with its prompt and decisions.",
        {"path": _TEXT, "line": {"type": "integer"}},
        ("path",),
    ),
)
