"""The page of a session, to look at in a browser: built, looked through, written, served."""
