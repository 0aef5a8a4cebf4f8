"""The rules that find secrets, and the policy for outgoing objects."""
