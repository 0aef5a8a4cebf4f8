"""Object stores for tests: moto's S3 server on the loopback interface."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.servers import free_port

_WAIT = 60.0


# As werkzeug logs a request; the query tells a listing.
_REQUEST = re.compile(r'"([A-Z]+) (\S+) HTTP/1.1" (\d+)')


class Server(NamedTuple):
    """A server: the environment that leads a client to it, and the log of its requests."""

    environment: dict[str, str]
    log: Path

    def requests(self) -> list[tuple[str, str, str]]:
        """The requests so far: method, path with query, status."""
        return _REQUEST.findall(self.log.read_text("utf-8", "replace"))


@contextlib.contextmanager
def s3_server(bucket: str, log: Path) -> Iterator[Server]:
    """Runs a server with one bucket."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with log.open("wb") as file:
        server = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        _make(f"{url}/{bucket}", server)
        environment = {
            "AWS_ENDPOINT_URL": url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }
        yield Server(environment, log)
    finally:
        server.terminate()
        server.wait()


def _make(url: str, server: subprocess.Popen[bytes]) -> None:
    """Makes a bucket as soon as the server answers."""
    deadline = time.monotonic() + _WAIT
    while True:
        try:
            request = urllib.request.Request(url, method="PUT")
            with urllib.request.urlopen(request, timeout=_WAIT):
                return
        except OSError:
            assert server.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.05)
