"""Two machines with a cable between them: network namespaces, where root may make them."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.servers import Host

_WAIT = 60
# A reachable host with nothing listening on this port.
_KNOCK = """
import socket, sys, time
while True:
    try:
        socket.create_connection((sys.argv[1], 9), timeout=2)
    except ConnectionRefusedError:
        break
    except OSError:
        time.sleep(0.05)
"""
_PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"


class Cable:
    """What joins two hosts, and can be pulled out."""

    def __init__(self, ip: str, name: str) -> None:
        self._ip = ip
        self.near = Host("10.77.0.1", (ip, "netns", "exec", f"{name}-a"))
        self.far = Host("10.77.0.2", (ip, "netns", "exec", f"{name}-b"))
        self._name = name

    def lay(self) -> None:
        """Makes both hosts and joins them.

        Raises:
            CalledProcessError: this machine does not let us.
        """
        for end in ("a", "b"):
            self._run("netns", "add", f"{self._name}-{end}")
            self._run("-n", f"{self._name}-{end}", "link", "set", "lo", "up")
        self._run(
            *("link", "add", "eth0", "netns", f"{self._name}-a", "type", "veth"),
            *("peer", "name", "eth0", "netns", f"{self._name}-b"),
        )
        for end, host in (("a", self.near), ("b", self.far)):
            inside = ("-n", f"{self._name}-{end}")
            self._run(*inside, "address", "add", f"{host.address}/24", "dev", "eth0")
            self._run(*inside, "link", "set", "eth0", "up")
            for name in ("tcp_rmem", "tcp_wmem"):
                # Little is on its way at any time.
                text = f"echo 4096 65536 131072 >/proc/sys/net/ipv4/{name}"
                subprocess.run(
                    [*host.prefix, "sh", "-c", text], check=True, capture_output=True
                )

    def cut(self) -> None:
        """Nothing comes through from now on, without an error to either side."""
        self._run("-n", f"{self._name}-a", "link", "set", "eth0", "down")

    def mend(self) -> None:
        """As it was, once each host has found the other again.

        Linux notices a cable once a second, and does not ask at once again for an address
        that got no answer: until then there is no route to the host.
        """
        self._run("-n", f"{self._name}-a", "link", "set", "eth0", "up")
        for host, other in ((self.near, self.far), (self.far, self.near)):
            subprocess.run(
                [*host.prefix, sys.executable, "-c", _KNOCK, other.address],
                check=True,
                timeout=_WAIT,
            )

    def remove(self) -> None:
        """Takes both hosts away, with the cable and all that still runs there."""
        for end in ("a", "b"):
            name = f"{self._name}-{end}"
            with contextlib.suppress(subprocess.CalledProcessError):
                for pid in self._run("netns", "pids", name).split():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                self._run("netns", "delete", name)

    def _run(self, *args: str) -> bytes:
        return subprocess.run([self._ip, *args], check=True, capture_output=True).stdout


@contextlib.contextmanager
def two_hosts() -> Iterator[Cable]:
    """Yields two joined hosts; skips the test where there can be none."""
    ip = shutil.which("ip", path=_PATH)
    if ip is None:
        pytest.skip("ip is not installed (iproute2)")
    if os.getuid() != 0:
        pytest.skip("only root can make network namespaces")
    cable = Cable(ip, f"gitcp-{secrets.token_hex(3)}")
    try:
        try:
            cable.lay()
        except subprocess.CalledProcessError as exc:
            pytest.skip(f"no network namespaces here: {exc.stderr.decode().strip()}")
        yield cable
    finally:
        cable.remove()
