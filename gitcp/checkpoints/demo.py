"""`gitcp demo`: a scripted session in a temporary project; checks each claim that it makes."""

import json
import os
import re
import shlex
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gitcp.git.command import Finished, collect

_PROGRAM = (sys.executable, "-P", "-m", "gitcp")
_FOREIGN = re.compile(r"(GIT|GITCP|XDG)_")
_WHO = ("-c", "user.name=Demo", "-c", "user.email=demo@example.invalid")


class Title(NamedTuple):
    """A chapter begins."""

    text: str


class Remark(NamedTuple):
    """A sentence about what comes."""

    text: str


class Command(NamedTuple):
    """A command line as one would type it, and what it printed."""

    line: str
    done: Finished


class DemoCheck(NamedTuple):
    """A claim, and whether it held."""

    text: str
    passed: bool


Event = Title | Remark | Command | DemoCheck
_Files = dict[str, tuple[int, bytes]]

_TURNS = (
    (
        "Add VAT to the total.",
        "Done: src/vat.py holds a table of rates.",
        r"""echo 'RATES = {"DE": 19, "FR": 20}' > src/vat.py
cat > src/invoice.py <<END
from vat import RATES

def total(net, land):
    return net + net * RATES[land] / 100
END""",
        (
            *("-m", "VAT works", "--task", "VAT on invoices"),
            *("--decision", "rates in a table", "--why", "they change by law"),
        ),
    ),
    (
        "It is off by a cent. Fix it, and ship the logo.",
        "Floats were a dead end: amounts are whole cents now.",
        r"""sed -i.bak -e 's/net/cents/g; s, / 100, // 100,' src/invoice.py
rm src/invoice.py.bak
printf '\211PNG\r\n\000\377' > src/logo.png
printf '#!/bin/sh\nexec python3 src/invoice.py\n' > run && chmod +x run
ln -s src/invoice.py main.py && mkdir out""",
        (
            *("-m", "whole cents"),
            *("--tried", "round() on floats", "--why", "0.5 goes to the even side"),
        ),
    ),
    (
        "Now write a test.",
        "src/test_invoice.py checks both countries.",
        r"""echo 'from invoice import total' > src/test_invoice.py
echo 'assert total(1000, "DE") == 1190' >> src/test_invoice.py
echo 'VAT: see src/vat.py' >> README.md""",
        ("-m", "with a test", "--next", "reverse charge", "--position", '{"turn": 3}'),
    ),
)
_TOLD = (b"rates in a table", b"round() on floats", b"reverse charge")
_WRECK = "rm -rf src run main.py && git reset -q --hard && git clean -qfd"


def demo(directory: Path, *, color: bool) -> Iterator[Event]:
    """Plays the story in an empty directory and yields what happens.

    It uses nothing of the user's: no configuration, no identity, no home.
    """
    return _Story(directory, color=color).play()


class _Story:
    def __init__(self, directory: Path, *, color: bool) -> None:
        self._project = directory / "shop"
        self._chat = directory / "chat.jsonl"
        self._color = color
        home = directory / "home"
        for folder in (self._project, home):
            folder.mkdir()
        self._environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not _FOREIGN.match(name)
            },
            "HOME": str(home),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "PYTHONPATH": str(Path(__file__).parent.parent.parent),
            "COLUMNS": "100",
        }
        self._messages: list[dict[str, str]] = []

    def play(self) -> Iterator[Event]:
        yield from self._begin()
        turns: list[tuple[_Files, bytes]] = []
        yield Title("An agent works; each turn becomes a checkpoint")
        for turn in _TURNS:
            yield from self._turn(*turn)
            turns.append((self._files(), self._chat.read_bytes()))
        yield self._gitcp("log")
        good, chat = turns[-1]
        untouched = self._own()

        yield Title("Then it wrecks the project")
        yield self._shell(_WRECK)
        self._chat.unlink()
        wreck = self._files()
        yield DemoCheck("the work and the conversation are gone", wreck != good)
        own = self._own()
        yield DemoCheck(
            "git has nothing of it: only the first commit", own == untouched
        )

        yield Title("Back: files, conversation and decisions together")
        yield self._gitcp("restore", "last", "--yes")
        yield DemoCheck(
            f"{len(good)} files, folders and links as before, byte for byte",
            self._files() == good,
        )
        yield self._gitcp("messages", "-o", str(self._chat))
        yield DemoCheck(
            f"{len(self._messages)} messages as before, byte for byte",
            self._chat.is_file() and self._chat.read_bytes() == chat,
        )
        output = self._gitcp("context")
        yield output
        yield DemoCheck(
            "the context knows the decision, the dead end and the next step",
            all(
                text in output.done.output
                for text in (
                    b"rates in a table",
                    b"round() on floats",
                    b"reverse charge",
                )
            ),
        )
        yield DemoCheck("HEAD, branches and index were not touched", self._own() == own)

        yield Title("A restore can be undone, and the undoing as well")
        yield self._gitcp("undo", "--yes")
        yield DemoCheck("the wreck is back, exactly", self._files() == wreck)
        yield self._gitcp("undo", "--yes")
        yield DemoCheck("and the work again", self._files() == good)

        yield from self._fork(*turns[0])
        yield self._gitcp("sessions")
        yield from self._end(good)

    def _fork(self, files: _Files, chat: bytes) -> Iterator[Event]:
        yield Title("Another way, from the first turn on")
        yield self._gitcp("fork", "1", "try-decimals", "--yes")
        yield DemoCheck("files as after the first turn", self._files() == files)
        yield self._gitcp("messages", "-o", str(self._chat))
        yield DemoCheck(
            "conversation as after the first turn",
            self._chat.read_bytes() == chat,
        )

    def _begin(self) -> Iterator[Event]:
        yield Title("A project, with one commit")
        yield self._shell(
            "git init -q -b main . && mkdir src\n"
            "echo '# Shop' > README.md\n"
            "printf 'def total(net):\\n    return net\\n' > src/invoice.py"
        )
        yield self._ran("git", "add", ".")
        yield self._ran("git", *_WHO, "commit", "-q", "-m", "first", shown=len(_WHO))

    def _turn(
        self, asked: str, answered: str, script: str, options: Sequence[str]
    ) -> Iterator[Event]:
        yield Remark(f"user:  {asked}")
        yield self._shell(script)
        yield Remark(f"agent: {answered}")
        for role, text in (("user", asked), ("assistant", answered)):
            self._messages.append({"role": role, "content": text})
        lines = [
            json.dumps(message, separators=(",", ":")) for message in self._messages
        ]
        self._chat.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        yield self._gitcp("save", "--messages", "../chat.jsonl", *options)

    def _end(self, good: _Files) -> Iterator[Event]:
        yield Title("And it is plain git, even after git has cleaned up")
        yield self._shell("git gc -q --prune=now && git fsck --strict --no-dangling")
        verified = self._gitcp("verify")
        yield verified
        yield DemoCheck("every object is there and sound", verified.done.status == 0)
        yield self._gitcp("switch", "main/main")
        yield self._gitcp("restore", "3", "--yes")
        yield DemoCheck("the third turn still comes back", self._files() == good)

    def _gitcp(self, *args: str) -> Command:
        color = ("--color", "always") if self._color else ()
        done = collect(
            [*_PROGRAM, *color, *args], cwd=self._project, env=self._environment
        )
        return Command(self._short(["gitcp", *args]), done)

    def _ran(self, *args: str, shown: int = 0) -> Command:
        done = collect(args, cwd=self._project, env=self._environment)
        return Command(self._short([args[0], *args[1 + shown :]]), done)

    def _shell(self, script: str) -> Command:
        done = collect(
            ["sh", "-e", "-c", script], cwd=self._project, env=self._environment
        )
        return Command(script, done)

    def _short(self, words: Sequence[str]) -> str:
        return shlex.join(words).replace(str(self._chat), "../chat.jsonl")

    def _own(self) -> tuple[bytes, bytes]:
        """Returns what only the user may change: HEAD with all branches, and the index."""
        refs = collect(
            ["git", "for-each-ref", "refs/heads", "refs/tags", "refs/stash"],
            cwd=self._project,
            env=self._environment,
        )
        index = collect(
            ["git", "ls-files", "--stage"], cwd=self._project, env=self._environment
        )
        head = (self._project / ".git" / "HEAD").read_bytes()
        return head + refs.output, index.output

    def _files(self) -> _Files:
        """Returns kind, executable bit and content of every file in the project."""
        files: _Files = {}
        for path in sorted(self._project.rglob("*")):
            name = path.relative_to(self._project).as_posix()
            if name == ".git" or name.startswith(".git/"):
                continue
            mode = path.lstat().st_mode
            kind = stat.S_IFMT(mode)
            if stat.S_ISLNK(mode):
                files[name] = kind, os.fsencode(path.readlink())
            elif stat.S_ISREG(mode):
                files[name] = kind | (mode & stat.S_IXUSR), path.read_bytes()
            else:
                files[name] = kind, b""
        return files
