"""Capture and apply without the layers above, and independent readings to compare."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from gitcp.format import tree as trees
from gitcp.format.commit import Trailers, encode_commit
from gitcp.format.oid import ObjectFormat
from gitcp.git.discover import discover
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction, transaction
from gitcp.worktree import apply as applying
from gitcp.worktree.capture import Capture
from gitcp.worktree.files import Root
from gitcp.worktree.plan import FilePlan, Left, Side
from gitcp.worktree.read import FileReader
from gitcp.worktree.scan import Rules
from gitcp.worktree.snapshot import Snapshot
from tests.support.templates import form_in

REF = "refs/gitcp/s/test/main"
Contents = dict[bytes, tuple[int, str]]


def capture(
    repo: Path,
    rules: Rules = Rules(limit=100 << 20),  # noqa: B008  immutable
    *,
    fresh: bool = False,
    remember: bool = True,
) -> Snapshot:
    """One capture, as a save makes it: publish, then remember."""
    found = discover(repo)
    with transaction(found) as opened, Root(repo) as root:
        capturing = Capture(found, root, rules)
        capturing.begin()
        snapshot = capturing.take(opened, fresh=fresh)
        if remember:
            publish(found, opened, snapshot)
            capturing.remember(snapshot)
        return snapshot


def publish(found: Repository, opened: Transaction, snapshot: Snapshot) -> None:
    """Lets a ref hold a snapshot, as a checkpoint would."""
    tree = snapshot.tree
    if tree is None:
        tree = opened.add_tree({b"none": trees.Entry(trees.FILE, opened.add_blob(b""))})
    tip = found.refs.read(REF)
    old = None if tip is None else found.objects.commit(bytes.fromhex(tip)).tree
    opened.complete(tree, (old,))
    trailers = Trailers(id="0" * 12, session="s", branch="b", seq=1, trigger="t")
    raw = encode_commit(tree, None, 0, trailers)
    new = opened.add_commit(raw)
    if tip != new.hex():
        opened.publish(REF, expect=tip, new=new)


def contents(repo: Path, tree: bytes | None) -> Contents:
    """Mode and oid of each path of a tree that a ref holds."""
    read = discover(repo).objects.tree
    return {
        path: (entry.mode, entry.oid.hex()) for path, entry in trees.walk(tree, read)
    }


def captured(repo: Path, snapshot: Snapshot) -> Contents:
    """The paths of a remembered snapshot; its root tree is in no commit's way."""
    return contents(repo, snapshot.tree)


def on_disk(repo: Path) -> Contents:
    """What the work tree holds, read without any of gitcp's code."""
    found: Contents = {}
    pending = [b""]
    top = os.fsencode(repo)
    form = form_in(repo / ".git")
    while pending:
        prefix = pending.pop()
        for child in os.scandir(os.path.join(top, prefix)):
            path = os.path.join(prefix, child.name)
            if path == b".git":
                continue
            if child.is_symlink():
                found[path] = 0o120000, _blob(os.readlink(child.path), form)
            elif child.is_dir():
                pending.append(path)
            elif child.is_file():
                mode = 0o100755 if child.stat().st_mode & 0o100 else 0o100644
                with open(child.path, "rb") as file:
                    found[path] = mode, _blob(file.read(), form)
    return found


def empty_on_disk(repo: Path) -> set[bytes]:
    """The directories that hold nothing."""
    top = os.fsencode(repo)
    return {
        os.path.relpath(where, top)
        for where, directories, files in os.walk(top)
        if not directories and not files and b"/.git" not in where
    }


def _blob(data: bytes, form: ObjectFormat) -> str:
    return hashlib.new(form.name, b"blob %d\0" % len(data) + data).hexdigest()


def skipped(snapshot: Snapshot) -> dict[bytes, str]:
    """What a snapshot left out, and why."""
    return {item.path: item.reason for item in snapshot.skipped}


def side(snapshot: Snapshot) -> Side:
    """A snapshot as a plan wants it."""
    return Side(snapshot.tree, frozenset(snapshot.empty))


def apply(repo: Path, plan: FilePlan) -> list[Left]:
    """Carries out a plan in a repository."""
    stream = discover(repo).objects.stream
    with Root(repo) as root:
        return applying.apply(root, plan, stream, token="x")


@contextmanager
def reads() -> Iterator[list[bytes]]:
    """Notes the paths that captures read."""
    noted: list[bytes] = []
    original = FileReader.read

    def read(self, path):
        noted.append(path)
        return original(self, path)

    with mock.patch.object(FileReader, "read", read):
        yield noted
