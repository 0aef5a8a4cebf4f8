"""Durable steps: run once, remembered, undone if possible."""
