"""Finds which objects in gitcp's packs git, or anything else, still reaches."""

import os
from collections.abc import Iterable
from contextlib import suppress

from gitcp.errors import GitFailedError
from gitcp.format.commit import WHO
from gitcp.git import promised
from gitcp.git.objects import COMMIT
from gitcp.git.repository import Repository

_INCOMPLETE = ["--missing=allow-any", "--ignore-missing"]


class Reachable:
    """Finds the reachable objects in gitcp's packs."""

    def __init__(self, repository: Repository, mine: set[bytes]) -> None:
        self._repository = repository
        self._mine = mine
        self.keep: set[bytes] = set()
        # For pack-objects, with the paths by which it searches for deltas.
        self.lines: list[bytes] = []

    def from_roots(self, roots: Iterable[str]) -> None:
        """Adds the objects that git reaches, and those that `roots` reach.

        Raises:
            GitFailedError: git cannot walk.
            BusyError: refs were moved to another storage meanwhile.
        """
        every = ["--all", "--reflog", "--indexed-objects"]
        if promised.remotes(self._repository.config):
            # An object that a partial clone leaves at its remote is not missing.
            every.append("--missing=allow-promisor")
        given = list(roots)
        kept = self._repository.refs
        try:
            self._add(self._walk(every, given))
        except GitFailedError:
            # A missing blob hides nothing; a missing tree or commit fails this walk, too.
            self._walk([*every, "--filter=blob:none", "--quiet"], given)
            self._add(self._walk([*every, "--missing=allow-any"], given))
        # While `git refs migrate` is at work, git may see few refs, or none.
        kept.storage.check()
        loose = _loose(self._repository)
        if loose:
            # Loose objects need not be complete.
            self._add(self._walk_what_is_there(loose))

    def only_from(self, commits: Iterable[str]) -> set[bytes]:
        """Returns the objects that some commits reach and nothing else does."""
        # A killed purge has removed some of them.
        return self.from_commits(commits) & self.unreached()

    def unreached(self) -> set[bytes]:
        """Returns the objects that nothing reaches."""
        return self._mine - self.keep

    def from_commits(self, commits: Iterable[str]) -> set[bytes]:
        """Returns the existing objects that some commits reach, in any pack."""
        given = list(commits)
        return (
            {_oid(line) for line in self._walk_what_is_there(given)} if given else set()
        )

    def own_commits(self) -> set[bytes]:
        """Returns gitcp's own commits that nothing reaches: git never relies on those.

        They would look like a branch that has lost its ref.
        """
        listed = self._repository.plumbing(
            "cat-file",
            "--batch-check=%(objecttype) %(objectname)",
            "--buffer",
            data=b"".join(
                f"{oid.hex()}\n".encode() for oid in sorted(self.unreached())
            ),
        )
        commits = [word for word in listed.splitlines() if word.startswith(b"commit ")]
        if not commits:
            return set()
        ours = self._repository.plumbing(
            "rev-list",
            "--no-walk=unsorted",
            f"--committer=^{WHO.decode()}",
            "--stdin",
            data=b"".join(line[7:] + b"\n" for line in commits),
        )
        return {_oid(line) for line in ours.splitlines()}

    def _add(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            oid = _oid(line)
            if oid in self._mine and oid not in self.keep:
                self.keep.add(oid)
                self.lines.append(line)

    def _walk_what_is_there(self, given: list[str]) -> list[bytes]:
        try:
            return self._walk(_INCOMPLETE, given)
        except GitFailedError:
            # Older gits end at a commit whose parent is missing.
            there = self._ancestors(given)
            return self._walk([*_INCOMPLETE, "--no-walk=unsorted"], there)

    def _ancestors(self, given: list[str]) -> list[str]:
        """Returns those of some objects and their ancestors that are there."""
        objects = self._repository.objects
        left = [bytes.fromhex(oid) for oid in given]
        seen = set(left)
        found = []
        while left:
            oid = left.pop()
            if not objects.exists(oid):
                continue
            found.append(oid.hex())
            if objects.header(oid)[0] == COMMIT:
                parents = set(objects.commit(oid).parents)
                left += parents - seen
                seen |= parents
        return found

    def _walk(self, options: list[str], given: Iterable[str]) -> list[bytes]:
        listed = self._repository.plumbing(
            "rev-list",
            "--objects",
            *options,
            "--stdin",
            data="".join(f"{oid}\n" for oid in given).encode(),
        )
        return listed.splitlines(keepends=True)


def _oid(line: bytes) -> bytes:
    return bytes.fromhex(line.split(maxsplit=1)[0].decode("ascii"))


def _loose(repository: Repository) -> list[str]:
    """Returns the loose commits and trees: what they name may lie in our packs only."""
    objects = repository.common_dir / "objects"
    found = []
    for directory in objects.glob("[0-9a-f][0-9a-f]"):
        # git removes a directory together with the last object in it.
        with suppress(FileNotFoundError):
            found += [
                directory.name + name
                for name in os.listdir(directory)
                if len(name) == repository.form.digits - 2
            ]
    if not found:
        return []
    listed = repository.plumbing(
        "cat-file",
        "--batch-check=%(objecttype) %(objectname)",
        "--buffer",
        data="".join(f"{oid}\n" for oid in found).encode(),
    )
    pairs = (line.split() for line in listed.decode("ascii", "replace").splitlines())
    return [oid for kind, oid in pairs if kind in {"commit", "tree"}]
