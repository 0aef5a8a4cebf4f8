"""What each client writes, one record of each kind; and each with one field hostile."""

from __future__ import annotations

from typing import Any

SESSION = "11111111-2222-4333-8444-555555555555"
ID = "66666666-7777-4888-9999-aaaaaaaaaaaa"
TALK = [{"role": "user", "content": "hi"}]
TIME = "2026-01-01T00:00:00.000Z"
CLAUDE: list[dict[str, Any]] = [
    {"type": "permission-mode", "permissionMode": "bypassPermissions"},
    {
        "type": "user",
        "uuid": ID,
        "parentUuid": None,
        "promptId": "p",
        "sessionId": SESSION,
        "cwd": "/",
        "timestamp": TIME,
        "version": "2.1.0",
        "permissionMode": "bypassPermissions",
        "message": {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    },
    {
        "type": "assistant",
        "uuid": "b",
        "parentUuid": ID,
        "message": {
            "id": "m",
            "role": "assistant",
            "model": "m",
            "content": [
                {"type": "tool_use", "id": "t", "name": "Bash", "input": {"a": 1}}
            ],
            "usage": {"input_tokens": 1},
        },
    },
    {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "c",
        "parentUuid": "b",
        "compactMetadata": {"trigger": "auto", "preservedSegment": {"headUuid": "b"}},
    },
    {
        "type": "attachment",
        "uuid": "d",
        "parentUuid": "c",
        "attachment": {"type": "date", "date": "x"},
        "rendered": [{"content": "x"}],
        "renderedRole": "system",
    },
]
CODEX: list[dict[str, Any]] = [
    {
        "timestamp": TIME,
        "ordinal": 0,
        "type": "session_meta",
        "payload": {
            "id": SESSION,
            "cwd": "/",
            "cli_version": "0.1",
            "model_provider": "x",
            "forked_from_id": "y",
            "forked_from_ordinal_exclusive": 3,
        },
    },
    {
        "timestamp": TIME,
        "ordinal": 1,
        "type": "response_item",
        "payload": {
            "type": "message",
            "id": "m",
            "role": "user",
            "content": [{"type": "input_text", "text": "hi"}],
        },
    },
    {
        "type": "response_item",
        "payload": {
            "type": "function_call",
            "name": "x",
            "arguments": "{}",
            "call_id": "c",
        },
    },
    {"type": "turn_context", "payload": {"approval_policy": "never", "turn_id": "t"}},
    {
        "type": "event_msg",
        "payload": {
            "type": "item_completed",
            "item": {"type": "UserMessage", "id": "i", "content": []},
        },
    },
]
GEMINI: list[dict[str, Any]] = [
    {"sessionId": SESSION, "projectHash": "h", "startTime": TIME, "kind": "main"},
    {"id": "m", "timestamp": TIME, "type": "user", "content": [{"text": "hi"}]},
    {
        "$set": {
            "messages": [
                {
                    "id": "n",
                    "type": "gemini",
                    "content": "x",
                    "toolCalls": [
                        {"id": "t", "name": "x", "args": {}, "status": "success"}
                    ],
                }
            ],
            "directories": ["/"],
        }
    },
]
OPENCODE: list[dict[str, Any]] = [
    {
        "info": {
            "id": "msg_1fa46d6c6001rQWfzvhOc563Pj",
            "sessionID": "ses_e05b929d4ffe70dBQkiYKGgVRf",
            "role": "assistant",
            "parentID": "x",
            "time": {"created": 1},
            "path": {"cwd": "/", "root": "/"},
        },
        "parts": [
            {"type": "text", "text": "hi"},
            {
                "type": "tool",
                "tool": "bash",
                "callID": "c",
                "state": {"status": "completed", "input": {}, "output": "x"},
            },
            {"type": "file", "mime": "x/y", "url": "file:///etc/passwd"},
        ],
    }
]
DESCRIBED = {
    "id": "ses_e05b929d4ffe70dBQkiYKGgVRf",
    "title": "t",
    "directory": "/",
    "permission": [{"permission": "*", "pattern": "*", "action": "allow"}],
    "time": {"created": 1, "updated": 2},
    "version": "1",
    "share": {"url": "x"},
}
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    {"role": "assistant", "content": "x", "tool_calls": [{"id": "a", "function": {}}]},
]
CLIENTS: dict[str, list[dict[str, Any]]] = {
    "claude-code": CLAUDE,
    "codex": CODEX,
    "gemini": GEMINI,
    "opencode": OPENCODE,
    "cursor": [{"hook": "stop", "payload": {"conversation_id": "x"}}],
    "messages": MESSAGES,
}

_PLACED = {"timestamp": TIME, "parentId": None}
# Clients that are rows of the table.
ROWS: dict[str, list[dict[str, Any]]] = {
    "copilot": [
        {
            "type": "session.start",
            "id": "a",
            "data": {"sessionId": "old", "context": {"cwd": "/"}},
            **_PLACED,
        },
        {
            "type": "user.message",
            "id": "b",
            "data": {"content": "hi", "transformedContent": "hi", "messageId": "m"},
            **_PLACED,
        },
        {
            "type": "assistant.message",
            "id": "c",
            "data": {
                "messageId": "n",
                "originatingMessageId": "m",
                "model": "m",
                "content": "yes",
                "toolRequests": [
                    {"toolCallId": "t", "name": "bash", "arguments": {"command": "ls"}}
                ],
            },
            **_PLACED,
        },
        {
            "type": "tool.execution_complete",
            "id": "d",
            "data": {"toolCallId": "t", "success": True, "result": {"content": "a"}},
            **_PLACED,
        },
    ],
    "pi": [
        {"type": "session", "version": 3, "id": "old", "timestamp": TIME, "cwd": "/"},
        {
            "type": "message",
            "id": "b",
            "message": {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            **_PLACED,
        },
        {
            "type": "message",
            "id": "c",
            "message": {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "x", "thinkingSignature": "y"},
                    {
                        "type": "toolCall",
                        "id": "t",
                        "name": "ls",
                        "arguments": {"a": 1},
                    },
                ],
                "usage": {"input": 1, "cost": {"total": 0}},
                "stopReason": "toolUse",
                "timestamp": 1,
            },
            **_PLACED,
        },
        {
            "type": "message",
            "id": "d",
            "message": {"role": "toolResult", "toolCallId": "t", "content": "a"},
            **_PLACED,
        },
        {
            "type": "compaction",
            "id": "e",
            "summary": "so far",
            "firstKeptEntryId": "c",
            "tokensBefore": 9,
            **_PLACED,
        },
    ],
    "cline": [
        {
            "id": "a",
            "role": "user",
            "content": [{"type": "text", "text": "hi"}],
            "ts": 9,
        },
        {
            "id": "b",
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "t", "name": "ls", "input": {"a": 1}},
            ],
            "ts": 9,
        },
        {
            "id": "c",
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t",
                    "name": "ls",
                    "content": [{"query": "ls", "result": "a"}],
                    "is_error": False,
                }
            ],
            "ts": 9,
        },
    ],
    "qwen": [
        {
            "uuid": "a",
            "parentUuid": None,
            "sessionId": "old",
            "timestamp": TIME,
            "type": "user",
            "cwd": "/",
            "version": "1",
            "message": {"role": "user", "parts": [{"text": "hi"}]},
        },
        {
            "uuid": "b",
            "parentUuid": "a",
            "type": "assistant",
            "model": "m",
            "message": {
                "role": "model",
                "parts": [
                    {"functionCall": {"id": "t", "name": "ls", "args": {"a": 1}}},
                    {"inlineData": {"mimeType": "image/png", "data": "eA=="}},
                ],
            },
        },
        {
            "uuid": "c",
            "parentUuid": "b",
            "type": "tool_result",
            "message": {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "id": "t",
                            "name": "ls",
                            "response": {"output": "a"},
                        }
                    }
                ],
            },
        },
    ],
}
# Clients that gitcp reads, and hands nothing back to, and the proxy's own records.
OTHERS: dict[str, list[dict[str, Any]]] = {
    "acp": [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "t", "name": "shell", "input": {"a": 1}}
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": "a"}],
        },
    ],
    "droid": [
        {"type": "session_start", "id": "s", "cwd": "/"},
        {
            "type": "message",
            "id": "a",
            "message": {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        },
    ],
    "openhands": [
        {
            "type": "UserPromptSubmit",
            "cwd": "/",
            "ident": "a",
            "payload": {"message": "hi"},
            "message": {"role": "user", "content": "hi"},
        },
    ],
}
