"""Reads work trees and checkpoints with the directory listing and plain git only."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.model.model import (
    EXECUTABLE,
    FILE,
    GITLINK,
    LINK,
    RESERVED,
    Captured,
    Facts,
    Node,
    Tracked,
    ancestors,
    closure,
    fold,
)

if TYPE_CHECKING:
    from tests.model.rules import Rules

# What is behind a mirror of a file that was removed while it was open.
HIDDEN = b".fuse_hidden"
RULES = b".gitignore"
# What new repositories name their objects by.
HASH = os.environ.get("GIT_DEFAULT_HASH") or "sha1"
# Where git keeps refs in tables.
TABLES = "reftable"
TRAILERS = ("Checkpoint", "Session", "Branch", "Seq", "Trigger")
PLAIN = "abcdefghijklmnopqrstuvwxyz0123456789_-"
_FORMAT = "%H%x00%P%x00%ce%x00" + "%x00".join(
    f"%(trailers:key=Gitcp-{name},valueonly,separator=%x2C)" for name in TRAILERS
)


def run(
    where: Path | bytes, *args: str | bytes | Path, data: bytes = b"", status: int = 0
) -> bytes:
    """The output of a git command; fails if it ends with more than `status`."""
    done = subprocess.run(
        ["git", *args], cwd=where, input=data, capture_output=True, check=False
    )
    if done.returncode > status:
        raise AssertionError((args, done.returncode, done.stderr))
    return done.stdout


def fsck(where: Path, *args: str) -> None:
    """Lets git look for damage, but in its graph: `git repack -a -d` leaves that stale."""
    run(where, "-c", "core.commitGraph=false", "fsck", "--no-dangling", *args)


def blob(data: bytes) -> str:
    """The name that git gives to some bytes."""
    return hashlib.new(HASH, b"blob %d\0" % len(data) + data).hexdigest()


# --- the work tree -------------------------------------------------------------------


def listing(root: Path) -> dict[bytes, Node]:
    """Everything below a directory except its own `.git`; nothing is followed."""
    found: dict[bytes, Node] = {}
    pending = [b""]
    top = os.fsencode(root)
    while pending:
        prefix = pending.pop()
        with os.scandir(os.path.join(top, prefix)) as entries:
            for entry in entries:
                path = os.path.join(prefix, entry.name)
                if path == b".git" or entry.name.startswith(HIDDEN):
                    continue
                found[path] = node = _node(entry)
                if node.kind == "dir":
                    pending.append(path)
    return found


def _node(entry: os.DirEntry[bytes]) -> Node:
    if entry.is_symlink():
        return Node("link", LINK, blob(os.readlink(entry.path)))
    if entry.is_dir(follow_symlinks=False):
        return Node("dir")
    if not entry.is_file(follow_symlinks=False):
        return Node("other")
    with open(entry.path, "rb") as file:
        data = file.read()
    mode = EXECUTABLE if entry.stat(follow_symlinks=False).st_mode & 0o100 else FILE
    return Node("file", mode, blob(data), len(data))


def stamps(root: Path, paths: Iterable[bytes]) -> dict[bytes, tuple[int, int]]:
    """Inode and time of some paths."""
    top = os.fsencode(root)
    found = {}
    for path in paths:
        status = os.lstat(os.path.join(top, path))
        found[path] = status.st_ino, status.st_mtime_ns
    return found


def setting(config: Iterable[str], name: str) -> list[str]:
    """The values of a setting in the lines of `git config --list`."""
    head = f"{name.lower()}="
    return [line[len(head) :] for line in config if line.lower().startswith(head)]


def facts(
    where: tuple[Path, Path],
    found: dict[bytes, Node],
    rules: Rules,
    limit: int,
    more: Sequence[str],
) -> Facts:
    """What git says about a work tree, which is where it is and its git directory.

    `more`: patterns of `--include`, for once.
    """
    root, git_dir = where

    def ask(*args: str, data: bytes = b"", status: int = 0) -> bytes:
        here = ("--git-dir", git_dir, "--work-tree", root)
        return run(root, *here, *args, data=data, status=status)

    raw = ask("ls-files", "-z", "-s", "-v")
    index = {}
    for row in raw.split(b"\0")[:-1]:
        head, _, path = row.partition(b"\t")
        flag, mode, oid, _stage = head.decode().split(" ")
        index[path] = Tracked(mode, oid, flag in "Ss")
    config = ask("config", "--list", "-z").decode().split("\0")
    config = [line.replace("\n", "=", 1) for line in config]
    folds = setting(config, "core.ignorecase")[-1:] == ["true"]
    nested: dict[bytes, str | None] = {}
    for path in found:
        if path.endswith(b"/.git") and _is_repository(root, path):
            nested[path[:-5]] = _head(root, path[:-5])
    outer = [p for p in nested if not any(p.startswith(q + b"/") for q in nested)]
    closed = {*outer, RESERVED}
    asked = [p for p in found if not any(above in closed for above in ancestors(p))]
    # In a submodule that is a plain directory git only judges without its index.
    plain = {p for p, entry in index.items() if entry.mode == GITLINK} - set(outer)
    inside = [p for p in asked if any(above in plain for above in ancestors(p))]

    def matched(paths: Sequence[bytes], *more: str) -> frozenset[bytes]:
        data = b"".join(path + b"\0" for path in paths)
        if not paths:
            return frozenset()
        rows = ask("check-ignore", *more, "-z", "--stdin", data=data, status=1)
        return frozenset(rows.split(b"\0")[:-1])

    ignored = matched([p for p in asked if p not in set(inside)])
    ignored |= matched(inside, "--no-index")
    ignored |= _ruled_by_index(where, index, found, rules, inside, folds=folds)
    # git calls nothing ignored in which its index has files, even where it is a file.
    above = {fold(p, folds=folds) for p in closure(index)}
    upper = [p for p in found if fold(p, folds=folds) in above] + outer
    upper += [p for p in index if p in found and found[p].kind == "dir"]
    vague = matched(upper, "--no-index")
    vague |= _ruled_by_index(where, index, found, rules, upper, folds=folds)
    unseen = ignored
    unseen -= {p for p in upper if found[p].kind == "dir" and p not in nested}
    include = [*setting(config, "gitcp.include"), *more]
    exclude = setting(config, "gitcp.exclude")
    sizes = setting(config, "gitcp.maxfilesize")
    return Facts(
        index,
        {path: nested[path] for path in outer},
        unseen | {path for path in vague if found[path].kind != "dir"},
        rules.matching(include, asked, folds=folds),
        rules.matching(exclude, [*found, *index], folds=folds),
        int(sizes[-1]) if sizes else limit,
        folds,
        _links(ask("ls-tree", "-r", "-z", "HEAD", status=128)),
        vague,
        (vague | unseen) & set(outer),
    )


def _ruled_by_index(
    where: tuple[Path, Path],
    index: dict[bytes, Tracked],
    found: dict[bytes, Node],
    rules: Rules,
    paths: Sequence[bytes],
    *,
    folds: bool,
) -> frozenset[bytes]:
    """Those of some paths that the rules exclude with what a sparse checkout omits.

    git itself reads such ignore files only where it also looks at the rest of the index.
    """
    root, git_dir = where
    omitted = {
        path: entry.oid
        for path, entry in index.items()
        if path.endswith(RULES)
        and entry.sparse
        and entry.mode != LINK
        and path not in found
        and all(found.get(up, Node("dir")).kind == "dir" for up in ancestors(path))
    }
    if not omitted:
        return frozenset()
    files = dict(zip(omitted, blobs(root, list(omitted.values())), strict=True))
    for path, node in found.items():
        if path.endswith(RULES) and node.kind == "file":
            files[path] = (root / os.fsdecode(path)).read_bytes()
    exclude = run(root, "--git-dir", git_dir, "rev-parse", "--git-path", "info/exclude")
    directories = {path for path in paths if found[path].kind == "dir"}
    return rules.ignored(
        files,
        root / os.fsdecode(exclude.rstrip(b"\n")),
        set(paths) - directories,
        directories,
        folds=folds,
    )


def _links(rows: bytes) -> dict[bytes, str]:
    """The submodules in the output of `git ls-tree`."""
    found = {}
    for row in rows.split(b"\0")[:-1]:
        head, _, path = row.partition(b"\t")
        mode, _type, oid = head.decode().split(" ")
        if mode == GITLINK:
            found[path] = oid
    return found


def _is_repository(root: Path, git_dir: bytes) -> bool:
    where = os.path.join(os.fsencode(root), git_dir)
    return os.path.isfile(where) or os.path.lexists(os.path.join(where, b"HEAD"))


def _head(root: Path, path: bytes) -> str | None:
    where = os.path.join(os.fsencode(root), path)
    # A submodule that was moved still says in its settings where it was.
    here = ("--git-dir=.git", "--work-tree=.")
    head = run(where, *here, "rev-parse", "-q", "--verify", "HEAD", status=128)
    return head.decode().strip() or None


# --- the git directory ---------------------------------------------------------------


def users_state(git_dir: Path) -> dict[str, bytes]:
    """Everything in the git directory that is the user's, byte for byte."""
    found: dict[str, bytes] = {}
    for where, directories, files in os.walk(git_dir):
        inside = os.path.relpath(where, git_dir)
        if inside == ".":
            directories[:] = [n for n in directories if n not in {"objects", "gitcp"}]
        if TABLES in directories:
            directories.remove(TABLES)
            found |= _in_tables(Path(where), inside)
        if inside == "refs" or os.path.dirname(inside) == "worktrees":
            directories[:] = [name for name in directories if name != "gitcp"]
        for name in files:
            if name == "gitcp-numbers":
                continue
            if name.startswith(os.fsdecode(HIDDEN)):
                continue
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                data = file.read()
            if (inside, name) == (".", "packed-refs"):
                data = b"".join(
                    line
                    for line in data.splitlines(keepends=True)
                    if b" refs/gitcp/" not in line and not line.startswith(b"#")
                )
            if data or name != "packed-refs":
                found[os.path.join(inside, name)] = data
    return found


def _in_tables(git_dir: Path, inside: str) -> dict[str, bytes]:
    """What git says of the user's refs that it keeps in tables, and of their reflogs."""
    shown = {
        "HEAD": ("symbolic-ref", "-q", "HEAD"),
        "refs": ("for-each-ref", "--include-root-refs", "--exclude=refs/gitcp"),
        "logs": (
            *("log", "-g", "--format=%H %gD %gs %cn", "--exclude=refs/gitcp/*"),
            "--all",
        ),
    }
    here = ("--git-dir", git_dir)
    return {
        os.path.join(inside, TABLES, name): run(git_dir, *here, *args, status=128)
        for name, args in shown.items()
    }


# --- checkpoints ---------------------------------------------------------------------


@dataclass(frozen=True)
class Stored:
    """A checkpoint as plain git reads it."""

    commit: str
    parent: str
    id: str
    session: str
    branch: str
    seq: int
    trigger: str
    captured: Captured
    document: dict[str, Any]
    talk: dict[str, bytes]
    decisions: tuple[str, ...]


def component(name: str) -> str:
    """A name as a part of a ref."""
    return "".join(
        char if char in PLAIN else "".join(f"%{byte:02x}" for byte in char.encode())
        for char in name
    )


def tips(root: Path, prefix: str = "refs/gitcp/s") -> dict[str, str]:
    """The refs of gitcp's branches, with their commits."""
    rows = run(root, "for-each-ref", "--format=%(objectname) %(refname)", prefix)
    return {
        name: commit
        for commit, name in (row.split(" ") for row in rows.decode().splitlines())
    }


def line(root: Path, tip: str, *without: str) -> list[list[str]]:
    """The commits of a line of checkpoints, oldest first, with their trailers."""
    args = ["log", "--first-parent", "--reverse", f"--format={_FORMAT}", tip]
    rows = run(root, *args, *(f"^{commit}" for commit in without)).decode()
    found = [row.split("\0") for row in rows.splitlines() if row]
    return [row for row in found if row[2] == "gitcp@localhost" and row[3]]


def read(root: Path, row: Sequence[str]) -> Stored:
    """One checkpoint."""
    commit, parent, _, id_, session, branch, seq, trigger = row
    files: dict[bytes, tuple[str, str]] = {}
    gitlinks: dict[bytes, str] = {}
    own: dict[bytes, str] = {}
    for entry in run(root, "ls-tree", "-r", "-z", commit).split(b"\0")[:-1]:
        head, _, path = entry.partition(b"\t")
        mode, _type, oid = head.decode().split(" ")
        if path.startswith(RESERVED + b"/"):
            own[path] = oid
        elif mode == GITLINK:
            gitlinks[path] = oid
        else:
            files[path] = mode, oid
    contents = dict(zip(own, blobs(root, list(own.values())), strict=True))
    empty = contents.get(b".gitcp/empty-dirs.txt", b"").split(b"\0")[:-1]
    skipped = {}
    for text in contents.get(b".gitcp/skipped.jsonl", b"").splitlines():
        item = json.loads(text)
        path = item["path"].encode("utf-8", "surrogateescape")
        if "path_b64" in item:
            path = base64.b64decode(item["path_b64"])
        skipped[path] = item["reason"]
    talk, decisions = _logs(contents)
    return Stored(
        commit, parent, id_, session, branch, int(seq), trigger,
        Captured(files, gitlinks, frozenset(empty), skipped),
        json.loads(contents[b".gitcp/checkpoint.json"]), talk, decisions,
    )  # fmt: skip


def _logs(contents: dict[bytes, bytes]) -> tuple[dict[str, bytes], tuple[str, ...]]:
    talk: dict[str, bytes] = {}
    decisions: list[str] = []
    for path in sorted(contents):
        parts = path.split(b"/")
        if parts[1] != b"log" or parts[-1] == b"meta.json":
            continue
        if parts[2] == b"conversation":
            source = parts[3].decode()
            talk[source] = talk.get(source, b"") + contents[path]
        if parts[2] == b"decisions":
            decisions += [json.loads(x)["text"] for x in contents[path].splitlines()]
    return talk, tuple(decisions)


def blobs(root: Path, oids: Sequence[str]) -> list[bytes]:
    """The bytes of some objects."""
    if not oids:
        return []
    raw = run(
        root, "cat-file", "--batch", data="".join(f"{o}\n" for o in oids).encode()
    )
    found = []
    at = 0
    for oid in oids:
        end = raw.index(b"\n", at)
        head = raw[at:end].split(b" ")
        assert head[0].decode() == oid, raw[at:end]
        assert len(head) == 3, raw[at:end]
        size = int(head[2])
        found.append(raw[end + 1 : end + 1 + size])
        at = end + 2 + size
    return found
