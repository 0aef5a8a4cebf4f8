"""Looking after the store: checking, measuring, repairing, making room."""
