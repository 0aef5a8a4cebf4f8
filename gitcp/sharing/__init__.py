"""Validation, scanning and encryption of data exchanged with remotes."""
