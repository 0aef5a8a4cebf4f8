"""Keeps checkpoints out of the refs that the user's own `git fetch` offers to a remote.

git offers the tip of each ref: with 500 sessions that is some 550 lines in each fetch.
From git 2.55 on, a remote's setting names the refs to offer.
"""

from gitcp.git.repository import Repository

SINCE = (2, 55)


def restrict(repository: Repository) -> list[str]:
    """Limits the offered refs to branches; returns the changed remotes.

    A remote that already has the setting keeps it.
    """
    changed = []
    for remote in _remotes(repository):
        values = _values(repository, remote)
        if values == _earlier(remote):
            repository.git("config", "--local", "--unset-all", _key(remote))
            values = []
        if not values:
            for pattern in _patterns(remote):
                repository.git("config", "--local", "--add", _key(remote), pattern)
            changed.append(remote)
    return changed


def release(repository: Repository) -> list[str]:
    """Removes the setting if it is as `restrict` wrote it; returns the remotes."""
    changed = []
    for remote in _remotes(repository):
        if _values(repository, remote) in (_patterns(remote), _earlier(remote)):
            repository.git("config", "--local", "--unset-all", _key(remote))
            changed.append(remote)
    return changed


def _key(remote: str) -> str:
    return f"remote.{remote}.negotiationRestrict"


def _patterns(remote: str) -> list[str]:
    # Without refs/tags/*: git would warn at each fetch in a repository without tags.
    return ["refs/heads/*", f"refs/remotes/{remote}/*"]


def _earlier(remote: str) -> list[str]:
    """Returns the patterns that gitcp wrote before."""
    branches, tracked = _patterns(remote)
    return [branches, "refs/tags/*", tracked]


def _remotes(repository: Repository) -> list[str]:
    return repository.git("remote").decode("utf-8", "surrogateescape").splitlines()


def _values(repository: Repository, remote: str) -> list[str]:
    return repository.config.get(_key(remote).lower(), [])
