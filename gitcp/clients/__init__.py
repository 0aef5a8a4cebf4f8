"""The files and hooks of each coding agent: one module per agent; none knows another."""
