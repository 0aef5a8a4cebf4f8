"""Writes the page: one HTML file that contains its style, script and data.

The content security policy names the style and the script by their hashes and allows
nothing else. The data is compressed JSON in base64: no letter of it can end an element.
"""

import base64
import hashlib
import html
import struct
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import resources

import msgspec

from gitcp.view.document import Page

# In the order of their dependencies.
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
# Bytes of a piece that is compressed by itself, and of the text before a piece that it may refer
# to.
_PIECE = 1 << 20
_WINDOW = 1 << 15
# The header of a gzip stream: deflated, no name, no time, no system.
_HEAD = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"


def packed(page: Page) -> bytes:
    """Returns the compressed data of a page; the same page gives the same bytes."""
    return zipped(msgspec.json.encode(page))


def zipped(data: bytes, piece: int = _PIECE) -> bytes:
    """Returns bytes as one gzip stream, whose pieces are compressed at the same time."""
    starts = range(0, max(len(data), 1), piece)

    def part(start: int) -> bytes:
        # With the text before it, a piece compresses as well as within one stream.
        before = data[max(0, start - _WINDOW) : start]
        how = (_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL)
        made = zlib.compressobj(*how, zlib.Z_DEFAULT_STRATEGY, before)
        body = made.compress(data[start : start + piece])
        last = start + piece >= len(data)
        return body + made.flush(zlib.Z_FINISH if last else zlib.Z_SYNC_FLUSH)

    with ThreadPoolExecutor() as pool:
        parts = list(pool.map(part, starts))
    check = struct.pack("<2I", zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return b"".join([_HEAD, *parts, check])


def written(page: Page, *, live: str = "") -> bytes:
    """Returns the whole page; with `live`, the name of its state, it asks a server for news."""
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


def _parts(page: Page, *, live: str) -> Iterator[bytes]:
    """Yields the page piece by piece: parts of the template, and the content between them."""
    title = f"{page.session} · {page.project}" if page.project else page.session
    filled = {
        "policy": html.escape(policy(live=bool(live))),
        "title": html.escape(title),
        "live": html.escape(live or "no"),
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
