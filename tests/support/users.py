"""Other users of the machine: processes with another uid, group and umask. Needs root."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import gitcp
from tests.support.gitrepo import gitcp_environment

GROUP = 42420
FIRST_UID = 42421
_PYTHONS = (sys.executable, f"/usr/bin/python{sys.version_info[0]}")
_TIMEOUT = 120

Done = subprocess.CompletedProcess[bytes]


class User:
    """A user with a home below `place`; one of the group that shares things."""

    def __init__(self, place: Path, number: int, *, umask: int = 0o022) -> None:
        self.uid = FIRST_UID + number
        self.umask = umask
        home = place / f"home-{number}"
        home.mkdir()
        os.chown(home, self.uid, GROUP)
        config = home / ".gitconfig"
        config.write_text(
            f"[user]\n\tname = User {number}\n\temail = u{number}@example.invalid\n"
            "[safe]\n\tdirectory = *\n"
        )
        config.chmod(0o644)
        self._environment = {
            **gitcp_environment({"GIT_CONFIG_GLOBAL": str(config)}),
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
        }
        packages = sysconfig.get_paths()["purelib"]
        inherited = [path for path in sys.path if path.endswith("site-packages")]
        self._environment["PYTHONPATH"] = os.pathsep.join(
            [self._environment["PYTHONPATH"], packages, *inherited]
        )

    def run(self, cwd: Path, *args: str) -> Done:
        """Runs a program as this user; never raises on its exit."""
        return subprocess.run(
            args,
            cwd=cwd,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT,
            user=self.uid,
            group=GROUP,
            extra_groups=[],
            umask=self.umask,
        )

    def git(self, cwd: Path, *args: str) -> bytes:
        """Runs git as this user and returns its output."""
        done = self.run(cwd, "git", *args)
        assert done.returncode == 0, (args, done.stderr)
        return done.stdout

    def argv(self, *args: str) -> list[str]:
        """The command that starts gitcp."""
        return [_interpreter(), "-P", "-m", "gitcp", *args]

    def gitcp(self, cwd: Path, *args: str, status: int = 0) -> str:
        """Runs gitcp as this user, and returns what it printed."""
        done = self.run(cwd, *self.argv(*args))
        text = (done.stdout + done.stderr).decode("utf-8", "replace")
        assert done.returncode == status, (args, done.returncode, text)
        return text


_found: list[str] = []


def _interpreter() -> str:
    """A Python that any user may start: root's own often lies in a closed home.

    Skips where there is none, or where the package lies in a closed directory.
    """
    if not _found:
        for python in _PYTHONS:
            try:
                done = subprocess.run(
                    [python, "-c", "import sys; print(sys.version_info[:2])"],
                    cwd="/",
                    capture_output=True,
                    text=True,
                    check=False,
                    user=FIRST_UID,
                    group=GROUP,
                    extra_groups=[],
                )
            except OSError:
                continue
            if done.stdout.strip() == str(sys.version_info[:2]):
                _found.append(python)
                break
        else:
            pytest.skip("there is no Python here that another user may start")
        if not _open_to_all(Path(gitcp.__file__)):
            pytest.skip("another user cannot read the package where it is installed")
    return _found[0]


def _open_to_all(path: Path) -> bool:
    return bool(path.stat().st_mode & stat.S_IROTH) and all(
        above.stat().st_mode & stat.S_IXOTH for above in path.resolve().parents
    )
