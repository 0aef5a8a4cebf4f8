"""Drives gitcp and git on real repositories, and remembers what must be stored."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.model import plain
from tests.model.model import Captured, Facts, Node, capture, differences
from tests.model.plain import Stored
from tests.model.rules import Rules
from tests.support.gitrepo import git, run_gitcp
from tests.support.inprocess import invoke

LIMIT = 64 << 10
Line = tuple[str, str]


class DifferenceError(AssertionError):
    """gitcp and the model do not agree."""


@dataclass
class Repo:
    """A repository and the checkpoints in it that were acknowledged, by their ids.

    What git stores is read at `top`: behind a mirror, which is much quicker.
    """

    git_dir: Path
    top: Path
    records: dict[str, Stored] = field(default_factory=dict)
    lines: dict[Line, list[str]] = field(default_factory=dict)
    tips: dict[str, str] = field(default_factory=dict)
    labelled: set[str] = field(default_factory=set)
    sent: dict[str, str] = field(default_factory=dict)

    def tip(self, line: Line) -> Stored | None:
        """The newest checkpoint of a branch."""
        ids = self.lines.get(line)
        return self.records[ids[-1]] if ids else None


@dataclass
class Undo:
    """What `undo` goes back to, what the restore before it brought, what was purged since."""

    line: Line
    id: str
    created: dict[bytes, Node]
    purged: set[bytes] = field(default_factory=set)


@dataclass
class Tree:
    """A work tree, and where the person in it is.

    Its files are looked at in `seen`, by git with `git_dir`: behind a mirror, too.
    """

    root: Path
    repo: Repo
    seen: Path
    git_dir: Path
    current: Line | None = None
    undo: Undo | None = None
    # The last restore in it, whose way back no pruning takes.
    restore: str | None = None
    pending: list[str] = field(default_factory=list)
    # Agents that gitcp has heard of here; those that a restore overtook since.
    at_work: set[str] = field(default_factory=set)
    overtaken: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Seen:
    """A work tree at one moment."""

    listing: dict[bytes, Node]
    facts: Facts
    captured: Captured


class World:
    """All repositories of a run; what is on disk lies below `base`."""

    def __init__(self, base: Path, home: Path) -> None:
        self.base = base
        self.home = home
        self.script: list[str] = []
        self.tags: dict[str, str] = {}
        self.rules = Rules(home / "rules")
        self.env = {
            "HOME": str(home),
            "CLAUDE_CONFIG_DIR": str(home / "claude"),
            "CODEX_HOME": str(home / "codex"),
        }
        self.trees: dict[str, Tree] = {}
        self.step = 0
        self.seen = Seen({}, Facts(), capture({}, Facts()))

    def add(self, name: str, behind: Path, repo: Repo | None = None) -> Tree:
        """A work tree of the run; of a repository of its own unless one is given."""
        root, seen = self.base / name, behind / name
        git_dir = seen / ".git"
        if repo is None:
            repo = Repo(root / ".git", seen)
        else:
            git_dir = repo.top / ".git" / "worktrees" / name
        self.trees[name] = Tree(root, repo, seen, git_dir)
        return self.trees[name]

    # --- looking ------------------------------------------------------------------

    def look(self, tree: Tree, more: Sequence[str] = ()) -> Seen:
        """What is on disk, what git says about it, and what a checkpoint must hold."""
        found = plain.listing(tree.seen)
        where = tree.seen, tree.git_dir
        facts = plain.facts(where, found, self.rules, 100 << 20, more)
        self.seen = Seen(found, facts, capture(found, facts))
        return self.seen

    def news(self, repo: Repo) -> list[Stored]:
        """The checkpoints made since it was last asked; branches have only grown."""
        tips = plain.tips(repo.top)
        made: list[Stored] = []
        for ref, old in repo.tips.items():
            check(ref in tips, f"{ref} is gone; it was at {old}")
        for ref, tip in tips.items():
            old = repo.tips.get(ref, "")
            if tip == old:
                continue
            rows = plain.line(repo.top, tip, *repo.tips.values())
            check(bool(rows) or not old, f"{ref} moved back from {old} to {tip}")
            if not rows:
                rows = plain.line(repo.top, tip)[-1:]
            made += [
                self.take(repo, plain.read(repo.top, row))
                for row in rows
                if row[3] not in repo.records
            ]
            if old:
                check(rows[0][1] == old, f"{ref} did not grow from its tip {old}")
        repo.tips = tips
        return made

    def take(self, repo: Repo, stored: Stored) -> Stored:
        """Adds a checkpoint to what must be there from now on."""
        line = name(stored)
        ids = repo.lines.setdefault(line, [])
        if ids:
            before = repo.records[ids[-1]]
            check(stored.seq > before.seq, f"{stored.id} has the number of another")
        check(stored.id not in repo.records, f"the id {stored.id} was given twice")
        repo.records[stored.id] = stored
        ids.append(stored.id)
        if stored.document["label"]:
            repo.labelled.add(stored.id)
        return stored

    def must_hold(self, stored: Stored, wanted: Captured, what: str) -> None:
        """A checkpoint holds what the model says."""
        found = differences(wanted, stored.captured)
        told = "".join(self.known(path) for path in unlike(wanted, stored.captured))
        check(
            not found,
            f"{what} {stored.id} ({stored.trigger}): " + "; ".join(found) + told,
        )

    def known(self, path: bytes) -> str:
        """What git was seen to say about a path last."""
        facts = self.seen.facts
        marks = [
            word for word, true in (
                ("tracked", path in facts.index), ("ignored", path in facts.ignored),
                ("excluded", path in facts.excluded), ("submodule", path in facts.links),
                ("included", path in facts.included), ("nested", path in facts.nested),
                (f"in {facts.enclosing(path)!r}", facts.enclosing(path) is not None),
            ) if true
        ]  # fmt: skip
        return f"\n  {path!r}: {self.seen.listing.get(path)} {', '.join(marks)}"

    def newest(self, tree: Tree) -> Stored | None:
        """The newest checkpoint of a work tree: gitcp says which one that is."""
        status, shown = self.call(tree, "show", "last", may=(0, 13))
        return None if status else tree.repo.records[shown["checkpoint"]["id"]]

    def current(self, tree: Tree) -> Line:
        """The session and branch that the person in a work tree is on."""
        if tree.current is None:
            status = self.call(tree, "status")[1]
            tree.current = status["session"], status["branch"]
        return tree.current

    # --- doing --------------------------------------------------------------------

    def note(self, tree: Tree, *words: str | bytes | Path) -> None:
        """Writes a command into the script of the run."""
        text = " ".join(shlex.quote(os.fsdecode(word)) for word in words)
        self.script.append(f"cd {shlex.quote(str(tree.root))} && {text}")

    def git(self, tree: Tree, *args: str, check: bool = False) -> bytes:
        """Runs git; most of its commands may fail, as they do for a user."""
        self.note(tree, "git", *args)
        env = {"GIT_EDITOR": "true", "GIT_ALLOW_PROTOCOL": "file"}
        return git(tree.root, *args, check=check, env=env)

    def call(
        self,
        tree: Tree,
        *args: str | bytes | Path,
        data: bytes | None = None,
        may: Collection[int] = (0,),
        json_: bool = True,
        process: bool = False,
    ) -> tuple[int, Any]:
        """Runs gitcp; the user's part of the git directory must stay as it is."""
        self.note(tree, "gitcp", *args)
        if data:
            self.script[-1] += f"  # stdin: {data[:2000]!r}"
        before = plain.users_state(tree.repo.top / ".git")
        given = [args[0], *(["--json"] if json_ else []), *args[1:]]
        start = run_gitcp if process else invoke
        done = start(tree.root, *given, input=data, env=self.env)
        after = plain.users_state(tree.repo.top / ".git")
        touched = [
            path
            for path in sorted(before.keys() | after.keys())
            if before.get(path) != after.get(path)
        ]
        check(not touched, f"{args[0]!r} changed in the git directory: {touched}")
        check(
            done.returncode in may,
            f"{args} ended with {done.returncode}: {done.stderr.decode(errors='replace')}",
        )
        document = None
        if done.returncode == 0 and json_:
            document = json.loads(done.stdout)
        return done.returncode, document or done.stderr.decode(errors="replace")

    def resync(self, repo: Repo) -> set[str]:
        """Reads all branches again after commits were rewritten; returns what is gone.

        The records stay as they are: what is still there must be as they say.
        """
        repo.tips = plain.tips(repo.top)
        rows = [row for tip in repo.tips.values() for row in plain.line(repo.top, tip)]
        gone = repo.records.keys() - {row[3] for row in rows}
        for id_ in gone:
            del repo.records[id_]
        for line, ids in repo.lines.items():
            repo.lines[line] = [id_ for id_ in ids if id_ in repo.records]
        return gone

    # --- in the end ---------------------------------------------------------------

    def unchanged(self, repo: Repo) -> None:
        """No branch of gitcp's has moved."""
        tips = plain.tips(repo.top)
        check(tips == repo.tips, f"refs moved: {repo.tips} to {tips}")

    def everything(self) -> None:
        """Every acknowledged checkpoint is as it was, and git finds nothing wrong."""
        for repo in {id(tree.repo): tree.repo for tree in self.trees.values()}.values():
            self.all_there(repo)
            plain.fsck(repo.top, "--full", "--strict")

    def all_there(self, repo: Repo) -> None:
        """Every acknowledged checkpoint of a repository is as it was."""
        rows = {
            row[3]: row for tip in plain.tips(repo.top).values()
            for row in plain.line(repo.top, tip)
        }  # fmt: skip
        missing = repo.records.keys() - rows.keys()
        check(not missing, f"checkpoints are gone: {sorted(missing)}")
        surplus = rows.keys() - repo.records.keys()
        check(not surplus, f"checkpoints of unknown origin: {sorted(surplus)}")
        for id_, wanted in repo.records.items():
            got = plain.read(repo.top, rows[id_])
            found = differences(wanted.captured, got.captured)
            check(
                got.captured == wanted.captured,
                f"checkpoint {id_} has changed: " + "; ".join(found),
            )
            check(
                (got.talk, got.decisions, name(got), got.seq)
                == (wanted.talk, wanted.decisions, name(wanted), wanted.seq),
                f"checkpoint {id_} has other words than when it was made",
            )

    def close(self) -> None:
        """Removes everything."""
        shutil.rmtree(self.base, ignore_errors=True)


def name(stored: Stored) -> Line:
    """Session and branch of a checkpoint."""
    return stored.document["session"], stored.document["branch"]


def check(true: bool, what: str) -> None:
    """Fails with what is different."""
    if not true:
        raise DifferenceError(what)


def unlike(wanted: Captured, stored: Captured) -> list[bytes]:
    """The paths that are not the same in two checkpoints."""
    a, b = wanted, stored
    return sorted(
        {path for path, _ in set(a.files.items()) ^ set(b.files.items())}
        | {path for path, _ in set(a.gitlinks.items()) ^ set(b.gitlinks.items())}
        | (a.skipped.keys() ^ b.skipped.keys())
        | (a.empty ^ b.empty)
    )
