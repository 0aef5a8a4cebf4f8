"""Git hooks: where they are, and how gitcp's lines get into existing ones."""
