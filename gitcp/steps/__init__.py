"""Durable steps: run once, recorded, undone if possible."""
