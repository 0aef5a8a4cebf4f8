"""A bare repository that gathers commits of several clones, to send them in one push.

It has copies of all its objects, because a clone may be removed, collected or on another
disk. It copies each pack, and once for all clones the project's history below the sessions.
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from gitcp import durable
from gitcp.at_fork import computed
from gitcp.errors import CorruptError, GitFailedError, TransferError
from gitcp.format import tree as trees
from gitcp.format.oid import ObjectFormat
from gitcp.git import process
from gitcp.git.above import commits_above, stands_on
from gitcp.git.objects import BLOB, COMMIT, IN_MEMORY, TREE, Objects
from gitcp.git.pack import PackWriter
from gitcp.git.repository import Repository, naming

# Commits of the project whose whole history is here.
BASES = "refs/bases/"
_NOTHING = b""
# Up to so many commits are copied without git, which would take longer to start.
_FEW = 64
# So many packs are merged by git; the large ones, of history, stay as they are.
_MANY = 40

_FORMATS = {
    "sha1": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
    "sha256": "[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
    "[extensions]\n\tobjectformat = sha256\n",
}


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Gathering:
    """One such repository. Its refs name the commits that are here with everything below them."""

    def __init__(self, git_dir: Path, form: ObjectFormat) -> None:
        self.git_dir = git_dir
        self._form = form

    @computed
    def repository(self) -> Repository:
        """The repository to run git in; its configuration is not read."""
        return Repository(self.git_dir, self.git_dir, form=self._form)

    def make(self) -> None:
        """Makes it, if it is missing or was being made.

        Raises:
            GitFailedError: git would not.
        """
        if (self.git_dir / "made").exists():
            return
        durable.make_directories(self.git_dir, private=True)
        form = f"--object-format={self._form.name}"
        process.run(
            ["init", "--quiet", "--bare", "--template=", form, "."],
            cwd=self.git_dir,
            # Git 3.0 would keep them in tables; its `--ref-format` older ones do not know.
            env={"GIT_DEFAULT_REF_FORMAT": "files"},
        )
        durable.replace(self.git_dir / "made", _NOTHING)

    def configure(self, listed: Iterable[tuple[str, str]]) -> None:
        """Sets git's settings for the connection to the receiver, and no others.

        `listed` are names and values, as `git config --list` has them, in order.
        """
        lines = [_FORMATS[self._form.name]]
        for name, value in listed:
            section, _, rest = name.partition(".")
            subsection, dot, key = rest.rpartition(".")
            title = f'{section} "{_escaped(subsection)}"' if dot else section
            lines.append(f'[{title}]\n\t{key} = "{_escaped(value)}"\n')
        text = "".join(lines).encode("utf-8", "surrogateescape")
        path = self.git_dir / "config"
        # It may hold a token.
        if path.read_bytes() != text:
            durable.replace(path, text, mode=0o600)

    def refs(self) -> dict[str, str]:
        """Returns all refs."""
        return self.repository.refs.list("refs/")

    def take(
        self,
        source: Repository,
        tips: Mapping[str, str],
        known: Iterable[str],
        near: Iterable[str] = (),
    ) -> None:
        """Copies commits with everything below them, and points refs to them.

        `tips` are the commits by ref. `known` are commits of the source that the receiver
        has: what they reach is kept apart, as the base of what is sent. `near` are refs
        here that the commits may stand on, of the same session.

        Raises:
            TransferError: a commit cannot be read.
        """
        held = self._values([*tips, *near])
        new = sorted(set(tips.values()) - held)
        try:
            commits = commits_above(source, new, [*known, *held])
            below = stands_on(source, commits)
            bases = below - held
            bases -= self._values(f"{BASES}{oid}" for oid in bases)
            if bases:
                self._copy_bases(source, sorted(bases))
            if len(commits) <= _FEW:
                self._copy_few(source.objects, commits)
            else:
                self._copy(source, new, sorted(below))
        except (GitFailedError, CorruptError) as exc:
            raise TransferError(
                f"the sessions cannot be copied for the push: {exc.message}",
                hint="run `gitcp verify`",
            ) from exc
        self.point({**{f"{BASES}{oid}": oid for oid in bases}, **tips})

    def _values(self, refs: Iterable[str]) -> set[str]:
        """Returns the values of some refs, one by one: there may be thousands of others."""
        read = self.repository.refs.read
        return {oid for ref in refs if (oid := read(ref)) is not None}

    def _copy_bases(self, source: Repository, bases: Sequence[str]) -> None:
        """Copies the part of the project's history that is missing here."""
        exists = source.objects.exists
        there = self.repository.refs.list(BASES).values()
        have = [oid for oid in there if exists(bytes.fromhex(oid))]
        self._copy(source, bases, have, keep=True)

    def _copy_few(self, objects: Objects, commits: Sequence[str]) -> None:
        """Copies what each commit adds to its first parent, which is here, or comes first."""
        if not commits:
            return
        incoming = self.git_dir / "incoming"
        durable.make_directories(incoming, private=True)
        for left in incoming.iterdir():
            # A killed process left it: the caller holds the spool's lock.
            left.unlink()
        pack = PackWriter(incoming, self._form)
        try:
            for oid in commits:
                commit = objects.commit(bytes.fromhex(oid))
                raw = objects.read(bytes.fromhex(oid), COMMIT)
                pack.add(COMMIT, raw, bytes.fromhex(oid))
                before = None
                if commit.parents:
                    before = objects.commit(commit.parents[0]).tree
                _add_tree(objects, pack, commit.tree, before)
            written = pack.close()
        finally:
            pack.abandon()
        if written is None:
            return
        packs = self.git_dir / "objects" / "pack"
        path, index, name = written
        for file in (path, index):
            durable.sync_file(file)
        # git finds a pack by its .idx, so that comes last.
        path.rename(packs / f"{name}.pack")
        index.rename(packs / f"{name}.idx")
        durable.sync_directory(packs)

    def _copy(
        self,
        source: Repository,
        tips: Iterable[str],
        have: Iterable[str],
        *,
        keep: bool = False,
    ) -> None:
        lines = [*tips, *(f"^{oid}" for oid in have)]
        packing = process.start(
            ["pack-objects", "--revs", "--stdout", "--quiet", "--delta-base-offset"],
            cwd=source.top or source.git_dir,
            env=naming(source),
            stdin=process.PIPE,
        )
        try:
            assert packing.stdin is not None
            assert packing.stdout is not None
            packing.stdin.write("".join(f"{line}\n" for line in lines).encode())
            packing.stdin.close()
            packing.stdin = None
            indexing = process.start(
                ["index-pack", "--stdin", *(["--keep"] if keep else [])],
                cwd=self.git_dir,
                env={"GIT_DIR": os.fspath(self.git_dir)},
                stdin=packing.stdout,
            )
            packing.stdout.close()
            packing.stdout = None
            process.finish(indexing)
        finally:
            process.finish(packing, accept=range(-64, 256))
        if packing.returncode:
            raise process.failure(packing, b"")

    def point(self, refs: Mapping[str, str]) -> None:
        """Moves refs, durably. The caller holds the spool's lock: no other process moves them."""
        directories = set()
        for ref, oid in refs.items():
            path = self.git_dir / ref
            durable.make_directories(path.parent)
            # A killed process left this one.
            lock = path.with_name(f"{path.name}.lock")
            with lock.open("w") as file:
                file.write(f"{oid}\n")
                file.flush()
                os.fsync(file.fileno())
            lock.replace(path)
            directories.add(path.parent)
        for directory in directories:
            durable.sync_directory(directory)

    def _drop(self, refs: Collection[str]) -> None:
        if not refs:
            return
        for left in self.git_dir.glob("refs/**/*.lock"):
            left.unlink(missing_ok=True)
        lines = "".join(f"delete {ref}\n" for ref in refs)
        self.repository.plumbing("update-ref", "--stdin", data=lines.encode())

    def holds(self, oid: str) -> bool:
        """Whether a commit is here."""
        return self.repository.objects.exists(bytes.fromhex(oid))

    def follows(self, old: str, new: str) -> bool:
        """Whether `new` reaches `old`; false if `old` is not here."""
        if not self.holds(old):
            return False
        out = self.repository.plumbing("rev-list", "--max-count=1", old, f"^{new}")
        return not out.strip()

    def size(self) -> int:
        """Returns the bytes of the sessions; the project's history is not counted."""
        size = 0
        for path in self._packs():
            if not path.with_suffix(".keep").exists():
                # `tidy` may merge it meanwhile.
                with suppress(FileNotFoundError):
                    size += path.stat().st_size
        return size

    def _packs(self) -> list[Path]:
        return list((self.git_dir / "objects" / "pack").glob("pack-*.pack"))

    def tidy(self) -> None:
        """Merges packs if there are many; takes little time compared with a push.

        Raises:
            GitFailedError: git would not.
        """
        if len(self._packs()) > _MANY:
            self.repository.plumbing("repack", "-d", "-q", "--geometric=2")

    def shrink(self, wanted: Collection[str]) -> None:
        """Removes all sessions except some refs; the caller holds the lock of the spool.

        Raises:
            GitFailedError: git would not.
        """
        self._drop(
            [
                ref
                for ref in self.refs()
                if not ref.startswith(BASES) and ref not in wanted
            ]
        )
        self.repository.plumbing("repack", "-a", "-d", "-q")
        self.repository.plumbing("prune", "--expire=now")


def _add_tree(
    objects: Objects, pack: PackWriter, oid: bytes, before: bytes | None
) -> None:
    """Adds a tree to a pack, without what another tree holds at the same path."""
    if oid in pack or oid == before:
        return
    held = objects.tree(before) if before is not None else {}
    pack.add(TREE, objects.read(oid, TREE), oid)
    for name, entry in objects.tree(oid).items():
        other = held.get(name)
        if entry.mode == trees.GITLINK or (other and other.oid == entry.oid):
            continue
        if entry.mode == trees.DIRECTORY:
            is_tree = other is not None and other.mode == trees.DIRECTORY
            _add_tree(
                objects, pack, entry.oid, other.oid if other and is_tree else None
            )
        elif entry.oid not in pack:
            _add_blob(objects, pack, entry.oid)


def _add_blob(objects: Objects, pack: PackWriter, oid: bytes) -> None:
    _, size = objects.header(oid)
    if size <= IN_MEMORY:
        pack.add(BLOB, objects.blob(oid), oid)
    else:
        pack.add_stream(size, objects.stream(oid))
