"""Scans outgoing objects and blocks or reports secrets, per `gitcp.secrets`."""

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gitcp.errors import (
    CorruptError,
    GitFailedError,
    SecretsFoundError,
    UsageError,
)
from gitcp.git.repository import Repository
from gitcp.project.workspace import Workspace
from gitcp.secrets import cache, dotenv, outgoing, scanner
from gitcp.secrets.cache import Clean
from gitcp.secrets.findings import Finding, Progress, ScanReport, Unreadable, look
from gitcp.secrets.library import library
from gitcp.secrets.outgoing import Piece
from gitcp.secrets.scanner import Scanner

BLOCK, WARN, OFF = "block", "warn", "off"
_FINGERPRINT = 12
_NAMED = 3


class Checked(NamedTuple):
    """The result of scanning outgoing objects.

    `findings` block the push, or pass by the setting; `allowed` pass by their fingerprints.
    """

    findings: tuple[Finding, ...]
    allowed: tuple[Finding, ...]
    scanned: int


def scan(
    workspace: Workspace,
    tips: Iterable[str],
    *,
    known: Iterable[str] = (),
    remote: str | None = None,
    allow: Sequence[str] = (),
    progress: Progress | None = None,
    unreadable: Unreadable | None = None,
) -> Checked:
    """Scans all objects that the tips reach and the remote lacks.

    Calls `unreadable` for objects that cannot be read, and scans the rest.

    Raises:
        UsageError: a value of `allow` is not a fingerprint.
        CorruptError, GitFailedError: an object cannot be read, and `unreadable` is not given.
    """
    allowed = allowed_by(workspace, allow)
    repository = workspace.repository
    known = tuple(known)
    tips = tuple(tips)
    try:
        chosen = outgoing.commits(repository, tips, known, remote)
    except GitFailedError:
        if unreadable is None:
            raise
        chosen = _readable(repository, tips, known, remote, unreadable)
    report: ScanReport = look(
        repository,
        lambda: scanner_of(workspace),
        lambda made: Clean(repository, made.identity),
        pieces(workspace, chosen, unreadable),
        progress,
        unreadable,
    )
    return Checked(
        tuple(one for one in report.findings if one.fingerprint not in allowed),
        tuple(one for one in report.findings if one.fingerprint in allowed),
        report.scanned,
    )


def allowed_by(workspace: Workspace, allow: Sequence[str]) -> set[str]:
    """Returns the allowed fingerprints, from the arguments and the settings.

    Raises:
        UsageError: a value is not a fingerprint.
    """
    return {*map(_checked, allow), *workspace.settings.sharing.allow_secrets}


def _readable(
    repository: Repository,
    tips: Iterable[str],
    known: Sequence[str],
    remote: str | None,
    unreadable: Unreadable,
) -> list[str]:
    """Returns the commits of the tips whose whole history git can read."""
    found: dict[str, None] = {}
    for tip in tips:
        try:
            found |= dict.fromkeys(outgoing.commits(repository, [tip], known, remote))
        except GitFailedError as exc:
            unreadable(tip, exc)
    return list(found)


def pieces(
    workspace: Workspace,
    chosen: Sequence[str],
    unreadable: Unreadable | None = None,
) -> Iterator[Piece]:
    """Yields the pieces of commits, as `outgoing.pieces` does.

    Raises:
        TransferError: a commit came from elsewhere and exceeds the size limit.
        CorruptError: a commit cannot be read, and `unreadable` is not given.
    """
    for commit in chosen:
        try:
            found = workspace.store.checkpoint(commit)
            if found is not None:
                found.refuse_if_vast()
            yield from outgoing.pieces(workspace.repository, [commit])
        except CorruptError as exc:
            if unreadable is None:
                raise
            unreadable(commit, exc)


class Gate:
    """Scans outgoing objects, and refuses or reports those with secrets.

    `findings` has the secrets found; `allowed` has those that pass by their fingerprints.
    """

    def __init__(
        self, allow: Sequence[str] = (), *, progress: Progress | None = None
    ) -> None:
        self._allow = tuple(map(_checked, allow))
        self._progress = progress
        self.findings: list[Finding] = []
        self.allowed: list[Finding] = []

    def look(
        self,
        workspace: Workspace,
        tips: Sequence[str],
        doing: str,
        *,
        known: Iterable[str] = (),
        remote: str | None = None,
    ) -> None:
        """Scans all objects that the tips reach and the remote lacks.

        Raises:
            SecretsFoundError: they hold secrets, and the setting is `block`.
        """
        mode = workspace.settings.sharing.secrets
        if mode == OFF or not tips:
            return
        checked = scan(
            workspace,
            tips,
            known=known,
            remote=remote,
            allow=self._allow,
            progress=self._progress,
        )
        # Several addresses of a remote may lack the same object.
        self.allowed += [one for one in checked.allowed if one not in self.allowed]
        self.findings += [one for one in checked.findings if one not in self.findings]
        if mode == BLOCK:
            refuse(checked, doing)


def scanner_of(workspace: Workspace) -> Scanner:
    """Returns the scanner for a project, with all available layers."""
    wanted = workspace.settings.sharing.secrets_library
    rules_dir = workspace.repository.store_dir / cache.DIRECTORY / "rules"
    extra = library(rules_dir) if wanted else None
    return Scanner(
        cache.fingerprints(workspace.repository),
        None if workspace.bare else dotenv.of_project(workspace.top),
        environment=dotenv.of_environment(os.environ),
        extra=extra,
        extra_version=extra.version if extra is not None else "",
    )


def refuse(checked: Checked, doing: str, instead: str = "") -> None:
    """Raises if a secret was found; the hint begins with `instead`, another way out.

    Raises:
        SecretsFoundError: a secret was found.
    """
    if not checked.findings:
        return
    names = [one.fingerprint for one in checked.findings]
    known = [one.fingerprint for one in checked.findings if one.rule != scanner.UNREAD]
    count = "a secret" if len(names) == 1 else f"{len(names)} secrets"
    held = f"it holds {count}" if known else "some of it takes too long to scan"
    taken = f"{known[0]}` takes one" if known else "PATH` takes a file"
    shown = " ".join(names[:_NAMED])
    raise SecretsFoundError(
        f"{doing} was refused: {held}",
        findings=checked.findings,
        hint=f"{instead}`gitcp purge {taken} out of all checkpoints;"
        f" if it is none: --allow {shown.replace(' ', ' --allow ')}",
    )


def _checked(fingerprint: str) -> str:
    if len(fingerprint) != _FINGERPRINT or not all(
        char in "0123456789abcdef" for char in fingerprint
    ):
        raise UsageError(
            f"{fingerprint!a} is not a fingerprint",
            hint="copy one from a refused push: 12 digits and letters from a to f",
        )
    return fingerprint
