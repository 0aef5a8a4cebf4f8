"""Adapters: gitcp as the store of other frameworks."""
