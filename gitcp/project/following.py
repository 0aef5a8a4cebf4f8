"""Follows changes of the settings while a program keeps a repository open."""

import os

from gitcp.git.repository import Repository
from gitcp.project.settings import VARIABLES, Settings

_NAMES = tuple(VARIABLES.values())


class Following:
    """The settings of a repository that a program keeps open, as they are now."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._read: tuple[dict[str, list[str]], list[str | None], Settings] | None
        self._read = None

    def now(self) -> Settings:
        """Returns the settings in force; takes in what was changed since the last call.

        Waits for refs follow `lockTimeout`.

        Raises:
            UsageError: a value makes no sense.
            GitFailedError: git cannot read its configuration.
            UnsupportedRepositoryError: gitcp does not serve the repository any more.
        """
        repository = self._repository
        repository.reread()
        environ = os.environ
        # Most are missing, and `get` raises and catches an error for each of those.
        given = [environ[name] if name in environ else None for name in _NAMES]  # noqa: SIM401
        read = self._read
        if read is None or read[0] is not repository.config or read[1] != given:
            settings = Settings.of(repository)
            repository.wait_for_locks(settings.lock_timeout)
            read = self._read = repository.config, given, settings
        return read[2]
