"""Object stores for tests on the loopback interface: moto's S3 server, and Azurite."""

from __future__ import annotations

import base64
import contextlib
import email.utils
import hashlib
import hmac
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.servers import free_port

_WAIT = 60.0
# What every Azurite has: no secret.
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
_AZURE_VERSION = "2021-12-02"

# As werkzeug and Azurite log a request; the query tells a listing.
_REQUEST = re.compile(r'"([A-Z]+) (\S+) HTTP/1.1" (\d+)')


class Server(NamedTuple):
    """A server: a bucket's URL, the environment that leads there, its log of requests."""

    url: str
    environment: dict[str, str]
    log: Path

    def requests(self) -> list[tuple[str, str, str]]:
        """The requests so far: method, path with query, status."""
        return _REQUEST.findall(self.log.read_text("utf-8", "replace"))


@contextlib.contextmanager
def s3_server(bucket: str, log: Path) -> Iterator[Server]:
    """Runs moto's server with one bucket."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    environment = {
        "AWS_ENDPOINT_URL": url,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }
    with _serving(command, log, f"{url}/{bucket}", dict):
        yield Server(f"s3://{bucket}", environment, log)


@contextlib.contextmanager
def azure_server(container: str, log: Path) -> Iterator[Server]:
    """Runs Azurite with one container; skips the test where it is not installed."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("there is no azurite-blob (npm's azurite)")
    port = free_port()
    url = f"http://127.0.0.1:{port}/{_ACCOUNT}"
    command = [
        *(program, "--blobHost", "127.0.0.1", "--blobPort", str(port)),
        *("--inMemoryPersistence", "--disableTelemetry", "--skipApiVersionCheck"),
    ]
    environment = {
        "AZURE_STORAGE_ENDPOINT": url,
        "AZURE_ALLOW_HTTP": "true",
        "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
        "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
    }
    made = f"{url}/{container}?restype=container"
    with _serving(command, log, made, lambda: _signed(container)):
        yield Server(f"az://{container}", environment, log)


def _signed(container: str) -> dict[str, str]:
    """The headers of the request that makes a container, signed with the account's key."""
    date = email.utils.formatdate(usegmt=True)
    headers = f"x-ms-date:{date}\nx-ms-version:{_AZURE_VERSION}"
    resource = f"/{_ACCOUNT}/{_ACCOUNT}/{container}\nrestype:container"
    # Of the eleven other headers that are signed none is sent.
    text = "PUT" + 12 * "\n" + f"{headers}\n{resource}"
    made = hmac.new(base64.b64decode(_KEY), text.encode(), hashlib.sha256).digest()
    return {
        "x-ms-date": date,
        "x-ms-version": _AZURE_VERSION,
        "Authorization": f"SharedKey {_ACCOUNT}:{base64.b64encode(made).decode()}",
    }


@contextlib.contextmanager
def _serving(
    command: list[str], log: Path, made: str, headers: Callable[[], Mapping[str, str]]
) -> Iterator[None]:
    """Runs a server in which a bucket was made by a request."""
    with log.open("wb") as file:
        server = subprocess.Popen(command, cwd=log.parent, stdout=file, stderr=file)
    try:
        _make(made, headers, server)
        yield
    finally:
        server.terminate()
        server.wait()


def _make(
    url: str, headers: Callable[[], Mapping[str, str]], server: subprocess.Popen[bytes]
) -> None:
    """Makes a bucket as soon as the server answers."""
    deadline = time.monotonic() + _WAIT
    while True:
        try:
            request = urllib.request.Request(url, method="PUT", headers=dict(headers()))
            with urllib.request.urlopen(request, timeout=_WAIT):
                return
        except OSError:
            assert server.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.05)
