"""A proxy for the Agent Client Protocol, between any editor and any agent."""
