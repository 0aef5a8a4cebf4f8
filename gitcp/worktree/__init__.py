"""Files on disk: scan, capture, plan, apply, journal."""
