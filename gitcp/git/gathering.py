"""A bare repository that gathers commits of several clones, to send them in one push.

It owns what it holds: a clone may be removed, collected or on another disk. So each pack is
copied, the project's history below the sessions too, once for all clones.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from gitcp import durable
from gitcp.errors import GitFailedError, TransferError
from gitcp.format.oid import ObjectFormat
from gitcp.git import process
from gitcp.git.repository import Repository, naming

# Commits of the project whose history is here, whole.
BASES = "refs/bases/"
_NOTHING = b""
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
    """One such repository. Its refs name what is here with everything below it."""

    def __init__(self, git_dir: Path, form: ObjectFormat) -> None:
        self.git_dir = git_dir
        self._form = form

    @property
    def repository(self) -> Repository:
        """It as a repository that git is run in; nothing of its configuration is read."""
        return Repository(self.git_dir, self.git_dir, form=self._form)

    def make(self) -> None:
        """Makes it, where it is missing or was being made.

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
        """Sets what git is to know of the way to the receiver, and nothing else.

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
        # There may be a token in it.
        if path.read_bytes() != text:
            durable.replace(path, text, mode=0o600)

    def refs(self) -> dict[str, str]:
        """Returns all refs."""
        return self.repository.refs.list("refs/")

    def take(
        self, source: Repository, tips: Mapping[str, str], known: Iterable[str]
    ) -> None:
        """Takes commits in with everything below them, and points refs to them.

        `tips` are the commits by ref. `known` are commits of the source that the receiver
        has: what they reach is kept apart, as the base of what is sent.

        Raises:
            TransferError: they cannot be read.
        """
        held = set(self.refs().values())
        new = sorted(set(tips.values()) - held)
        objects = source.objects
        have = [oid for oid in held if objects.exists(bytes.fromhex(oid))]
        bases = self._bases(source, new, [*known, *have]) - set(have)
        try:
            if bases:
                self._copy(source, sorted(bases), have, keep=True)
            if new:
                self._copy(source, new, [*have, *bases])
        except GitFailedError as exc:
            raise TransferError(
                f"the sessions cannot be copied for the push: {exc.message}",
                hint="run `gitcp verify`",
            ) from exc
        self.point({**{f"{BASES}{oid}": oid for oid in bases}, **tips})

    def _bases(
        self, source: Repository, tips: Collection[str], known: Iterable[str]
    ) -> set[str]:
        """Returns the known commits that new ones stand on."""
        if not tips:
            return set()
        exists = source.objects.exists
        here = (oid for oid in sorted(set(known)) if exists(bytes.fromhex(oid)))
        lines = [*tips, *(f"^{oid}" for oid in here)]
        out = source.git(
            *("rev-list", "--boundary", "--stdin"), data="\n".join(lines).encode()
        )
        return {word[1:].decode() for word in out.split() if word.startswith(b"-")}

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

    def point(self, refs: Mapping[str, str | None]) -> None:
        """Moves refs, or removes them (None)."""
        if not refs:
            return
        lines = [
            f"update {ref} {oid}\n" if oid is not None else f"delete {ref}\n"
            for ref, oid in refs.items()
        ]
        data = "".join(lines).encode()
        try:
            self.repository.plumbing("update-ref", "--stdin", data=data)
        except GitFailedError:
            # A git that was killed left its locks. The caller holds the spool's: no other
            # git moves refs here.
            for left in self.git_dir.glob("refs/**/*.lock"):
                left.unlink(missing_ok=True)
            self.repository.plumbing("update-ref", "--stdin", data=data)

    def holds(self, oid: str) -> bool:
        """Whether a commit is here."""
        return self.repository.objects.exists(bytes.fromhex(oid))

    def follows(self, old: str, new: str) -> bool:
        """Whether `new` reaches `old`; not where that is not here."""
        if not self.holds(old):
            return False
        out = self.repository.plumbing("rev-list", "--max-count=1", old, f"^{new}")
        return not out.strip()

    def size(self) -> int:
        """Returns the bytes of the sessions; the project's history is not counted."""
        return sum(
            path.stat().st_size
            for path in self._packs()
            if not path.with_suffix(".keep").exists()
        )

    def _packs(self) -> list[Path]:
        return list((self.git_dir / "objects" / "pack").glob("pack-*.pack"))

    def tidy(self) -> None:
        """Merges packs where there are many; a small step beside the pushes it serves.

        Raises:
            GitFailedError: git would not.
        """
        if len(self._packs()) > _MANY:
            self.repository.plumbing("repack", "-d", "-q", "--geometric=2")

    def shrink(self, wanted: Collection[str]) -> None:
        """Removes the sessions but for some refs; the caller holds the lock of the spool.

        Raises:
            GitFailedError: git would not.
        """
        self.point(
            {
                ref: None
                for ref in self.refs()
                if not ref.startswith(BASES) and ref not in wanted
            }
        )
        self.repository.plumbing("repack", "-a", "-d", "-q")
        self.repository.plumbing("prune", "--expire=now")
