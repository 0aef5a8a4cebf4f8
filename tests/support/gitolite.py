"""gitolite behind an sshd of its own on the loopback interface, each user with a key."""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tests.support.gitrepo import git_directory
from tests.support.page_scripts import SOURCE, Person
from tests.support.servers import Host, free_port, program, running


class Gitolite(NamedTuple):
    """A gitolite: the home it has on the server, and how its users reach it."""

    home: Path
    keys: Path
    url: str

    def ssh(self, user: str) -> str:
        """The ssh command of a user, with that user's key."""
        return (
            f"ssh -F none -i {self.keys}/{user} -o IdentitiesOnly=yes -o IdentityAgent=none"
            f" -o UserKnownHostsFile={self.keys}/known -o BatchMode=yes"
        )

    def server(self) -> Person:
        """The user that gitolite belongs to, in its home."""
        person = Person("server", self.home.parent)
        person.environment = {**person.environment, **_environment(self.home)}
        return person

    def client(self, user: str) -> Person:
        """A user, to whom the server is git.example.org, with that user's key."""
        settings = {
            "core.sshCommand": self.ssh(user),
            f"url.{self.url}/.insteadOf": "gitolite3@git.example.org:",
        }
        return Person(user, self.home.parent, settings)


def _environment(home: Path) -> Mapping[str, str]:
    # gitolite asks for the user's name, and makes commits of its own.
    user = pwd.getpwuid(os.getuid()).pw_name
    kept = {
        name: value for name, value in os.environ.items() if name.startswith("GIT_")
    }
    path = f"{git_directory()}:{os.environ['PATH']}:/usr/sbin:/sbin"
    own = {"HOME": str(home), "GIT_CONFIG_GLOBAL": str(home / ".gitconfig")}
    return {**kept, **own, "USER": user, "LOGNAME": user, "PATH": path}


@contextlib.contextmanager
def gitolite(base: Path, *users: str) -> Iterator[Gitolite]:
    """Runs an sshd for a gitolite that is still to be set up; `users` get a key each.

    It logs in the user of the tests, whose home it moves: no other user of the machine and
    no file of the real home is used.
    """
    program("gitolite")
    sshd = program("sshd")
    keygen = program("ssh-keygen")
    port = free_port()
    home, keys = base / "server", base / "keys"
    home.mkdir()
    (home / "gitcp").symlink_to(SOURCE)
    keys.mkdir(mode=0o700)
    for name in ("host", *users):
        made = ["-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(keys / name)]
        subprocess.run([keygen, *made], check=True)
        shutil.copy(keys / f"{name}.pub", home)
    environment = _environment(home)
    forwarded = " ".join(
        f'"{name}={value}"'
        for name, value in environment.items()
        if name.startswith("GIT_") or name in {"HOME", "PATH"}
    )
    (keys / "config").write_text(f"""
ListenAddress 127.0.0.1
Port {port}
HostKey {keys}/host
AuthorizedKeysFile {home}/.ssh/authorized_keys
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
AcceptEnv GIT_PROTOCOL
SetEnv {forwarded}
""")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    key = (keys / "host.pub").read_text().split()
    (keys / "known").write_text(f"[127.0.0.1]:{port} {key[0]} {key[1]}\n")
    args = [sshd, "-D", "-e", "-f", str(keys / "config")]
    reach = functools.partial(Host().reach, port)
    with running(args, keys / "log", reach):
        yield Gitolite(home, keys, f"ssh://{environment['USER']}@127.0.0.1:{port}")
