"""The shell blocks of a page that several people run, each in a role: ```sh ROLE."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.gitrepo import gitcp_environment

SOURCE = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```sh (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def scripts(page: str) -> list[tuple[str, str]]:
    """Returns the role and the commands of each block, in the order of the page."""
    return _BLOCK.findall((SOURCE / "docs" / "how-to" / page).read_text())


class Person:
    """A shell that keeps its directory from one block of a page to the next."""

    def __init__(
        self, name: str, base: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        """Makes a directory and a home below `base`; `settings` are of git."""
        self.name = name
        self.directory = base / name
        self.directory.mkdir(exist_ok=True)
        home = base / f"home-{name}"
        (home / "bin").mkdir(parents=True)
        script = home / "bin" / "gitcp"
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m gitcp "$@"\n')
        script.chmod(0o755)
        self._where = home / "where"
        values = {
            "user.name": name.title(),
            "user.email": f"{name}@example.org",
            "init.defaultBranch": "main",
            "maintenance.auto": "false",
            **(settings or {}),
        }
        for key, value in values.items():
            subprocess.run(
                ["git", "config", "--file", str(home / ".gitconfig"), key, value],
                check=True,
            )
        self.environment = gitcp_environment(
            {
                "HOME": str(home),
                "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
                "PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}",
            }
        )

    def run(self, script: str, *, status: int = 0) -> str:
        """Runs commands; returns what they print, errors included."""
        ending = f'\ncode=$?; pwd >"{self._where}"; exit $code'
        if status == 0:
            script = f"set -eu\n{script}"
        done = subprocess.run(
            ["bash", "-c", script + ending],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
            check=False,
        )
        said = done.stdout.decode()
        assert done.returncode == status, f"{self.name}: {script}\n{said}"
        if self._where.exists():
            self.directory = Path(self._where.read_text().removesuffix("\n"))
        return said


def play(page: str, people: Mapping[str, Person]) -> dict[str, str]:
    """Runs a page from its beginning; returns what each role was told, all of it."""
    told = dict.fromkeys(people, "")
    for role, script in scripts(page):
        told[role] += people[role].run(script)
    return told
