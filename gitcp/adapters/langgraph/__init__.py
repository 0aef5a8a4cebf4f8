"""A checkpointer for LangGraph: threads as sessions, in git. Needs `gitcp[langgraph]`."""

from gitcp.adapters.langgraph.classes import BlockedClassError
from gitcp.adapters.langgraph.removal import DeltaChainError
from gitcp.adapters.langgraph.saver import GitcpSaver

__all__ = ["BlockedClassError", "DeltaChainError", "GitcpSaver"]
