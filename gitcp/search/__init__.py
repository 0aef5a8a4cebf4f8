"""Finds words in conversations, decisions, notes and files: `gitcp search`."""
