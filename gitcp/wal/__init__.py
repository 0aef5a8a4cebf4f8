"""The write-ahead log: acknowledged first, drained into git soon after."""
