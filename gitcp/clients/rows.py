"""The table of clients: `table` describes its columns."""

from gitcp.clients import triggers
from gitcp.clients.plugin_file import PluginFile
from gitcp.clients.script_files import ScriptFiles
from gitcp.clients.table import (
    Row,
    TableClient,
    flat_context,
    plain_text,
    told_with_a_prompt,
    untold,
)

# Claude Code's events, which most clients now have.
_DIALECT = {
    "SessionStart": triggers.SESSION_START,
    "UserPromptSubmit": triggers.TURN_START,
    "PreToolUse": triggers.BEFORE_COMMAND,
    "PostToolUse": triggers.TOOL,
    "Stop": triggers.TURN_END,
    "PreCompact": triggers.COMPACT,
    "SessionEnd": triggers.SESSION_END,
}


def _without(event: str) -> dict[str, str]:
    """Returns the dialect of a client that lacks an event."""
    return {name: meant for name, meant in _DIALECT.items() if name != event}


COPILOT = Row(
    name="copilot",
    title="Copilot CLI",
    # Only for these names, not for `sessionStart` etc., it sends Claude Code's fields.
    meanings=_DIALECT,
    folder=".copilot",
    folder_variable="COPILOT_HOME",
    files={"user": "hooks/gitcp.json", "project": ".github/hooks/gitcp.json"},
    conversations="gitcp.clients.copilot_events",
    resuming=("copilot", "--resume"),
    grouped=False,
    timeout_name="timeoutSec",
    head={"version": 1},
    # VS Code reads the same files, and names the session otherwise.
    required=("hook_event_name", "session_id"),
    project_variable="COPILOT_PROJECT_DIR",
    told=flat_context,
)

QWEN = Row(
    name="qwen",
    title="Qwen Code",
    meanings={**_DIALECT, "StopFailure": triggers.TURN_END},
    folder=".qwen",
    folder_variable="QWEN_HOME",
    files={"user": "settings.json", "project": ".qwen/settings.json"},
    conversations="gitcp.clients.qwen_chats",
    resuming=("qwen", "--resume"),
    timeout=30_000,
    shell_tool="run_shell_command",
    project_variable="QWEN_PROJECT_DIR",
)

PI = Row(
    name="pi",
    title="Pi",
    # The events for which gitcp's extension calls gitcp, under Pi's names.
    meanings={
        "session_start": triggers.SESSION_START,
        "before_agent_start": triggers.TURN_START,
        "tool_call": triggers.BEFORE_COMMAND,
        "tool_result": triggers.TOOL,
        "agent_end": triggers.TURN_END,
        "session_before_compact": triggers.COMPACT,
        "session_shutdown": triggers.SESSION_END,
    },
    folder=".pi/agent",
    folder_variable="PI_CODING_AGENT_DIR",
    files={"user": "extensions/gitcp.ts", "project": ".pi/extensions/gitcp.ts"},
    conversations="gitcp.clients.pi_sessions",
    resuming=("pi", "--session"),
    told=plain_text,
)

CLINE = Row(
    name="cline",
    title="Cline CLI",
    # It has no event for the begin or end of a session, or before a compaction.
    meanings={
        "TaskStart": triggers.TURN_START,
        "TaskResume": triggers.TURN_START,
        "PreToolUse": triggers.BEFORE_COMMAND,
        "PostToolUse": triggers.TOOL,
        "TaskComplete": triggers.TURN_END,
        "TaskCancel": triggers.TURN_END,
        "TaskError": triggers.TURN_END,
    },
    folder=".cline",
    folder_variable="CLINE_DIR",
    files={"user": "hooks/TaskStart.sh"},
    conversations="gitcp.clients.cline_sessions",
    resuming=("cline", "--id"),
    session="sessionContext.rootSessionId",
    cwd="workspaceRoots.0",
    tool="postToolUse.toolName",
    given="tool_call.input",
    final_text="turn.outputText",
    required=("sessionContext", "workspaceRoots"),
    told=untold,
)

DROID = Row(
    name="droid",
    title="Droid",
    meanings=_DIALECT,
    folder=".factory",
    files={
        "user": "settings.json",
        "project": ".factory/settings.json",
        "local": ".factory/settings.local.json",
    },
    conversations="gitcp.clients.droid_sessions",
    shell_tool="Execute",
    project_variable="FACTORY_PROJECT_DIR",
    notes=(
        (
            "a restore brings back the files, and the conversation as text; Droid cannot"
            " continue it"
        ),
    ),
)
OPENHANDS = Row(
    name="openhands",
    title="OpenHands",
    meanings=_without("PreCompact"),
    folder=".openhands",
    files={"user": "hooks.json", "project": ".openhands/hooks.json"},
    conversations="gitcp.clients.hook_words",
    # Its editor tool has a `command`, too, but not a shell command.
    shell_tool="terminal|execute_bash",
    session="session_id",
    cwd="working_dir",
    prompt="message",
    required=("event_type", "session_id"),
    project_variable="OPENHANDS_PROJECT_DIR",
    told=told_with_a_prompt,
    notes=(
        "a project's .openhands/hooks.json replaces yours",
        (
            "gitcp saves the part of its conversations that the hooks show; a"
            " restore brings back the files, and the conversation as text"
        ),
    ),
)
VSCODE = Row(
    name="vscode",
    title="VS Code",
    meanings=_without("SessionEnd"),
    folder=".copilot",
    files={
        "user": "hooks/gitcp-vscode.json",
        "project": ".github/hooks/gitcp-vscode.json",
    },
    conversations="gitcp.clients.hook_words",
    grouped=False,
    shell_tool=None,
    session="sessionId",
    # Copilot CLI reads the same files, and names the session otherwise.
    required=("hookEventName", "sessionId"),
    notes=(
        (
            "gitcp saves the part of its chats that the hooks show; a restore"
            " brings back the files, and the chat as text"
        ),
    ),
)


class Pi(PluginFile, TableClient):
    """Pi, whose hooks are an extension of ours."""

    source = "pi_extension.js"


class Cline(ScriptFiles, TableClient):
    """Cline CLI, which calls a script for each event."""

    suffix = ".sh"


TABLE: dict[str, TableClient] = {
    **{row.name: TableClient(row) for row in (COPILOT, DROID, OPENHANDS, QWEN, VSCODE)},
    "cline": Cline(CLINE),
    "pi": Pi(PI),
}
