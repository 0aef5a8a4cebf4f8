"""Remotes that sessions are pushed to and pulled from: git's, and object stores."""
