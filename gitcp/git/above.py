"""Lists the commits that some tips reach and others do not."""

from collections.abc import Iterable, Sequence

from gitcp.git.libgit import LibgitObjects
from gitcp.git.repository import Repository


def commits_above(
    repository: Repository, tips: Iterable[str], known: Iterable[str]
) -> list[str]:
    """Returns the commits that the tips reach, but the existing ones among `known` do not.

    The oldest are first, and each comes after its parents.

    Raises:
        GitFailedError: a commit cannot be read.
    """
    exists = repository.objects.exists
    wanted = sorted(set(tips))
    if not wanted:
        return []
    hidden = [oid for oid in sorted(set(known)) if exists(bytes.fromhex(oid))]
    if isinstance(repository.objects, LibgitObjects):
        found = repository.objects.walk(wanted, hidden)
        if found is not None:
            return found
    lines = "".join(f"{oid}\n" for oid in [*wanted, *(f"^{oid}" for oid in hidden)])
    out = repository.git(
        *("rev-list", "--topo-order", "--reverse", "--stdin"), data=lines.encode()
    )
    return out.decode("ascii").split()


def stands_on(repository: Repository, commits: Sequence[str]) -> set[str]:
    """Returns the parents of some commits that are not among these commits.

    Raises:
        CorruptError: a commit cannot be read.
    """
    read = repository.objects.commit
    parents = {
        parent.hex() for oid in commits for parent in read(bytes.fromhex(oid)).parents
    }
    return parents - set(commits)
