"""gitcp for the Claude Agent SDK (`pip install 'gitcp[claude]'`).

See docs/how-to/claude-agent-sdk.md.
"""

try:
    import claude_agent_sdk as _  # noqa: F401  to say what is missing, if it is
except ModuleNotFoundError as exc:
    if exc.name != "claude_agent_sdk":
        raise
    raise ModuleNotFoundError(
        "gitcp.adapters.claude_sdk needs the Claude Agent SDK:"
        " pip install 'gitcp[claude]'",
        name=exc.name,
    ) from exc

from gitcp.adapters.claude_sdk.hooks import checkpoint_hooks
from gitcp.adapters.claude_sdk.rewind import Rewound, rewind_files
from gitcp.adapters.claude_sdk.store import GitcpSessionStore

__all__ = ["GitcpSessionStore", "Rewound", "checkpoint_hooks", "rewind_files"]
