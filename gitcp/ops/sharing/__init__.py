"""Pushing, pulling, exporting, importing, and what guards them."""
