"""Keeps checkpoints out of the refs that the user's own `git fetch` offers to a remote.

git offers the tip of each ref: with 500 sessions that is some 550 lines in each fetch.
From git 2.55 on, a remote's setting names the refs to offer.
"""

from gitcp.git.repository import Repository

SINCE = (2, 55)


def restrict(repository: Repository) -> list[str]:
    """Limits the offered refs to branches and tags; returns the changed remotes.

    A remote that already has the setting keeps it.
    """
    changed = []
    for remote in _remotes(repository):
        if not _values(repository, remote):
            for pattern in _patterns(remote):
                repository.git("config", "--local", "--add", _key(remote), pattern)
            changed.append(remote)
    return changed


def release(repository: Repository) -> list[str]:
    """Removes the setting if it is as `restrict` wrote it; returns the remotes."""
    changed = []
    for remote in _remotes(repository):
        if _values(repository, remote) == _patterns(remote):
            repository.git("config", "--local", "--unset-all", _key(remote))
            changed.append(remote)
    return changed


def _key(remote: str) -> str:
    return f"remote.{remote}.negotiationRestrict"


def _patterns(remote: str) -> list[str]:
    return ["refs/heads/*", "refs/tags/*", f"refs/remotes/{remote}/*"]


def _remotes(repository: Repository) -> list[str]:
    return repository.git("remote").decode("utf-8", "surrogateescape").splitlines()


def _values(repository: Repository, remote: str) -> list[str]:
    return repository.config.get(_key(remote).lower(), [])
