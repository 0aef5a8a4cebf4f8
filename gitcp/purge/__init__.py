"""Removes a secret, or a path, from every checkpoint."""
