"""Real servers on the loopback interface: git daemon, lighttpd with git, sshd."""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.gitrepo import git_directory

_WAIT = 30.0


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def program(name: str) -> str:
    """The path of a program that servers need; skips the test where it is not there."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


class Host(NamedTuple):
    """A machine that servers run on; `prefix` starts a program there."""

    address: str = "127.0.0.1"
    prefix: tuple[str, ...] = ()

    def reach(self, port: int) -> None:
        """Connects to a port of it, from itself.

        Raises:
            OSError: no server listens.
        """
        connect = f"import socket; socket.create_connection(('{self.address}', {port}))"
        if not self.prefix:
            socket.create_connection((self.address, port), timeout=1).close()
        elif subprocess.run(
            [*self.prefix, sys.executable, "-c", connect],
            stderr=subprocess.DEVNULL,
            check=False,
        ).returncode:
            raise ConnectionRefusedError


@contextlib.contextmanager
def running(args: list[str], log: Path, reach: Callable[[], None]) -> Iterator[None]:
    """Runs a server until the end, once it answers; `reach` raises OSError till then."""
    with log.open("wb") as out:
        server = subprocess.Popen(
            args,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        deadline = time.monotonic() + _WAIT
        while True:
            if server.poll() is not None:
                raise AssertionError(f"{args[0]} ended: {log.read_text()}")
            with contextlib.suppress(OSError):
                reach()
                break
            if time.monotonic() > deadline:
                raise AssertionError(f"{args[0]} does not answer: {log.read_text()}")
            time.sleep(0.02)
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, 15)
        server.wait(_WAIT)


@contextlib.contextmanager
def git_daemon(base: Path, host: Host | None = None) -> Iterator[str]:
    """Serves what is below a directory; yields the URL of the directory."""
    port = free_port()
    host = host or Host()
    args = [
        *host.prefix,
        "git",
        "daemon",
        "--reuseaddr",
        "--export-all",
        "--enable=receive-pack",
        f"--listen={host.address}",
        f"--port={port}",
        f"--base-path={base}",
        str(base),
    ]
    reach = functools.partial(host.reach, port)
    with running(args, base / "daemon.log", reach):
        yield f"git://{host.address}:{port}"


@contextlib.contextmanager
def web_server(base: Path, user: str, password: str) -> Iterator[str]:
    """Serves by `git http-backend` behind lighttpd, to those who know the password."""
    lighttpd = program("lighttpd")
    backend = Path(
        subprocess.run(
            ["git", "--exec-path"], capture_output=True, check=True, text=True
        ).stdout.strip(),
        "git-http-backend",
    )
    if not backend.exists():
        pytest.skip("git http-backend is not installed")
    port = free_port()
    (base / "passwords").write_text(f"{user}:{password}\n")
    config = base / "lighttpd.conf"
    config.write_text(f"""
server.document-root = "{base}"
server.bind = "127.0.0.1"
server.port = {port}
server.modules = ( "mod_auth", "mod_authn_file", "mod_setenv", "mod_alias", "mod_cgi" )
server.upload-dirs = ( "{base}" )
auth.backend = "plain"
auth.backend.plain.userfile = "{base}/passwords"
auth.require = ( "/" => ( "method" => "basic", "realm" => "git", "require" => "valid-user" ) )
alias.url = ( "/git" => "{backend}" )
cgi.assign = ( "" => "" )
setenv.set-environment = (
  "GIT_PROJECT_ROOT" => "{base}",
  "GIT_HTTP_EXPORT_ALL" => "",
  "GIT_CONFIG_NOSYSTEM" => "1",
  "GIT_CONFIG_COUNT" => "1",
  "GIT_CONFIG_KEY_0" => "safe.directory",
  "GIT_CONFIG_VALUE_0" => "*",
)
""")
    args = [lighttpd, "-D", "-f", str(config)]
    reach = functools.partial(Host().reach, port)
    with running(args, base / "lighttpd.log", reach):
        yield f"http://127.0.0.1:{port}/git"


@contextlib.contextmanager
def ssh_server(base: Path, host: Host | None = None) -> Iterator[tuple[str, str]]:
    """Yields the URL of the root directory, and the ssh command with a key for it."""
    sshd = program("sshd")
    port = free_port()
    machine = host or Host()
    place = base / "ssh"
    place.mkdir(mode=0o700)
    for name in ("host", "user"):
        subprocess.run(
            [
                program("ssh-keygen"),
                "-q",
                "-t",
                "ed25519",
                "-N",
                "",
                "-f",
                place / name,
            ],
            check=True,
        )
    shutil.copy(place / "user.pub", place / "authorized")
    (place / "home").mkdir()
    # An empty home: bash reads the user's own `.bashrc` for each command, which may take long.
    (place / "config").write_text(f"""
ListenAddress {machine.address}
Port {port}
HostKey {place}/host
AuthorizedKeysFile {place}/authorized
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
AcceptEnv GIT_PROTOCOL
SetEnv PATH={git_directory()}:/usr/local/bin:/usr/bin:/bin HOME={place}/home
""")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    key = (place / "host.pub").read_text().split()
    (place / "known").write_text(f"[{machine.address}]:{port} {key[0]} {key[1]}\n")
    args = [*machine.prefix, sshd, "-D", "-e", "-f", str(place / "config")]
    reach = functools.partial(machine.reach, port)
    with running(args, place / "log", reach):
        user = pwd.getpwuid(os.getuid()).pw_name
        command = (
            f"ssh -F none -i {place}/user -o IdentitiesOnly=yes -o IdentityAgent=none"
            f" -o UserKnownHostsFile={place}/known -o BatchMode=no"
        )
        yield f"ssh://{user}@{machine.address}:{port}", command


@contextlib.contextmanager
def deaf(answer: bytes = b"", *, drip: float = 0) -> Iterator[int]:
    """A server that takes connections and says nothing, or a byte of an answer at times."""
    import threading

    server = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()
    taken: list[socket.socket] = []

    def serve() -> None:
        server.settimeout(0.1)
        while not stop.is_set():
            try:
                one, _ = server.accept()
            except TimeoutError:
                continue
            taken.append(one)
            if drip:
                threading.Thread(target=trickle, args=(one,), daemon=True).start()

    def trickle(one: socket.socket) -> None:
        with contextlib.suppress(OSError):
            for byte in answer:
                if stop.wait(drip):
                    break
                one.sendall(bytes([byte]))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        stop.set()
        thread.join()
        for one in (server, *taken):
            one.close()


def ref_lines(prefix: str, count: int = 500) -> bytes:
    """Refs as the protocol of git lists them, some 64 KiB of them."""
    lines = [
        f"{number:040x} {prefix}{number:0100d}\n".encode() for number in range(count)
    ]
    return b"".join(b"%04x" % (len(line) + 4) + line for line in lines)


ENDLESS = """
import os, sys
head = ("0" * 39 + "1 HEAD\\0 agent=x\\n").encode()
os.write(1, b"%04x" % (len(head) + 4) + head)
block = open(sys.argv[1], "rb").read()
while True:
    os.write(1, block)
"""


def endless_ssh(base: Path, prefix: str) -> str:
    """A command to use as ssh, whose other side never ends its list of refs."""
    (base / "refs.block").write_bytes(ref_lines(prefix))
    (base / "endless.py").write_text(ENDLESS)
    return f"{sys.executable} {base / 'endless.py'} {base / 'refs.block'}"


@contextlib.contextmanager
def endless_web(prefix: str) -> Iterator[str]:
    """A web server whose list of refs never ends."""
    import http.server
    import threading

    block = ref_lines(prefix)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            kind = "application/x-git-upload-pack-advertisement"
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(b"001e# service=git-upload-pack\n0000")
            with contextlib.suppress(OSError):
                while True:
                    self.wfile.write(block)

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/x.git"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
