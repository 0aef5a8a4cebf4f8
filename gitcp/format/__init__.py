"""What is on disk: pure data and bytes. No input or output, no clock."""
