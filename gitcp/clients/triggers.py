"""The triggers of checkpoints, one for each kind of agent hook."""

SESSION_START = "session-start"
TURN_START = "turn-start"
TURN_END = "turn-end"
TOOL = "tool"
# The agent is about to run a command.
BEFORE_COMMAND = "before-command"
COMPACT = "compact"
SUBAGENT_STOP = "subagent-stop"
SESSION_END = "session-end"
# A record to keep; no checkpoint is due.
RECORD_ONLY = "record-only"

# At these events a hook's output reaches the user and the agent, once a turn.
BEGINNINGS = frozenset({SESSION_START, TURN_START})
