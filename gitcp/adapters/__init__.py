"""Other people's frameworks, each with what it asks of a store of its own."""
