"""The store: appends, reads and walks checkpoints; keeps the invariants of docs/format.md."""
