"""Serves a page to this machine only, and keeps it up to date; it changes nothing.

The server listens on 127.0.0.1. Each address begins with a token that only the terminal shows.
If a page of another site reaches the server (by a name that resolves to 127.0.0.1), it refuses
the request by its Host or Origin before it checks the token.
"""

import hmac
import secrets
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple

from gitcp.errors import GitcpError
from gitcp.view.document import Page
from gitcp.view.page import packed, policy, written

_LOOPBACK = "127.0.0.1"
_SECONDS = 20.0
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Source(NamedTuple):
    """The content to serve: `version` changes whenever `page` would; both read the store."""

    version: Callable[[], str]
    page: Callable[[], Page]


class Live(ThreadingHTTPServer):
    """A server of one page, until it is closed."""

    daemon_threads = True

    def __init__(self, source: Source) -> None:
        super().__init__((_LOOPBACK, 0), _Handler)
        self.token = secrets.token_urlsafe(32)
        self._source = source
        self._lock = threading.Lock()
        self._made: tuple[str, Page] | None = None

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{self.host}/{self.token}/"

    @property
    def host(self) -> str:
        """The only host name that the server answers to."""
        return f"{_LOOPBACK}:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores a browser that closed the connection; else reports as `socketserver` does."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)

    def version(self) -> str:
        """Returns the name of the session's present state."""
        with self._lock:
            return self._source.version()

    def current(self) -> tuple[str, Page]:
        """Returns the present page, which is made once for each state."""
        with self._lock:
            version = self._source.version()
            if self._made is None or self._made[0] != version:
                self._made = version, self._source.page()
            return self._made


class _Handler(BaseHTTPRequestHandler):
    """One request: the page, its data, or the name of its state."""

    server_version = "gitcp"
    sys_version = ""
    timeout: ClassVar[float | None] = _SECONDS

    def do_GET(self) -> None:
        """Answers if Host, Origin and token are right."""
        live = self.server
        assert isinstance(live, Live)
        if not self._is_own(live):
            self._reply(HTTPStatus.FORBIDDEN, b"", "text/plain")
            return
        # Not every path has a slash: `OPTIONS *` is a request, and `GET *` can be sent.
        token, slash, name = (
            self.path.partition("?")[0].partition("/")[2].partition("/")
        )
        given = token.encode("utf-8", "replace")
        if not hmac.compare_digest(given, live.token.encode()):
            self._reply(HTTPStatus.NOT_FOUND, b"", "text/plain")
            return
        try:
            self._answer(live, name if slash else None)
        except GitcpError as exc:
            # The session or the disk may be gone; the page on the screen stays.
            text = exc.message.encode("utf-8", "backslashreplace")
            self._reply(HTTPStatus.SERVICE_UNAVAILABLE, text, "text/plain")

    def do_HEAD(self) -> None:
        """Answers without a body."""
        self.do_GET()

    def _answer(self, live: Live, name: str | None) -> None:
        match name:
            case "":
                version, page = live.current()
                body, kind = written(page, live=version), "text/html; charset=utf-8"
            case "state":
                body, kind = live.version().encode(), "text/plain"
            case "data":
                _, page = live.current()
                body, kind = packed(page), "application/octet-stream"
            case _:
                self._reply(HTTPStatus.NOT_FOUND, b"", "text/plain")
                return
        self._reply(HTTPStatus.OK, body, kind)

    def _is_own(self, live: Live) -> bool:
        hosts = self.headers.get_all("Host", [])
        origins = self.headers.get_all("Origin", [])
        sites = self.headers.get_all("Sec-Fetch-Site", [])
        return (
            hosts == [live.host]
            and all(origin == f"http://{live.host}" for origin in origins)
            and all(site in {"same-origin", "none"} for site in sites)
        )

    def _reply(self, status: HTTPStatus, body: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header(
            "Content-Security-Policy", f"{policy(live=True)}; frame-ancestors 'none'"
        )
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Logs nothing, because the address holds the token."""
