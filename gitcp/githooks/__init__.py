"""Git's hooks: where they lie, and how to join those that are there."""
