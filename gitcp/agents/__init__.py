"""File formats and hooks of coding agents: one module each, independent of the others."""
