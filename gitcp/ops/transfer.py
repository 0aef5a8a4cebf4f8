"""A session in one file: git bundles out, and in after validation."""

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp import durable
from gitcp.errors import (
    CorruptError,
    GitFailedError,
    TransferError,
    UnsafePathError,
    UsageError,
    WouldOverwriteError,
)
from gitcp.format import layout
from gitcp.format.checkpoint import show_path
from gitcp.git import process
from gitcp.git.repository import Repository
from gitcp.git.transaction import STAGED_REF, Transaction, transaction
from gitcp.names import encode
from gitcp.ops.fork import fork_only
from gitcp.ops.verify import Problem, verify
from gitcp.ops.workspace import Workspace
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store

_SHOWN = 3
_EMPTY_PACK = 32
_CHECKED = (
    "-c",
    "fetch.fsckObjects=true",
    "-c",
    "transfer.fsckObjects=true",
    "-c",
    "fetch.writeCommitGraph=false",
)


class Exported(NamedTuple):
    """The file, its size in bytes, and the branches in it."""

    path: Path
    size: int
    branches: tuple[str, ...]


class Adopted(NamedTuple):
    """What became of one branch of a file.

    `result` is `created`, `fast-forward`, `up-to-date` or `forked`; `name` is the
    branch it is here; `commit` its tip.
    """

    session: str
    branch: str
    result: str
    name: str
    commit: str


def export(
    workspace: Workspace, chosen: Checkpoint, path: Path, *, force: bool = False
) -> Exported:
    """Writes all branches of a checkpoint's session to a git bundle.

    The file stands by itself: it holds the project's own history below the session,
    too, as far as a remote had it when the session began.

    Raises:
        WouldOverwriteError: the file is there, and `force` was not given.
        TransferError: it cannot be written.
    """
    if path.exists() and not force:
        raise WouldOverwriteError(
            f"{path} is there already",
            paths=[str(path)],
            hint="name another file, or add --force",
        )
    if not path.parent.is_dir():
        raise UsageError(f"{path.parent} is no directory", hint="make it first")
    session = chosen.session
    found = {
        key[1]: oid
        for key, oid in workspace.store.refs().items()
        if key[0] == encode(session)
    }
    refs = [f"{layout.session_prefix(session)}{component}" for component in found]
    aside = path.absolute().with_name(f".{path.name[:100]}.{secrets.token_hex(4)}")
    try:
        try:
            workspace.repository.git("bundle", "create", "-q", str(aside), *refs)
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
    names = [
        workspace.store.names((encode(session), component), oid)[1]
        for component, oid in found.items()
    ]
    return Exported(path, size, tuple(sorted(names)))


def take_in(workspace: Workspace, path: Path) -> list[Adopted]:
    """Adopts the branches in a file that `export` wrote.

    Everything in it is checked first, in a repository beside ours; if anything is
    wrong, nothing is adopted. A branch that is here already is fast-forwarded; where
    both grew, theirs becomes a fork. Nothing is overwritten.

    Raises:
        TransferError: it is no such file, or git refuses what is in it.
        CorruptError: a checkpoint in it is damaged or inconsistent.
        UnsafePathError: it holds a path that must not be written.
    """
    if not path.is_file():
        raise UsageError(f"{path} is no file", hint="name what `gitcp export` wrote")
    with transaction(workspace.repository) as opened:
        scratch = _fetched(workspace, opened, path.absolute())
        theirs = Store(scratch)
        _validate(theirs, path)
        tips = theirs.refs()
        _copy(workspace, opened, scratch, sorted(set(tips.values())))
        return [
            _adopt(workspace.store, opened, key, oid)
            for key, oid in sorted(tips.items())
        ]


def _fetched(workspace: Workspace, opened: Transaction, path: Path) -> Repository:
    """Fetches a bundle into a bare repository that borrows our objects."""
    directory = opened.scratch / "import"
    git_dir = f"--git-dir={directory}"
    shared = workspace.repository.common_dir
    try:
        process.run(
            ["init", "--bare", "--quiet", "--template=", str(directory)],
            cwd=opened.scratch,
        )
        info = directory / "objects" / "info"
        with durable.storage("preparing the import"):
            info.mkdir(exist_ok=True)
            alternates = os.fsencode(shared / "objects") + b"\n"
            (info / "alternates").write_bytes(alternates)
        process.run([git_dir, "bundle", "verify", "-q", str(path)], cwd=shared)
        process.run(
            [
                git_dir,
                *_CHECKED,
                "fetch",
                "--quiet",
                "--no-tags",
                "--no-write-fetch-head",
                str(path),
                f"+{layout.SESSIONS}*:{layout.SESSIONS}*",
            ],
            cwd=shared,
        )
    except GitFailedError as exc:
        raise TransferError(
            f"{path} cannot be imported: {exc.message}",
            hint="nothing was adopted; export it again, and compare checksums",
        ) from exc
    return Repository(git_dir=directory, common_dir=directory, config={})


def _validate(theirs: Store, path: Path) -> None:
    if not theirs.refs():
        raise TransferError(
            f"{path} holds no session",
            hint="`gitcp export SEL -o FILE` writes a file that does",
        )
    problems = verify(theirs).problems
    if not problems:
        return
    shown = "; ".join(map(_said, problems[:_SHOWN]))
    more = len(problems) - _SHOWN
    said = f"{path}: {shown}{f'; and {more} more' if more > 0 else ''}"
    hint = "nothing was adopted; do not use this file"
    if any(problem.unsafe for problem in problems):
        raise UnsafePathError(said, hint=hint)
    raise CorruptError(said, hint=hint)


def _said(problem: Problem) -> str:
    where = f"{show_path(problem.path)} " if problem.path else ""
    return f"checkpoint {problem.checkpoint or '?'}: {where}{problem.problem}"


def _copy(
    workspace: Workspace, opened: Transaction, scratch: Repository, tips: Sequence[str]
) -> None:
    """Makes one pack of what none of our refs reaches, and moves it in."""
    ours = workspace.repository.git("for-each-ref", "--format=%(objectname)").split()
    head, _ = workspace.repository.head()
    wanted = [tip.encode() for tip in tips]
    wanted += [
        b"^" + oid for oid in sorted({*ours, *([head.encode()] if head else [])})
    ]
    base = opened.scratch / "imported"
    try:
        out = process.run(
            [
                f"--git-dir={scratch.git_dir}",
                "pack-objects",
                "--quiet",
                "--revs",
                "--delta-base-offset",
                str(base),
            ],
            cwd=opened.scratch,
            data=b"\n".join(wanted) + b"\n",
        )
    except GitFailedError as exc:
        raise TransferError(
            f"the objects cannot be copied: {exc.message}", hint="run `gitcp verify`"
        ) from exc
    name = f"pack-{out.decode('ascii').strip()}"
    pack = base.with_name(f"imported-{name.removeprefix('pack-')}.pack")
    standing = workspace.repository.common_dir / "objects" / "pack" / f"{name}.idx"
    if pack.stat().st_size <= _EMPTY_PACK or standing.exists():
        return
    with durable.storage("copying the session"):
        opened.adopt(pack, pack.with_suffix(".idx"), name)


def _adopt(
    store: Store, opened: Transaction, key: tuple[str, str], oid: str
) -> Adopted:
    theirs = store.checkpoint(oid)
    if theirs is None:
        raise CorruptError(f"{oid} is no checkpoint", hint="run `gitcp verify`")
    session, branch = theirs.session, theirs.branch
    ref = f"{layout.SESSIONS}{key[0]}/{key[1]}"
    ours = store.repository.refs.read(ref)
    if ours is not None and _holds(store, ours, theirs):
        return Adopted(session, branch, "up-to-date", branch, ours)
    if ours is None or any(one.commit == ours for one in store.line(theirs)):
        store.repository.refs.compare_and_swap(
            ref, expect=ours, new=oid, staged=opened.scratch / STAGED_REF
        )
        result = "created" if ours is None else "fast-forward"
        return Adopted(session, branch, result, branch, oid)
    return _fork(store, theirs)


def _holds(store: Store, tip: str, wanted: Checkpoint) -> bool:
    start = store.checkpoint(tip)
    return start is not None and any(one == wanted for one in store.line(start))


def _fork(store: Store, theirs: Checkpoint) -> Adopted:
    """Keeps their line under a name of its own; the same file twice makes one fork."""
    session, branch = theirs.session, theirs.branch
    number = 1
    while True:
        name = f"{branch}~import" if number == 1 else f"{branch}~import-{number}"
        standing = store.tip(session, name)
        if standing is None:
            made = fork_only(store, theirs, name)
            return Adopted(session, branch, "forked", name, made.commit)
        if _holds(store, standing.commit, theirs):
            return Adopted(session, branch, "up-to-date", name, standing.commit)
        number += 1
