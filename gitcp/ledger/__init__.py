"""The ledger of steps: an append-only log beside the checkpoints of a session."""
