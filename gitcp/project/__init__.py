"""The user's project: its work tree, its settings, what waits for the next checkpoint."""
