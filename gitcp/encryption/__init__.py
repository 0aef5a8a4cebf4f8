"""Checkpoints that only their recipients can open (docs/format)."""
