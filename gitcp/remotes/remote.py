"""The interface of a remote, as push and pull use it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from gitcp.errors import TransferError
from gitcp.git.remote import Advertised, Answer, Update
from gitcp.git.transport import Limits, Look


class Remote(Protocol):
    """A remote that sessions are pushed to and pulled from.

    One request names up to `named` sessions; None is the usual number. `lists_all` says
    whether one request returns all refs, no matter how many there are.
    """

    named: int | None
    lists_all: bool

    def advertised(self, prefixes: Sequence[str]) -> Advertised:
        """Returns the remote's refs below some prefixes.

        Raises:
            TransferError: the remote cannot be reached.
        """

    def why_not(self, ref: str) -> TransferError | None:
        """Returns why the repository of a ref did not answer when it was last asked."""

    def silent(self) -> Sequence[str]:
        """Returns why repositories that may have sessions did not answer."""

    def project(self, tips: Iterable[str]) -> frozenset[str]:
        """Returns commits of the project that need not be sent, even without a ref there."""

    def send(
        self,
        updates: Sequence[Update],
        *,
        replaces: bool = False,
        elsewhere: Collection[str] = (),
    ) -> Mapping[str, Answer]:
        """Moves refs, each only if it has the expected value; returns the remote's answers.

        `elsewhere` are commits of the project that its readers have from a git remote, in
        addition to those that `project` returned.

        Raises:
            TransferError: the remote cannot be reached, or the connection broke.
        """

    def fetch_into(
        self,
        objects: Path,
        wanted: Sequence[str],
        *,
        near: Sequence[str],
        limits: Limits,
        look: Look | None,
    ) -> None:
        """Fetches commits into a directory of objects that borrows the repository's.

        Raises:
            TransferError: the remote exceeded a limit.
            RefusedError: the transfer was interrupted, or git refuses the objects.
        """
