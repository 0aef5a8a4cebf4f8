"""One module for each agent: what its records mean. None knows another."""
