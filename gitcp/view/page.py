"""Writes the page: one HTML file with its style, its script and its data, and nothing else.

The content security policy names the style and the script by their hashes and allows
nothing more. The data is JSON, compressed, in base64: no letter of it can end an element.
"""

import base64
import gzip
import hashlib
import html
from collections.abc import Iterator
from importlib import resources

import msgspec

from gitcp.view.document import Page

# In the order in which they depend on each other.
SCRIPTS = (
    "dom.js",
    "data.js",
    "text.js",
    "axis.js",
    "talk.js",
    "patch.js",
    "files.js",
    "reasons.js",
    "search.js",
    "state.js",
    "keys.js",
    "live.js",
    "main.js",
)
_LEVEL = 6


def packed(page: Page) -> bytes:
    """Returns the data of a page, compressed; the same page gives the same bytes."""
    return gzip.compress(msgspec.json.encode(page), _LEVEL, mtime=0)


def written(page: Page, *, live: bool = False) -> bytes:
    """Returns the whole page; one that is `live` asks the server that it came from."""
    return b"".join(_parts(page, live=live))


def policy(*, live: bool) -> str:
    """Returns the content security policy of the page."""
    parts = {
        "default-src": "'none'",
        "script-src": _hashed(_script()),
        "style-src": _hashed(_asset("page.css")),
        **({"connect-src": "'self'"} if live else {}),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in parts.items())


def _parts(page: Page, *, live: bool) -> Iterator[bytes]:
    """Yields the page piece by piece: the template between what it has places for."""
    title = f"{page.session} · {page.project}" if page.project else page.session
    filled = {
        "policy": html.escape(policy(live=live)),
        "title": html.escape(title),
        "live": "yes" if live else "no",
        "style": _asset("page.css"),
        "script": _script(),
        "data": base64.b64encode(packed(page)).decode(),
    }
    pieces = _asset("page.html").split("%%")
    for at, piece in enumerate(pieces):
        yield (filled[piece] if at % 2 else piece).encode()


def _asset(name: str) -> str:
    place = resources.files("gitcp.view").joinpath("assets", name)
    return place.read_text(encoding="utf-8")


def _script() -> str:
    return "\n".join(["'use strict';", *map(_asset, SCRIPTS)])


def _hashed(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
