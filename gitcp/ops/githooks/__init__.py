"""What git's hooks do, and what is behind a commit."""
