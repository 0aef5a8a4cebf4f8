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
    """Something was required and there was nothing to do, or the answer was no."""

    code = "nothing-to-do"
    exit_status = 1


class UsageError(GitcpError):
    """The request makes no sense as it stands."""

    code = "usage"
    exit_status = 2


class PartialError(GitcpError):
    """Done, but something was left out; `left` lists it."""

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
    """There is no program of a name; the exit status is a shell's."""

    exit_status = 127


class ProgramNotRunnableError(NotFoundError):
    """A program is there and cannot be executed; the exit status is a shell's."""

    exit_status = 126


class AmbiguousError(GitcpError):
    """A selector fits more than one checkpoint, or a name more than one step."""

    code = "ambiguous"
    exit_status = 14


class CorruptError(GitcpError):
    """Stored data is missing or is not what its id says."""

    code = "corrupt"
    exit_status = 15


class FormatTooNewError(GitcpError):
    """Written by a newer gitcp."""

    code = "format-too-new"
    exit_status = 16


class UnsupportedRepositoryError(GitcpError):
    """A kind of repository gitcp cannot keep its promises in."""

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
    """A path that must not be written."""

    code = "unsafe-path"
    exit_status = 19


class GitFailedError(GitcpError):
    """The git executable failed."""

    code = "git-failed"
    exit_status = 20


class GitTimeoutError(GitFailedError):
    """The git executable took longer than it was given, and was killed."""


class GitStoppedError(GitTimeoutError):
    """The git executable was killed, as another process asked for what it used."""


class StorageError(GitcpError):
    """The disk or the file system refused: full, read-only, input/output error."""

    code = "storage"
    exit_status = 20


class TransferError(GitcpError):
    """Moving a session between repositories or files failed."""

    code = "transfer"
    exit_status = 21


class SpoolFullError(TransferError):
    """What waits for a remote takes as much as it may."""


class AgentRecordError(GitcpError):
    """Messages or a transcript that cannot be read."""

    code = "agent-record"
    exit_status = 22


class ConfirmationError(GitcpError):
    """Confirmation is required, and there is no terminal to ask at."""

    code = "confirmation-needed"
    exit_status = 23


class EffectsStandError(ConfirmationError):
    """Steps reached beyond the project since the checkpoint; the user has to decide."""

    code = "effects-stand"

    def __init__(self, message: str, *, steps: Sequence[str], hint: str) -> None:
        super().__init__(message, hint=hint)
        self.steps = tuple(steps)


class StepUnknownError(ConfirmationError):
    """A step was interrupted: whether it took effect is unknown until the user says.

    `slot` is the step's scope, name and call, where one answer settles it.
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
    """A step was called again with other arguments than the recorded ones."""

    code = "step-changed"


class StepLoopError(UsageError):
    """The same step with the same arguments began too often."""

    code = "step-loop"


class StepTimeoutError(BusyError, TimeoutError):
    """A step took longer than it may."""

    code = "step-timeout"


class CompensationError(PartialError):
    """A step cannot be undone; those after it are, those before it are not."""

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
    """An earlier restore was interrupted, and has to be finished or taken back first."""

    code = "restore-interrupted"
    exit_status = 25


class EncryptionError(GitcpError):
    """Encrypting or decrypting what is shared cannot be done as asked."""

    code = "encryption"
    exit_status = 26


class NoKeyError(EncryptionError):
    """None of the keys here opens what is encrypted."""

    code = "no-key"


class PlaintextError(EncryptionError):
    """There is plaintext, or would be, where there has to be ciphertext."""

    code = "plaintext"
