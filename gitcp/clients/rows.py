"""The table of clients: see `table` for what its columns mean."""

from gitcp.clients import triggers
from gitcp.clients.table import Row, TableClient, flat_context

COPILOT = Row(
    name="copilot",
    title="Copilot CLI",
    program="copilot",
    # Under these names, and not under `sessionStart` and the like, it sends Claude Code's fields.
    meanings={
        "SessionStart": triggers.SESSION_START,
        "UserPromptSubmit": triggers.TURN_START,
        "PreToolUse": triggers.BEFORE_COMMAND,
        "PostToolUse": triggers.TOOL,
        "Stop": triggers.TURN_END,
        "PreCompact": triggers.COMPACT,
        "SessionEnd": triggers.SESSION_END,
    },
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

TABLE = {row.name: TableClient(row) for row in (COPILOT,)}
