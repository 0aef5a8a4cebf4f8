"""Every deliberate failure: a stable code, an exit status, and a way out.

The message names the thing and the cause; the hint names the way out.
"""

from collections.abc import Sequence
from typing import Any, ClassVar


class GitcpError(Exception):
    """Base of everything gitcp raises on purpose."""

    code: ClassVar[str] = "error"
    exit_status: ClassVar[int] = 70
    transient: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if hint is not None:
            # A traceback shows it as well; the command line prints it by itself.
            self.add_note(hint)


class NothingToDoError(GitcpError):
    """There was nothing to do where something was required, or the answer was no."""

    code = "nothing-to-do"
    exit_status = 1


class UsageError(GitcpError):
    """The command or call is not valid."""

    code = "usage"
    exit_status = 2


class PartialError(GitcpError):
    """Done in part; `left` lists what was left out."""

    code = "partial"
    exit_status = 3

    def __init__(
        self, message: str, *, left: Sequence[str] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.left = tuple(left)


class NotARepositoryError(GitcpError):
    """There is no git repository here."""

    code = "no-repository"
    exit_status = 10


class NoGitHereError(NotARepositoryError):
    """Neither a directory nor one above it has anything of git's: it may get a private store."""


class UnsureFolderError(NotARepositoryError):
    """A folder may or may not be the one that a private store was made for.

    `store` names the store, `folder` is the path.
    """

    def __init__(self, message: str, *, store: str, folder: str, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.store = store
        self.folder = folder


class BusyError(GitcpError):
    """Another process holds the lock."""

    code = "locked"
    exit_status = 11
    transient = True


class BranchMovedError(GitcpError):
    """The branch is no longer where it was expected."""

    code = "branch-moved"
    exit_status = 12
    transient = True


class NotFoundError(GitcpError):
    """No such session, branch, checkpoint or path."""

    code = "not-found"
    exit_status = 13


class ProgramNotFoundError(NotFoundError):
    """There is no such program; the exit status is the one a shell gives."""

    exit_status = 127


class ProgramNotRunnableError(NotFoundError):
    """The program cannot be executed; the exit status is the one a shell gives."""

    exit_status = 126


class AmbiguousError(GitcpError):
    """A selector matches more than one checkpoint, or a name more than one step."""

    code = "ambiguous"
    exit_status = 14


class CorruptError(GitcpError):
    """Stored data is missing or does not match its id."""

    code = "corrupt"
    exit_status = 15


class FormatTooNewError(GitcpError):
    """Written by a newer gitcp."""

    code = "format-too-new"
    exit_status = 16


class UnsupportedRepositoryError(GitcpError):
    """A kind of repository that gitcp does not support."""

    code = "unsupported"
    exit_status = 17


class WouldOverwriteError(GitcpError):
    """Content that no checkpoint holds is in the way."""

    code = "would-overwrite"
    exit_status = 18

    def __init__(self, message: str, *, paths: Sequence[str], hint: str) -> None:
        super().__init__(message, hint=hint)
        self.paths = tuple(paths)


class UnsafePathError(GitcpError):
    """A path must not be written."""

    code = "unsafe-path"
    exit_status = 19


class GitFailedError(GitcpError):
    """The git executable failed."""

    code = "git-failed"
    exit_status = 20


class GitTimeoutError(GitFailedError):
    """The git executable exceeded its time limit and was killed."""


class GitStoppedError(GitTimeoutError):
    """The git executable was killed because another process needed what it used."""


class GitUnseenError(GitFailedError):
    """The git executable saw no repository, and has done nothing."""


class StorageError(GitcpError):
    """The disk or the file system refused: full, read-only, input/output error."""

    code = "storage"
    exit_status = 20


class TransferError(GitcpError):
    """Moving a session between repositories or files failed."""

    code = "transfer"
    exit_status = 21


class SpoolFullError(TransferError):
    """What is queued for a remote has reached its size limit."""


class AgentRecordError(GitcpError):
    """Messages or a transcript cannot be read."""

    code = "agent-record"
    exit_status = 22


class ConfirmationError(GitcpError):
    """Confirmation is required, and there is no terminal to ask at."""

    code = "confirmation-needed"
    exit_status = 23


class EffectsStandError(ConfirmationError):
    """Steps reached outside the project since the checkpoint; the user has to decide."""

    code = "effects-stand"

    def __init__(self, message: str, *, steps: Sequence[str], hint: str) -> None:
        super().__init__(message, hint=hint)
        self.steps = tuple(steps)


class StepUnknownError(ConfirmationError):
    """A step was interrupted, and the user has to say whether it took effect.

    `slot` is the step's scope, name and call, if one answer resolves it.
    """

    code = "step-unknown"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        slot: tuple[str, str, str] | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.slot = slot


class StepChangedError(UsageError):
    """A step was called again with arguments that differ from the recorded ones."""

    code = "step-changed"


class StepLoopError(UsageError):
    """The same step was started too often with the same arguments."""

    code = "step-loop"


class StepTimeoutError(BusyError, TimeoutError):
    """A step exceeded its time limit."""

    code = "step-timeout"


class CompensationError(PartialError):
    """A step cannot be undone; later steps were undone, earlier ones were not."""

    code = "compensation"


class SecretsFoundError(GitcpError):
    """Outgoing data holds secrets; `findings` names them, never their values."""

    code = "secrets-found"
    exit_status = 24

    def __init__(
        self, message: str, *, findings: Sequence[Any] = (), hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.findings = tuple(findings)


class RestoreInterruptedError(GitcpError):
    """An earlier restore was interrupted and has to be finished or aborted first."""

    code = "restore-interrupted"
    exit_status = 25


class EncryptionError(GitcpError):
    """Something cannot be encrypted or decrypted."""

    code = "encryption"
    exit_status = 26


class NoKeyError(EncryptionError):
    """None of the keys here decrypts it."""

    code = "no-key"


class PlaintextError(EncryptionError):
    """Something is or would be plaintext where ciphertext is required."""

    code = "plaintext"
