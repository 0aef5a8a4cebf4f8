"""Running a program with no network but one port on loopback.

As root a program gets a network namespace of its own. The port in it leads, over a Unix
socket, to a server outside. Elsewhere it runs as it is, and only proxies that lead nowhere
keep it from the network.

    with Gate(server_port, directory) as gate:
        subprocess.run([*gate.prefix, "claude", …])
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Self


@functools.cache
def possible() -> bool:
    """Whether programs can be started without a network here."""
    try:
        done = subprocess.run(
            ["unshare", "-n", "true"], capture_output=True, check=False
        )
    except OSError:
        return False
    return done.returncode == 0


class Gate:
    """The way from inside to a server; `prefix` starts a program behind it."""

    def __init__(self, port: int, directory: Path) -> None:
        self._port = port
        self._path = str(directory / "gate.sock")
        self._listener = socket.socket(socket.AF_UNIX)

    def __enter__(self) -> Self:
        self._listener.bind(self._path)
        self._listener.listen()
        threading.Thread(
            target=_serve,
            args=(self._listener, ("127.0.0.1", self._port), socket.AF_INET),
            daemon=True,
        ).start()
        return self

    def __exit__(self, *_: object) -> None:
        # Wakes the thread that waits in accept, which closing alone does not.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    @property
    def prefix(self) -> list[str]:
        if not possible():
            return []
        inside = [sys.executable, "-P", __file__, str(self._port), self._path]
        return ["unshare", "-n", *inside]


def _serve(listener: socket.socket, target: tuple[str, int] | str, family: int) -> None:
    while True:
        try:
            near, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_join, args=(near, target, family), daemon=True).start()


def _join(near: socket.socket, target: tuple[str, int] | str, family: int) -> None:
    """Carries one connection on to where it leads, both ways."""
    with near, socket.socket(family) as far, contextlib.suppress(OSError):
        far.connect(target)
        back = threading.Thread(target=_pump, args=(far, near), daemon=True)
        back.start()
        _pump(near, far)
        back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _loopback_up() -> None:
    import fcntl
    import struct

    up, running, set_flags = 0x1, 0x40, 0x8914
    with socket.socket() as any_socket:
        request = struct.pack("16sH22x", b"lo", up | running)
        fcntl.ioctl(any_socket, set_flags, request)


def main() -> None:
    """Inside: opens the port, runs the program, ends as it ends."""
    port, path, *command = sys.argv[1:]
    _loopback_up()
    listener = socket.create_server(("127.0.0.1", int(port)))
    threading.Thread(
        target=_serve, args=(listener, path, socket.AF_UNIX), daemon=True
    ).start()
    done = subprocess.run(command, check=False)
    if done.returncode < 0:
        signal.signal(-done.returncode, signal.SIG_DFL)
        os.kill(os.getpid(), -done.returncode)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
