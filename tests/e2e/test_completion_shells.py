"""Completion in the shells themselves: a key is pressed, and the screen is read."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.gitrepo import gitcp_environment, run_gitcp, write_files
from tests.support.hooks import program

_DEADLINE = 120


@pytest.fixture
def environment(repo, tmp_path) -> dict[str, str]:
    write_files(repo, {"src/vat.py": b"1", "src/b.py": b"2"})
    run_gitcp(repo, "save", "-m", "add VAT, and more: yes")
    write_files(repo, {"src/b.py": b"4"})
    run_gitcp(repo, "save", "-m", "tidy up", "--label", "before-refactor")
    run_gitcp(repo, "save", "--allow-empty", "-s", "auth/try", "-m", "another way")
    home = gitcp_environment()["PYTHONPATH"]
    program(
        tmp_path / "bin" / "gitcp",
        f'PYTHONPATH={home} exec {sys.executable} -P -m gitcp "$@"',
    )
    environment = gitcp_environment({"LC_ALL": "C.UTF-8", "TERM": "dumb"})
    environment["PATH"] = f"{tmp_path / 'bin'}:{environment['PATH']}"
    environment["HOME"] = str(tmp_path)
    return environment


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} (apt-get install {shell})")


class Terminal:
    """An interactive shell."""

    def __init__(self, argv: list[str], cwd: Path, env: dict[str, str]) -> None:
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(argv[0], argv, env)
        self.seen = b""

    def type(self, keys: str) -> None:
        """Presses keys."""
        self.seen = b""
        os.write(self.fd, keys.encode())

    def wait(self, *texts: str) -> None:
        """Waits until texts stand on the screen, in this order."""
        end = time.monotonic() + _DEADLINE
        while True:
            at = 0
            shown = self.seen.decode("utf-8", "replace")
            for text in texts:
                at = shown.find(text, at) + len(text)
                if at < len(text):
                    break
            else:
                return
            assert time.monotonic() < end, (texts, shown)
            if select.select([self.fd], [], [], 0.2)[0]:
                self.seen += os.read(self.fd, 65536)

    def close(self) -> None:
        """Ends the shell."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


STARTS = {
    "bash": (
        ["bash", "--norc", "--noprofile", "-i"],
        """bind "set show-all-if-ambiguous on"; bind "set bell-style none"
        eval "$(gitcp completion bash)"; echo rea""dy\n""",
    ),
    "zsh": (
        ["zsh", "-f", "-i"],
        """PS1='$ '; unsetopt beep; autoload -U compinit; compinit -u -D
        eval "$(gitcp completion zsh)"; echo rea""dy\n""",
    ),
}


@pytest.fixture(params=sorted(STARTS))
def terminal(request, repo, environment) -> Iterator[Terminal]:
    needs(request.param)
    argv, start = STARTS[request.param]
    shell = Terminal(argv, repo, environment)
    try:
        shell.type(start)
        shell.wait("ready")
        yield shell
    finally:
        shell.close()


def test_a_key_shows_numbers_with_their_prompts(terminal):
    terminal.type("gitcp restore \t")
    terminal.wait(
        "3 ", "another way", "2 ", "tidy up", "1 ", "add VAT, and more: yes",
        "before-refactor", "tidy up",
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "keys_and_screens",
    [
        [("gitcp restore be\t", "restore before-refactor ")],
        [("gitcp show auth/try:1\t", "show auth/try:1 ")],
        [("gitcp switch m\t", "switch main ")],
        [("gitcp config maxF\t", "config maxFileSize ")],
        # A directory is not the end of a path.
        [("gitcp cat 1 s\t", "src/"), ("v\t", "vat.py ")],
        [("gitcp save --transcript sr\t", "--transcript src/")],
    ],
    ids=lambda steps: steps[0][0].strip(),
)
def test_one_that_fits_is_inserted(terminal, keys_and_screens):
    for keys, screen in keys_and_screens:
        terminal.type(keys)
        terminal.wait(screen)


def test_fish_shows_values_with_descriptions(repo, environment):
    needs("fish")

    def completed(line: str) -> list[str]:
        done = subprocess.run(
            ["fish", "-c", f'gitcp completion fish | source; complete -C "{line}"'],
            cwd=repo,
            env=environment,
            capture_output=True,
            check=True,
        )
        return done.stdout.decode().splitlines()

    numbers = completed("gitcp restore ")
    assert numbers[:3] == ["3\tanother way", "2\ttidy up", "1\tadd VAT, and more: yes"]
    assert "before-refactor\ttidy up" in numbers
    assert completed("gitcp show auth/try:1") == ["auth/try:1\tanother way"]
    assert completed("gitcp switch ") == ["auth/try\tanother way", "main\ttidy up"]
    assert completed("gitcp cat 1 s") == ["src/"]
    assert completed("gitcp cat 1 src/v") == ["src/vat.py"]
    assert [one.split("\t")[0] for one in completed("gitcp config maxF")] == [
        "maxFileSize"
    ]
    assert "src/" in completed("gitcp save --transcript ")
