"""The user's project: its work tree, its settings, and data for the next checkpoint."""
