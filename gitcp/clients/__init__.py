"""What each coding agent writes and reads: one module per agent; none knows another."""
