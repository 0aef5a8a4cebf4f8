"""Checkpoints between repositories: push, pull, bundles."""
