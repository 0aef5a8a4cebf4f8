"""Exports a session to one file, a git bundle, and imports it after validation."""

import os
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp import durable
from gitcp.encryption.quarantine import Quarantine
from gitcp.errors import (
    GitFailedError,
    TransferError,
    UsageError,
    WouldOverwriteError,
)
from gitcp.format import layout
from gitcp.format.layout import BranchKey, RefKey
from gitcp.format.numbers import ELSEWHERE
from gitcp.git import remote as remotes
from gitcp.git.other_form import OtherFormError
from gitcp.git.transaction import transaction
from gitcp.git.transport import Limits
from gitcp.project.workspace import Workspace
from gitcp.secrets.outgoing import ANY
from gitcp.secrets.policy import Gate
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.numbering import number_all
from gitcp.sync import ledgers
from gitcp.sync.adopt import adopt, copy
from gitcp.sync.import_objects import (
    bounds_of,
    limits_of,
    our_tips,
    refusal,
    validate,
)
from gitcp.sync.outcome import Outcome

_SUFFIX = "import"


class Exported(NamedTuple):
    """The file, its size in bytes, and the branches in it."""

    path: Path
    size: int
    branches: tuple[str, ...]


def export(
    workspace: Workspace,
    chosen: Checkpoint,
    path: Path,
    *,
    force: bool = False,
    gate: Gate | None = None,
) -> Exported:
    """Writes all branches of a checkpoint's session to a git bundle.

    The file stands by itself: it holds the project's own history below the session,
    too, as far as a remote had it when the session began. What no remote has is looked
    through first, as a push does it: the default gate refuses secrets as the settings say.

    Raises:
        WouldOverwriteError: the file is there, and `force` was not given.
        UsageError: what is there is no file, as a device, or the directory is missing.
        SecretsFoundError: it would hold secrets; nothing was written.
        TransferError: it cannot be written.
    """
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is not a regular file", hint="name another file")
    if path.exists() and not force:
        raise WouldOverwriteError(
            f"{path} exists already",
            paths=[str(path)],
            hint="name another file, or add --force",
        )
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent} is not a directory", hint="create it first")
    session = chosen.session
    tips = workspace.store.refs_of(session)
    steps = ledgers.of(workspace, session)
    gate = gate or Gate()
    leaving = [*tips.values(), *steps.values()]
    gate.look(workspace, leaving, f"the export to {path}", remote=ANY)
    aside = path.absolute().with_name(f".{path.name[:100]}.{secrets.token_hex(4)}")
    try:
        try:
            _bundle(workspace, aside, tips | steps)
        except GitFailedError as exc:
            raise TransferError(
                f"{session} cannot be exported: {exc.message}",
                hint="`gitcp verify` tells whether it is sound",
            ) from exc
        with durable.storage(f"writing {path}"):
            with aside.open("rb") as file:
                os.fsync(file.fileno())
            aside.replace(path)
            durable.sync_directory(path.absolute().parent)
            size = path.stat().st_size
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)
            aside.with_name(aside.name + ".lock").unlink(missing_ok=True)
    names = [workspace.store.names(key, oid)[1] for key, oid in tips.items()]
    return Exported(path, size, tuple(sorted(names)))


def _bundle(workspace: Workspace, path: Path, tips: Mapping[RefKey, str]) -> None:
    """Bundles these very commits: git itself would read the refs again, and move on."""
    refs = {key.ref: oid for key, oid in tips.items()}
    repository = workspace.repository
    with transaction(repository) as txn:
        beside = Quarantine(
            txn, "export", bounds_of(workspace.settings.sharing)
        ).repository(refs)
        shallow = repository.common_dir / "shallow"
        if shallow.exists():
            shutil.copy(shallow, beside.git_dir / "shallow")
        beside.git("bundle", "create", "-q", str(path), *refs)


def take_in(workspace: Workspace, path: Path) -> list[Outcome]:
    """Adopts the branches in a file that `export` wrote.

    Everything in it is checked first, in a repository beside ours; if anything is
    wrong, nothing is adopted. A branch that is here already is fast-forwarded; where
    both grew, theirs becomes a fork. Nothing is overwritten. The ledger of its steps is
    among them, first, with an empty branch.

    Raises:
        TransferError: it is no such file, or git refuses what is in it.
        CorruptError: a checkpoint in it is damaged or inconsistent.
        UnsafePathError: it holds a path that must not be written.
    """
    if not path.is_file():
        raise UsageError(
            f"{path} is not a file", hint="name a file that `gitcp export` wrote"
        )
    source = str(path.absolute())
    tips = _tips(workspace, path, source)

    def fetch(quarantine: Quarantine, limits: Limits) -> None:
        remotes.fetch_into(
            workspace.repository,
            quarantine.objects,
            source,
            sorted(set(tips.values())),
            near=(),
            limits=limits,
            look=quarantine.growth,
        )

    with transaction(workspace.repository) as txn:
        ours = our_tips(workspace, tips)
        validated = validate(workspace, txn, tips, ours, fetch)
        if validated.bad:
            raise refusal(str(path), validated.bad)
        copy(txn, validated.theirs.repository, tips.values(), ours)
        branches = {key: oid for key, oid in tips.items() if isinstance(key, BranchKey)}
        done = ledgers.take_over(workspace, ledgers.among(tips), branches) + [
            adopt(workspace.store, txn, key, oid, suffix=_SUFFIX)
            for key, oid in sorted(branches.items())
        ]
    number_all(workspace.store, place=ELSEWHERE)
    return done


def _tips(workspace: Workspace, path: Path, source: str) -> dict[RefKey, str]:
    """Returns the branches and the ledgers that a bundle says it has."""
    try:
        listed = remotes.bundled(
            workspace.repository, source, limits_of(workspace.settings.sharing)
        )
    except OtherFormError:
        raise
    except TransferError as exc:
        raise TransferError(
            f"{path} cannot be imported: {exc.message}",
            hint="nothing was adopted; export it again, and compare checksums",
        ) from exc
    tips: dict[RefKey, str] = {}
    for line in listed.decode("utf-8", "surrogateescape").splitlines():
        oid, _, ref = line.partition(" ")
        key = layout.ref_key(ref)
        if key is not None:
            tips[key] = oid
    if not any(isinstance(key, BranchKey) for key in tips):
        raise TransferError(
            f"{path} holds no session",
            hint="`gitcp export SEL -o FILE` writes a file that does",
        )
    return tips
