"""The format on disk, as pure functions between data and bytes: no I/O, no clock."""
