"""The user's files: scan, capture, plan, apply, journal."""
