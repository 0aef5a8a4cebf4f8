"""What a checkpoint made elsewhere may bring, and which remotes the user trusts."""
