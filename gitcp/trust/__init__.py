"""What a stranger's checkpoint may bring, and whom the user trusts."""
