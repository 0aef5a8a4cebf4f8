"""Follows changes of the settings while a program keeps a repository open."""

import os

from gitcp.git.repository import Repository
from gitcp.project.settings import VARIABLES, Settings

_NAMES = tuple(VARIABLES.values())


class Following:
    """The present settings of a repository that a program keeps open."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._read: tuple[dict[str, list[str]], list[str | None], Settings] | None
        self._read = None

    def now(self) -> Settings:
        """Returns the settings in force, with all changes since the last call.

        Waits for locks of refs follow `lockTimeout`, too.

        Raises:
            UsageError: a value makes no sense.
            GitFailedError: git cannot read its configuration.
            UnsupportedRepositoryError: gitcp does not serve the repository any more.
        """
        repository = self._repository
        repository.reread()
        environ = os.environ
        # Most variables are missing, and `get` raises and catches an error for each of them.
        given = [environ[name] if name in environ else None for name in _NAMES]  # noqa: SIM401
        read = self._read
        if read is None or read[0] is not repository.config or read[1] != given:
            settings = Settings.of(repository)
            repository.wait_for_locks(settings.lock_timeout)
            read = self._read = repository.config, given, settings
        return read[2]
