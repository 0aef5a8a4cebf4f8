"""Finding words in what was said, decided and written: `gitcp search`."""
