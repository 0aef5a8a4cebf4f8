"""Exports a session to one file, a git bundle, and imports it after validation."""

import os
import secrets
import shutil
from collections.abc import Iterable, Mapping
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
from gitcp.format import layout, safety
from gitcp.format.layout import BranchKey, RefKey
from gitcp.format.numbers import ELSEWHERE
from gitcp.format.oid import ObjectFormat
from gitcp.git import other_form
from gitcp.git import remote as remotes
from gitcp.git.pack import PackWriter
from gitcp.git.remote import RefusedError
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction, transaction
from gitcp.git.transport import Limits
from gitcp.project.workspace import Workspace
from gitcp.secrets.outgoing import ANY
from gitcp.secrets.policy import Gate
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.numbering import number_all
from gitcp.sync import ledgers
from gitcp.sync.adopt import adopt, copy
from gitcp.sync.convert import SessionConverter
from gitcp.sync.import_objects import (
    MEMORY,
    Fetch,
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

    The file is complete: it also holds the project's own history below the session, as
    far as a remote had it when the session began. As before a push, what no remote has is
    scanned first: the default gate refuses secrets as the settings say.

    Raises:
        WouldOverwriteError: the file is there, and `force` was not given.
        UsageError: the path is not a regular file (a device, say), or its directory is
            missing.
        SecretsFoundError: the bundle would hold secrets; nothing was written.
        TransferError: the bundle cannot be written.
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
    """Bundles exactly these commits; git itself would read the refs, which may have moved."""
    refs = {key.ref: oid for key, oid in tips.items()}
    repository = workspace.repository
    _bring(repository, refs.values())
    with transaction(repository) as txn:
        beside = Quarantine(
            txn, "export", bounds_of(workspace.settings.sharing)
        ).repository(refs)
        shallow = repository.common_dir / "shallow"
        if shallow.exists():
            shutil.copy(shallow, beside.git_dir / "shallow")
        beside.git("bundle", "create", "-q", str(path), *refs)


def _bring(repository: Repository, tips: Iterable[str]) -> None:
    """Fetches the objects for the bundle that a partial clone has left at its remote.

    Raises:
        TransferError: no remote sends them.
    """
    # A directory that was missing may name others that are missing, too.
    for _ in range(safety.DEPTH_LIMIT if repository.objects.fetch else 0):
        listed = repository.git("rev-list", "--objects", "--missing=print", *tips)
        missing = [line[1:] for line in listed.splitlines() if line.startswith(b"?")]
        if not missing:
            return
        repository.objects.bring(bytes.fromhex(oid.decode()) for oid in missing)


class TakenIn(NamedTuple):
    """The outcomes of branches and ledgers; the form of ids that they were converted from."""

    outcomes: list[Outcome]
    converted_from: ObjectFormat | None


def take_in(workspace: Workspace, path: Path) -> TakenIn:
    """Adopts the branches in a file that `export` wrote.

    Everything in it is validated first, in quarantine; if anything is wrong, nothing is
    adopted. A branch that is here already is fast-forwarded; if the two diverged, theirs
    becomes a fork. Nothing is overwritten. The first outcome is that of the ledger of
    steps, with an empty branch. Objects with ids of another form are converted.

    Raises:
        UsageError: the path is not a file.
        TransferError: the file is not such a bundle, or git refuses its content.
        CorruptError: a checkpoint in it is damaged or inconsistent.
        UnsafePathError: the bundle holds a path that must not be written.
    """
    if not path.is_file():
        raise UsageError(
            f"{path} is not a file", hint="name a file that `gitcp export` wrote"
        )
    with durable.storage(f"reading {path}"):
        form = other_form.of_bundle(str(path))
    other = form if form is not workspace.repository.form else None
    with transaction(workspace.repository) as txn:
        if other is None:
            tips, fetch = _fetched(workspace, path)
        else:
            tips, fetch = _converted(workspace, txn, path, other)
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
    return TakenIn(done, other)


def _fetched(workspace: Workspace, path: Path) -> tuple[dict[RefKey, str], Fetch]:
    """Returns the tips in a file, and a function that fetches their objects."""
    repository = workspace.repository
    tips = _tips(workspace, repository, path)

    def fetch(quarantine: Quarantine, limits: Limits) -> None:
        _fetch(repository, quarantine, path, tips, limits)

    return tips, fetch


def _converted(
    workspace: Workspace, txn: Transaction, path: Path, form: ObjectFormat
) -> tuple[dict[RefKey, str], Fetch]:
    """Does the same as `_fetched`, for a file whose ids have another form."""
    settings = workspace.settings.sharing
    bounds = bounds_of(settings)
    apart = Quarantine(txn, "other-form", bounds, form)
    theirs = apart.repository({})
    tips = _tips(workspace, theirs, path)
    limits = limits_of(settings)._replace(file=bounds.size, memory=MEMORY)
    try:
        _fetch(theirs, apart, path, tips, limits)
    except RefusedError:
        apart.refuse_if_full()
        raise
    apart.growth()
    directory = txn.scratch / "converted"
    with durable.storage("converting the session"):
        directory.mkdir()
        pack = PackWriter(directory, workspace.repository.form)
        try:
            converter = SessionConverter(theirs, workspace.repository, pack, bounds)
            made = converter.tips(tips)
            written = pack.close()
        finally:
            pack.abandon()

    def fetch(quarantine: Quarantine, limits: Limits) -> None:  # noqa: ARG001
        if written is not None:
            *files, name = written
            with durable.storage("converting the session"):
                for file, suffix in zip(files, (".pack", ".idx"), strict=True):
                    file.rename(quarantine.objects / "pack" / f"{name}{suffix}")

    return made, fetch


def _fetch(
    repository: Repository,
    quarantine: Quarantine,
    path: Path,
    tips: Mapping[RefKey, str],
    limits: Limits,
) -> None:
    remotes.fetch_into(
        repository,
        quarantine.objects,
        str(path.absolute()),
        sorted(set(tips.values())),
        near=(),
        limits=limits,
        look=quarantine.growth,
    )


def _tips(
    workspace: Workspace, repository: Repository, path: Path
) -> dict[RefKey, str]:
    """Returns the branches and the ledgers that a bundle says it has."""
    limits = limits_of(workspace.settings.sharing)
    try:
        listed = remotes.bundled(repository, str(path.absolute()), limits)
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
