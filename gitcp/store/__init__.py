"""Append, read, walk: the invariants of docs/format.md live here."""
