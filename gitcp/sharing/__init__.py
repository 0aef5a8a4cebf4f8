"""What may come from a stranger, and what may go to one."""
