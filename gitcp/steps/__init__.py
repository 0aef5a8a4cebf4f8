"""Durable steps: run once, remembered, taken back where that can be done."""
