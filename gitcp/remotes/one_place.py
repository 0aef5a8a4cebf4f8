"""The base of remotes at a single address, as opposed to a pattern over many repositories."""

from collections.abc import Sequence

from gitcp.errors import TransferError


class OnePlace:
    """A remote that answers as a whole, or not at all."""

    named: int | None = None

    def why_not(self, ref: str) -> TransferError | None:
        """Returns None: the remote answered, or the whole request failed."""
        del ref
        return None

    def silent(self) -> Sequence[str]:
        """Returns nothing, for the same reason."""
        return ()
