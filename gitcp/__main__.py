"""Runs the command line as `python -m gitcp`."""

from gitcp.cli import entry

if __name__ == "__main__":
    entry()
