"""One module for each verb a user knows, built on store and worktree."""
