"""What a secret looks like, and the policy for what may leave."""
