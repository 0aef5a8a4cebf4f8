"""The verbs everybody uses: save, restore, fork, diff, select, show."""
