"""Maintenance of the store: verify, repair, disk usage, gc, prune."""
