"""An object store in a cloud (S3, Google, Azure) through the library obstore."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from gitcp.errors import TransferError
from gitcp.git.transport import Limits
from gitcp.remotes.place import Entry, Version

_INSTALL = "install it: `pip install 'gitcp[objectstore]'`"
_PROBE = "gitcp-clock"
_RETRIES = 5
_PIECE = 4 * 1024 * 1024
# An address may hold a signature, and a server's message may be very long.
_QUERY = re.compile(r"\?\S*")
_MOST = 300


def _library() -> Any:
    """Returns the module obstore.

    Raises:
        TransferError: obstore is not installed.
    """
    try:
        import obstore  # noqa: PLC0415  optional
        import obstore.store  # noqa: PLC0415
    except ImportError as exc:
        raise TransferError(
            "an object store needs the library obstore, which is not installed",
            hint=_INSTALL,
        ) from exc
    return obstore


class Cloud:
    """A bucket, or a container, below a prefix; the environment has the credentials."""

    def __init__(self, url: str, limits: Limits) -> None:
        """Opens the store; nothing is sent yet."""
        self._obstore = _library()
        self._url = url
        errors = self._obstore.exceptions
        self._moved = (errors.AlreadyExistsError, errors.PreconditionError)
        with self._telling("opening"):
            self._store = self._obstore.store.from_url(
                url,
                client_options={
                    # These options override the environment.
                    "allow_http": _allows_http(),
                    "connect_timeout": timedelta(seconds=limits.silence),
                    "read_timeout": timedelta(seconds=limits.silence),
                    "timeout": timedelta(seconds=limits.total),
                },
                retry_config={
                    "max_retries": _RETRIES,
                    "retry_timeout": timedelta(seconds=limits.silence),
                },
            )

    @contextmanager
    def _telling(self, doing: str) -> Iterator[None]:
        """Turns the library's errors into a TransferError that says what failed."""
        try:
            yield
        except self._obstore.exceptions.BaseError as exc:
            reason = _QUERY.sub("?…", str(exc).strip().splitlines()[0])[:_MOST]
            raise TransferError(
                f"{doing} {self._url} failed: {reason}",
                hint="check the address, the network, and the credentials in the"
                " environment",
            ) from exc

    def list(self, below: str) -> Iterator[Entry]:
        """Yields the objects below a prefix; the store lists them by pages."""
        with self._telling("listing"):
            for page in self._obstore.list(self._store, prefix=below.rstrip("/")):
                for found in page:
                    yield Entry(
                        found["path"],
                        found["size"],
                        found["last_modified"].timestamp(),
                        found["e_tag"],
                    )

    def read(self, path: str, at_most: int) -> tuple[bytes, Version] | None:
        """Returns an object; None if it is not there."""
        with self._telling("reading"):
            try:
                got = self._obstore.get(self._store, path)
            except (FileNotFoundError, self._obstore.exceptions.NotFoundError):
                return None
            if got.meta["size"] > at_most:
                raise TransferError(f"{path} has more than {at_most:,} bytes")
            return bytes(got.bytes()), _version(got.meta)

    def download(self, path: str, size: int, file: Path) -> bool:
        """Writes an object to a file, in pieces; False if it is not there."""
        with self._telling("fetching from"):
            try:
                got = self._obstore.get(self._store, path)
            except (FileNotFoundError, self._obstore.exceptions.NotFoundError):
                return False
            left = size
            with file.open("xb") as target:
                for piece in got.stream(_PIECE):
                    left -= target.write(bytes(piece)[:left])
                    if not left:
                        break
        return True

    def upload(self, path: str, file: Path) -> None:
        """Stores a file; a large one in several parts."""
        with self._telling("sending to"):
            self._obstore.put(self._store, path, file, chunk_size=2 * _PIECE)

    def swap(self, path: str, data: bytes, expect: Version | None) -> Version | None:
        """Stores an object if the present version is the expected one."""
        mode: Any = "create"
        if expect is not None:
            mode = {key: text for key, text in expect._asdict().items() if text}
        with self._telling("sending to"):
            try:
                put = self._obstore.put(
                    self._store, path, data, mode=mode, use_multipart=False
                )
            except self._moved:
                return None
            except (FileNotFoundError, self._obstore.exceptions.NotFoundError):
                # The object to replace is gone.
                return None
        return _version(put)

    def remove(self, path: str) -> None:
        """Removes an object."""
        with self._telling("removing from"):
            try:
                self._obstore.delete(self._store, path)
            except (FileNotFoundError, self._obstore.exceptions.NotFoundError):
                return

    def now(self) -> float:
        """Returns the store's time, from an object that is written for this purpose."""
        with self._telling("writing to"):
            self._obstore.put(self._store, _PROBE, b"")
            at: float = self._obstore.head(self._store, _PROBE)[
                "last_modified"
            ].timestamp()
        return at


def _allows_http() -> bool:
    """Whether the environment allows a server without encryption, for tests for example."""
    names = ("AWS_ALLOW_HTTP", "AZURE_ALLOW_HTTP", "GOOGLE_ALLOW_HTTP")
    return any(os.environ.get(name, "").lower() in {"1", "true"} for name in names)


def _version(of: Any) -> Version:
    return Version(of["e_tag"], of["version"])
