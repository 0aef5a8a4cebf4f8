"""What leaves this machine and what comes to it."""
