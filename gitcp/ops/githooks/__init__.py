"""What git's hooks do, and which checkpoints led to a commit."""
