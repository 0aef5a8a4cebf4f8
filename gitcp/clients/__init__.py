"""What each coding agent writes and reads: one module each, and none knows another."""
