"""Maintains the store: verify, repair, lost refs, gc, prune, disk usage."""
