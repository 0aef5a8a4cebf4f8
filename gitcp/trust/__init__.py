"""What a restore accepts from checkpoints made elsewhere, and which remotes the user trusts."""
