"""From a coding agent's hook to a checkpoint, and from a checkpoint back to the agent."""
