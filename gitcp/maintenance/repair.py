"""Repairs damaged objects, only with bytes that match their id."""

import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from gitcp import durable, notices
from gitcp.errors import CorruptError, GitFailedError
from gitcp.format import safety
from gitcp.format.oid import form_of, is_object
from gitcp.git.discover import discover
from gitcp.git.objects import BLOB, IN_MEMORY
from gitcp.git.transaction import Transaction, transaction
from gitcp.maintenance.problems import Problem
from gitcp.maintenance.verify import Moved, Progress, Report, verify
from gitcp.project.workspace import Workspace
from gitcp.store.store import Store
from gitcp.worktree import state as states
from gitcp.worktree.files import Root, chunks


def repair(
    workspace: Workspace,
    only: Sequence[tuple[str, str | None]] = (),
    *,
    progress: Progress | None = None,
) -> Report:
    """Checks, restores damaged objects that have a sound copy, and checks again.

    It searches for copies in the work tree, at the path in the checkpoint, and with git,
    which looks at every pack and alternate. Without a copy, the problem stays.

    Raises:
        StorageError: the disk refused.
    """
    with workspace.locked():
        _clear_scan(workspace)
        before = verify(workspace.store, only, progress=progress)
        if before.ok:
            return before
        with transaction(workspace.repository) as opened, ExitStack() as stack:
            root = None if workspace.bare else stack.enter_context(workspace.root())
            done: set[bytes] = set()
            for problem in before.problems:
                if problem.oid is None or problem.oid in done:
                    continue
                if _from_git(workspace, opened, problem) or (
                    root is not None and _from_files(root, opened, problem)
                ):
                    done.add(problem.oid)
            opened.store()
            _put_aside(workspace, done)
        # Only a newly opened repository looks up its packs again.
        with notices.listening(lambda _: None):
            # The command itself reports where the branches go.
            moved = _move(_reopened(workspace), workspace)
        again = _reopened(workspace)
        after = verify(again, only, progress=progress)
    still = {(one.checkpoint, one.path, one.oid) for one in after.problems}
    # Moving a branch away from a damaged checkpoint does not repair the checkpoint.
    still |= {(None, one.ref.encode(), bytes.fromhex(one.was)) for one in moved}
    gone = [
        one
        for one in before.problems
        if (one.checkpoint, one.path, one.oid) not in still
    ]
    return Report(after.checked, after.problems, tuple(gone), tuple(moved))


def _reopened(workspace: Workspace) -> Store:
    repository = workspace.repository
    where = repository.top or repository.git_dir
    return Store(discover(where, worktree=not workspace.bare))


def _move(store: Store, workspace: Workspace) -> list[Moved]:
    """Moves branches with damaged tips to their newest sound checkpoints.

    The old values of the refs are noted, in case the lost commits turn up.
    """
    moved = []
    for key, oid in store.refs().items():
        ref = key.ref
        try:
            standing = store.standing(key)
            damage, sound = standing.damage, standing.checkpoint
        except CorruptError as exc:
            damage, sound = exc, None
        if damage is None or not store.salvage.is_certain(damage):
            continue
        now = sound.commit if sound else None
        _note(workspace, f"{store.now()} {ref} {oid} {now or '-'}\n")
        # Both operations refuse if a save has moved the branch meanwhile.
        if now is not None:
            with transaction(workspace.repository) as txn:
                txn.move_ref(ref, expect=oid, new=now)
        else:
            workspace.repository.refs.delete({ref: oid})
        moved.append(Moved(ref, oid, now))
    return moved


def _note(workspace: Workspace, line: str) -> None:
    aside = workspace.repository.store_dir / "damaged"
    with durable.storage("noting which branches are moved"):
        durable.make_directories(aside, private=True)
        path = aside / "refs"
        before = path.read_bytes() if path.exists() else b""
        durable.replace(path, before + line.encode())


def _clear_scan(workspace: Workspace) -> None:
    """Removes unusable scan state: it is derived data (I7)."""
    directory = workspace.directory / "scan"
    if directory.is_dir() and states.load(directory) == states.ScanState():
        shutil.rmtree(directory, ignore_errors=True)


def _put_aside(workspace: Workspace, oids: set[bytes]) -> None:
    """Moves damaged loose files aside, in favour of the sound copies in the new pack."""
    aside = workspace.repository.store_dir / "damaged"
    for oid in oids:
        name = oid.hex()
        path = workspace.repository.common_dir / "objects" / name[:2] / name[2:]
        if path.is_file():
            with durable.storage("putting damaged objects aside"):
                workspace.repository.make_directory(aside)
                path.replace(aside / name)


def _from_git(workspace: Workspace, opened: Transaction, problem: Problem) -> bool:
    assert problem.oid is not None
    assert problem.kind is not None
    try:
        data = workspace.repository.git("cat-file", problem.kind, problem.oid.hex())
    except GitFailedError:
        return False
    if not is_object(problem.oid, problem.kind, data):
        return False
    opened.add_object(problem.kind, data)
    return True


def _from_files(root: Root, opened: Transaction, problem: Problem) -> bool:
    """Restores a blob from the work tree, if the file there has exactly that content."""
    assert problem.oid is not None
    if problem.kind != BLOB or not problem.path or safety.path_problem(problem.path):
        return False
    try:
        found = root.lstat(problem.path)
        if found is None:
            return False
        if stat.S_ISLNK(found.st_mode):
            data = root.readlink(problem.path)
        elif stat.S_ISREG(found.st_mode):
            if found.st_size > IN_MEMORY:
                return _large(root, opened, problem, found.st_size)
            data = b"".join(_content(root, problem.path))
        else:
            return False
    except OSError:
        return False
    if not is_object(problem.oid, BLOB, data):
        return False
    opened.add_blob(data)
    return True


def _large(root: Root, opened: Transaction, problem: Problem, size: int) -> bool:
    assert problem.oid is not None
    digest = form_of(problem.oid).hasher(BLOB, size)
    for chunk in _content(root, problem.path):
        digest.update(chunk)
    if digest.digest() != problem.oid:
        return False
    return opened.add_blob_stream(size, _content(root, problem.path)) == problem.oid


def _content(root: Root, path: bytes) -> Iterator[bytes]:
    fd = root.open(path)
    try:
        yield from chunks(fd)
    finally:
        os.close(fd)
