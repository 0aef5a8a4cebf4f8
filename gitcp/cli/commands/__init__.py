"""The commands: one module for each verb, which parses, calls a feature, and prints."""
