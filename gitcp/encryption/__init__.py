"""Encrypts checkpoints so that only their recipients can read them (docs/format)."""
