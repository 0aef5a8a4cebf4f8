"""Push for a fleet: one process sends what all clones on this machine have for a remote."""
