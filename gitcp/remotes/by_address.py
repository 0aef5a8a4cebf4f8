"""Opens a remote by its address: a git repository, a pattern over many, or an object store."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from gitcp.git import remote as git_remote
from gitcp.git import shard_pattern, store_address
from gitcp.git.remote import Advertised, Answer, Update
from gitcp.git.repository import Repository
from gitcp.git.transport import Limits, Look, Told
from gitcp.remotes.object_store import ObjectStore, open_place
from gitcp.remotes.one_place import OnePlace
from gitcp.remotes.remote import Remote
from gitcp.remotes.shards import ShardedRemote


class Patience(NamedTuple):
    """How to transfer: limits, a callback for progress, and whether to ask the user."""

    limits: Limits
    progress: Told | None = None
    interactive: bool = False


class GitRemote(OnePlace):
    """A git repository, reached by git."""

    lists_all = True

    def __init__(
        self,
        repository: Repository,
        name: str,
        patience: Patience,
        *,
        asks: str,
        sends: str,
    ) -> None:
        """`name` is the remote, or its URL; `asks` is listed, and `sends` is pushed to."""
        self._repository = repository
        self._name = name
        self._patience = patience
        self._asks = asks
        self._sends = sends

    def advertised(self, prefixes: Sequence[str]) -> Advertised:
        """Asks git for the refs."""
        return git_remote.advertised(
            self._repository,
            self._name,
            prefixes,
            address=self._asks,
            limits=self._patience.limits,
            interactive=self._patience.interactive,
        )

    def project(self, tips: Iterable[str]) -> frozenset[str]:
        """Returns none: the branches that the remote advertises show what it has."""
        del tips
        return frozenset()

    def send(
        self,
        updates: Sequence[Update],
        *,
        replaces: bool = False,
        elsewhere: Collection[str] = (),
    ) -> Mapping[str, Answer]:
        """Makes git push; `elsewhere` is not needed, as for `project`."""
        del elsewhere
        return git_remote.send(
            self._repository,
            self._sends,
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
        """Makes git fetch."""
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
    repository: Repository,
    name: str,
    patience: Patience,
    *,
    address: str | None = None,
    alone: bool = True,
) -> Remote:
    """Returns the remote with a name or at a URL, to pull from; or to push to, at `address`.

    With `address`, its refs are listed there, because a fetch may use another address.
    `alone` says that a push by the remote's name goes to this address only.
    """
    asks = address or name
    if shard_pattern.parse(asks) is not None:
        return at_address(repository, asks, patience)
    url = git_remote.address_of(repository, asks)
    if store_address.is_store(url):
        return at_address(repository, url, patience)
    return GitRemote(
        repository, name, patience, asks=asks, sends=name if alone else asks
    )


def at_address(repository: Repository, address: str, patience: Patience) -> Remote:
    """Returns the remote at an address: a git repository, a pattern or an object store."""
    pattern = shard_pattern.parse(address)
    if pattern is None and store_address.is_store(address):
        place = open_place(address, patience.limits)
        return ObjectStore(repository, place, address, patience.progress)
    if pattern is None:
        return GitRemote(repository, address, patience, asks=address, sends=address)

    def one(where: str, interactive: bool) -> Remote:  # noqa: FBT001  an Opener
        patient = patience._replace(interactive=interactive)
        return GitRemote(repository, where, patient, asks=where, sends=where)

    return ShardedRemote(pattern, one, interactive=patience.interactive)
