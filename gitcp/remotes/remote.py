"""A remote by its address: a git repository, or an object store."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from gitcp.git import remote as git_remote
from gitcp.git import store_address
from gitcp.git.remote import Advertised, Answer, Update
from gitcp.git.repository import Repository
from gitcp.git.transport import Limits, Look, Told
from gitcp.remotes.object_store import ObjectStore, open_place


class Patience(NamedTuple):
    """How a transfer is carried out: its limits, who hears of it, who can be asked."""

    limits: Limits
    progress: Told | None = None
    interactive: bool = False


class Remote(Protocol):
    """What sessions are pushed to and pulled from."""

    def advertised(self, prefixes: Sequence[str]) -> Advertised:
        """Returns its refs below some prefixes.

        Raises:
            TransferError: it cannot be reached.
        """

    def project(self, tips: Iterable[str]) -> frozenset[str]:
        """Returns commits of the project that need not be sent, though it has no ref of them."""

    def send(
        self, updates: Sequence[Update], *, replaces: bool = False
    ) -> Mapping[str, Answer]:
        """Moves refs, each only if it is where it is expected to be; returns what was said.

        Raises:
            TransferError: it cannot be reached, or broke off.
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
            TransferError: the remote did not keep within the limits.
            RefusedError: the transfer broke off, or git refuses the objects.
        """


class GitRemote:
    """A git repository, reached by git."""

    def __init__(
        self, repository: Repository, name: str, address: str, patience: Patience
    ) -> None:
        """Takes the remote's name, or its URL, and the address that a push goes to."""
        self._repository = repository
        self._name = name
        self._address = address
        self._patience = patience

    def advertised(self, prefixes: Sequence[str]) -> Advertised:
        """Asks git for the refs."""
        return git_remote.advertised(
            self._repository,
            self._name,
            prefixes,
            address=self._address,
            limits=self._patience.limits,
            interactive=self._patience.interactive,
        )

    def project(self, tips: Iterable[str]) -> frozenset[str]:
        """Returns none: its own branches tell."""
        del tips
        return frozenset()

    def send(
        self, updates: Sequence[Update], *, replaces: bool = False
    ) -> Mapping[str, Answer]:
        """Has git push."""
        return git_remote.send(
            self._repository,
            self._address,
            updates,
            limits=self._patience.limits,
            replaces=replaces,
            progress=self._patience.progress,
            interactive=self._patience.interactive,
        )

    def fetch_into(
        self,
        objects: Path,
        wanted: Sequence[str],
        *,
        near: Sequence[str],
        limits: Limits,
        look: Look | None,
    ) -> None:
        """Has git fetch."""
        git_remote.fetch_into(
            self._repository,
            objects,
            self._name,
            wanted,
            near=near,
            limits=limits,
            progress=self._patience.progress,
            look=look,
            interactive=self._patience.interactive,
        )


def at(
    repository: Repository, name: str, patience: Patience, *, address: str | None = None
) -> Remote:
    """Returns the remote of a name, or at a URL; at another `address` of it if need be."""
    url = git_remote.address_of(repository, address or name)
    if store_address.is_store(url):
        place = open_place(url, patience.limits)
        return ObjectStore(repository, place, url, patience.progress)
    return GitRemote(repository, name, address or name, patience)
