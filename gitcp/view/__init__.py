"""A session as a page for the browser: built, scanned for secrets, written, served."""
