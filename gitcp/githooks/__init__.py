"""git's hooks: what they do, where they are, and how gitcp adds itself to them."""
