"""A checkpointer for LangGraph: threads as sessions, in git. Needs `gitcp[langgraph]`."""

from gitcp.adapters.langgraph.classes import BlockedClassError
from gitcp.adapters.langgraph.saver import DeltaChainError, GitcpSaver

__all__ = ["BlockedClassError", "DeltaChainError", "GitcpSaver"]
