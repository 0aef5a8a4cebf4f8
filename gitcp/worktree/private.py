"""The private git directory in which git compares files and matches ignore rules.

With it `git diff-files` checks stat data in parallel and `git check-ignore` knows the
user's rules, while the user's index, configuration and attributes stay out of it.
"""

import os
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from gitcp import durable
from gitcp.format import index as indexes
from gitcp.format.oid import SHA1
from gitcp.format.tree import FILE
from gitcp.git.own_file import read_regular
from gitcp.git.process import Process, failure, start
from gitcp.git.repository import Repository
from gitcp.worktree import comparison
from gitcp.worktree.comparison import Comparison
from gitcp.worktree.names import composed

_OTHER_FORM = b"""[core]
\trepositoryformatversion = 1
[extensions]
\tobjectFormat = %b
"""
_DIRECTORIES = ("objects", "refs", "info")
_FIELDS = 4
# Settings of the system, the user and a container do not count.
_ALONE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_COUNT": "0",
    "GIT_ATTR_NOSYSTEM": "1",
}
# For an index in which only the paths matter.
_ANY_BYTE = b"\1"


def _content(path: Path) -> bytes | None:
    try:
        return read_regular(path)
    except OSError:
        return None


class PrivateGit:
    """`<git dir>/gitcp/scan`: made on demand, derived, safe to delete at any time."""

    def __init__(self, repository: Repository, top: Path) -> None:
        self._repository = repository
        self._top = top
        self.is_temporary = False
        self.directory = repository.worktree_dir / "scan"
        self.index = self.directory / "index"

    def prepare(self) -> None:
        """Makes the directory if it is missing; brings its excludes up to date."""
        for name in () if self.is_temporary else _DIRECTORIES:
            self._repository.make_directory(self.directory / name)
        # Git would use the configuration and the attributes of the directory that it
        # names.
        (self.directory / comparison.REDIRECTION).unlink(missing_ok=True)
        files = {
            "HEAD": b"ref: refs/heads/none\n",
            "config": comparison.CONFIG + self._form() + self._sharing(),
            "info/attributes": comparison.ATTRIBUTES,
            "info/exclude": self.user_excludes(),
        }
        for name, content in files.items():
            if _content(self.directory / name) != content:
                durable.replace(self.directory / name, content, sync=False)

    def move_to_temporary(self) -> None:
        """Moves to a directory that is removed together with this object."""
        import shutil  # noqa: PLC0415  rarely
        import tempfile  # noqa: PLC0415
        import weakref  # noqa: PLC0415

        self.directory = Path(tempfile.mkdtemp(prefix="gitcp-scan-"))
        self.index = self.directory / "index"
        self.is_temporary = True
        for name in _DIRECTORIES:
            (self.directory / name).mkdir()
        weakref.finalize(self, shutil.rmtree, self.directory, ignore_errors=True)

    def _form(self) -> bytes:
        """Returns the lines that tell git which hash the ids of an index have."""
        form = self._repository.form
        return b"" if form is SHA1 else _OTHER_FORM % form.name.encode()

    def _sharing(self) -> bytes:
        """Returns the lines that make git share its own files here as in the repository."""
        value = self._repository.setting("core.sharedrepository")
        if not self._repository.access.shared or value is None:
            return b""
        return f"[core]\n\tsharedRepository = {value.strip()}\n".encode()

    def user_excludes(self) -> bytes:
        """Returns the content of the user's own `info/exclude`."""
        return _content(self._repository.common_dir / "info" / "exclude") or b""

    def _environment(self, top: Path | None = None) -> dict[str, str]:
        return comparison.naming(self.directory, top or self._top)

    def _settings(self) -> list[str]:
        # The repository's own setting is not in the private configuration.
        settings: list[str] = []
        for name in ("core.excludesfile", "core.ignorecase"):
            value = self._repository.setting(name)
            if value is not None:
                settings += ["-c", f"{name}={value}"]
        return settings

    def start_comparison(self) -> Comparison:
        """Starts the comparison of the index with the files.

        A comparison that was started early continues, unless the index was replaced
        since.
        """
        early = comparison.take(self.directory, self._top)
        return early or comparison.start(self.directory, self._top)

    def start_writing(
        self, index: bytes, directory: int, lock: int, workers: int
    ) -> Process:
        """Starts to write the files of an index below a directory; nothing there is replaced.

        git gets the directory as a descriptor: a path could lead elsewhere by then. No rule,
        filter, hook or setting of the project or the user applies. `lock` is the descriptor
        of a lock: git and its workers hold it until they end, even if this process is
        killed. They are a process group.
        """
        file = self.directory / "missing"
        durable.replace(file, index, sync=False)
        environment = {
            **self._environment(Path(os.curdir)),
            **_ALONE,
            "GIT_INDEX_FILE": str(file),
            "GIT_OBJECT_DIRECTORY": str(self._repository.common_dir / "objects"),
        }
        settings = (f"checkout.workers={workers}", "checkout.thresholdForParallelism=1")
        words = [word for setting in settings for word in ("-c", setting)]
        return start(
            [*words, "checkout-index", "--all", "--quiet"],
            cwd=f"/proc/self/fd/{directory}",
            env=environment,
            new_session=True,
            inherited=(lock,),
        )

    def list_matching(self, globs: Sequence[str]) -> list[bytes]:
        """Returns every file in the work tree that matches ignore patterns."""
        # No index: everything on disk counts as untracked.
        found = self._matching(globs, "--others", self.directory / "no-index")
        return [path for path in found if path[-1:] != b"/"]

    def list_captured(self, globs: Sequence[str]) -> list[bytes]:
        """Returns every file of this git's index that matches ignore patterns."""
        return self._matching(globs, "--cached", self.index)

    def matching(self, globs: Sequence[str], paths: Iterable[bytes]) -> list[bytes]:
        """Returns those of some paths that match ignore patterns, whatever their type.

        Git's own listing leaves out anything that is neither a file nor a link.
        """
        form = self._repository.form
        entries = dict.fromkeys(paths, (FILE, _ANY_BYTE * form.size))
        if not entries:
            return []
        index = self.directory / "named"
        durable.replace(index, indexes.encode_skipped(entries, form), sync=False)
        return self._matching(globs, "--cached", index)

    def _matching(self, globs: Sequence[str], which: str, index: Path) -> list[bytes]:
        patterns = [word for glob in globs for word in ("-x", glob)]
        out = self._repository.run(
            *self._settings(),
            "ls-files",
            "-z",
            which,
            "--ignored",
            *patterns,
            environment={**self._environment(), "GIT_INDEX_FILE": str(index)},
        )
        return out.split(b"\0")[:-1]

    def ignore_checker(
        self,
        top: Path | None = None,
        sparse: Mapping[bytes, tuple[int, bytes]] | None = None,
    ) -> "IgnoreChecker":
        """Returns a checker of the ignore rules, backed by one git process.

        The rules are those of the work tree, or of `top`. `sparse` are the ignore files
        that only the user's index has: mode and oid by path.
        """
        environment = self._environment(top)
        if sparse:
            index = self.directory / "rules"
            raw = indexes.encode_skipped(sparse, self._repository.form)
            durable.replace(index, raw, sync=False)
            environment["GIT_INDEX_FILE"] = str(index)
            objects = self._repository.common_dir / "objects"
            environment["GIT_OBJECT_DIRECTORY"] = str(objects)
        return IgnoreChecker(
            self._repository.start(
                *self._settings(),
                "check-ignore",
                "-z",
                "--stdin",
                "--verbose",
                "--non-matching",
                # Git does not judge paths that the index has: here, ignore files.
                *([] if sparse else ["--no-index"]),
                environment=environment,
                feed=True,
                cwd=top,
            ),
            # Git for macOS reads names from the disk that way, and rules are written so.
            compose=sys.platform == "darwin"
            and self._repository.flag("core.precomposeunicode"),
        )


class IgnoreChecker:
    """Asks one `git check-ignore` about many paths, level by level.

    With `compose`, names are compared with the rules in Unicode's composed form.
    """

    def __init__(self, process: Process, *, compose: bool = False) -> None:
        self._process = process
        self._compose = compose

    def ignored(self, paths: Sequence[bytes]) -> set[bytes]:
        """Returns those of the paths that the ignore rules name.

        Raises:
            GitFailedError: git gave up.
        """
        if not paths:
            return set()
        if self._compose and not all(path.isascii() for path in paths):
            forms = {path: composed(path) for path in paths}
            named = self._ask(list(forms.values()))
            return {path for path, form in forms.items() if form in named}
        return self._ask(paths)

    def _ask(self, paths: Sequence[bytes]) -> set[bytes]:
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise ValueError("a checker needs both pipes")

        def feed() -> None:
            # If the pipe is broken, the reader below sees the end and reports it.
            with suppress(BrokenPipeError):
                # "./" keeps a name that starts with a colon from being read as magic.
                stdin.write(b"".join(b"./" + path + b"\0" for path in paths))
                stdin.flush()

        writer = threading.Thread(target=feed)
        writer.start()
        ignored: set[bytes] = set()
        rest = b""
        left = len(paths) * _FIELDS
        while left:
            block = stdout.read1(1 << 20)  # type: ignore[attr-defined]
            if not block:
                break
            *fields, rest = (rest + block).split(b"\0")
            # Whole records only; an incomplete one waits for the next block.
            whole = len(fields) // _FIELDS * _FIELDS
            for at in range(0, whole, _FIELDS):
                pattern, path = fields[at + 2], fields[at + 3]
                if pattern and not pattern.startswith(b"!"):
                    ignored.add(path[2:])
            left -= whole
            if whole < len(fields):
                rest = b"\0".join([*fields[whole:], rest])
        writer.join()
        if left:
            _, said = self._process.communicate()
            raise failure(self._process, said)
        return ignored

    def close(self) -> None:
        """Ends the git process."""
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        if self._process.stdout is not None:
            self._process.stdout.close()
        if self._process.stderr is not None:
            self._process.stderr.close()
        self._process.wait()
