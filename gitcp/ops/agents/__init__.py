"""Checkpoints from coding agents, and conversations back to them."""
