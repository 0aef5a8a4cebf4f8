"""Git's hooks: what they do, where they lie, and how gitcp joins them."""
