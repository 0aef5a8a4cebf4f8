"""How long the scanner takes on inputs made to slow it down: `python -m bench.secret_worst`.

Each input is scanned at the first size, and the worst of them at the others. A row gives
the seconds of processor time per megabyte, how that compares with ordinary sources (those
of gitcp), how much more a megabyte of the other sizes takes (1.0 is linear), and what the
scan ended with. The worst comes first.
"""

import argparse
import base64
import gzip
import io
import json
import random
import string
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from gitcp.secrets.scanner import UNREAD, Fingerprints, Scanner

MEGABYTE = 1_000_000
LETTERS = string.ascii_letters + string.digits

Make = Callable[[int], bytes]


class Row(NamedTuple):
    """One input: seconds per megabyte at each size, and what the last scan reported."""

    name: str
    rates: list[float]
    hits: int
    unread: bool


def repeated(piece: str | bytes) -> Make:
    """Returns an input that is one piece over and over."""
    raw = (
        piece if isinstance(piece, bytes) else piece.encode("utf-8", "surrogateescape")
    )
    return lambda size: (raw * (size // len(raw) + 1))[:size]


def varied(template: str, *, length: int = 12, alphabet: str = LETTERS) -> Make:
    """Returns an input of one template, with a new random `{v}` and `{n}` each time."""

    def make(size: int) -> bytes:
        rng = random.Random(template)
        parts: list[str] = []
        made = 0
        while made < size:
            value = "".join(rng.choices(alphabet, k=length))
            name = "".join(rng.choices(string.ascii_lowercase, k=6))
            parts.append(template.replace("{v}", value).replace("{n}", name))
            made += len(parts[-1])
        return "".join(parts).encode()[:size]

    return make


def around(inner: Make, wrap: Callable[[bytes], bytes], share: float) -> Make:
    """Returns an input that encodes another, which is a share of it in size."""
    return lambda size: wrap(inner(int(size * share)))


def nested_json(depth: int) -> Callable[[bytes], bytes]:
    """Returns what writes bytes as a JSON string, in another, and so on."""

    def wrap(data: bytes) -> bytes:
        text = data.decode("utf-8", "replace")
        for _ in range(depth):
            text = json.dumps(text)
        return text.encode()

    return wrap


def lines_of_base64(data: bytes) -> bytes:
    """Returns base64 in lines of 76."""
    return base64.encodebytes(data)


def zipped(data: bytes) -> bytes:
    """Returns a zip archive of many small members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for at in range(0, len(data), 4_096):
            archive.writestr(f"a{at}", data[at : at + 4_096])
    return file.getvalue()


def random_bytes(size: int) -> bytes:
    """Returns bytes that are no text."""
    return random.Random(size).randbytes(size)


def sources(size: int) -> bytes:
    """Returns ordinary sources: gitcp's own, over and over."""
    top = Path(__file__).parent.parent / "gitcp"
    whole = b"".join(path.read_bytes() for path in sorted(top.rglob("*.py")))
    return (whole * (size // len(whole) + 1))[:size]


PIECES = {
    "letters": "a",
    "base64 letters": "aB3x",
    "spaces": " ",
    "line ends": "\n",
    "line ends, CRLF": "\r\n",
    "backslashes": "\\",
    "escaped line ends": "\\n",
    "escaped quotes": '\\"',
    "unicode escapes": "\\u0041",
    "hex escapes": "\\x41",
    "listed bytes": "0x41, ",
    "quotes": '"',
    "single quotes": "'",
    "equals": "=",
    "colons": ":",
    "at signs": "://a:b@",
    "schemes": "://",
    "schemes without an end": "://abc:def",
    "percents": "%41",
    "percent signs": "%",
    "entities": "&quot;",
    "ampersands": "&",
    "brackets": "[({",
    "numbers": "[1,2,3,",
    "number list": "12, ",
    "colours": "\x1b[0m",
    "colours without an end": "\x1b]",
    "backspaces": "a\x08",
    "keys begun": "-----BEGIN PRIVATE KEY-----",
    "keys begun and ended": "-----BEGIN PRIVATE KEY-----aaaaaaaa-----END PRIVATE KEY-----\n",
    "PuTTY": "Private-Lines: 1\naaaaaaaa\n",
    "sk-": "sk-",
    "sk-a": "sk-abcdefghij0123456789 ",
    "eyJ": "eyJabcdefghijklmn.",
    "eyJ-": "eyJ-",
    ":AA": ":AA",
    "dots": "abcdefgh1.",
    "dotted runs": "aB3dE5gH7jK9mN1pQ3sT.",
    "underscores": "a_b_c_",
    "prefixes": "ab_cd_aB3dE5gH7jK9mN1p ",
    "token=": "token=",
    "token: ": "token: ",
    "key key": "key ",
    "passwords without value": "password ",
    "pass(": 'pass("',
    "password =": 'password="',
    "machine": "machine a login b ",
    "machines": "machine ",
    "default login": "default login password ",
    "curl": "curl -u ",
    "curl lines": "curl -u a:b curl\n",
    "mysql": "mysql -p mysql -p -p ",
    "docker login": "docker a login -p ",
    "echo": "echo a:b | echo ",
    "auth": "auth login ",
    "identified by": "identified by ",
    "bearer": "bearer ",
    "authorization": "authorization: ",
    "otpauth": "otpauth://a?secret=",
    "otpauth open": "otpauth://",
    "?sig=": "?sig=aaaaaaaaaa",
    "&key=": "&key=abcdefghijklmnopqrstuvwxyz",
    "$2a$": "$2a$aaaaaaaaaaaaaaaaaaaa",
    "$1$": "$1$",
    "{sha}": "{SHA}abcdefghijklmnopqrstuvw ",
    "pbkdf2": "pbkdf2_sha256$$",
    "pgpass": "a:5432:b:c:\n",
    "pgpass stars": "*:*:*:*:*:",
    "pppd": "a pppd b *\n",
    "kty": '"kty":"d":"k":',
    "seed": "seed: abc def ghi jkl mno pqr ",
    "wallets": "wallet ",
    "mnemonics": "mnemonic: " + "abc " * 11,
    "gzip heads": b"\x1f\x8b\x08\x00",
    "zip heads": b"PK\x03\x04" + b"\0" * 26,
    "zlib heads": b"\x78\x9c",
    "hex digits": "0123456789abcdef",
    "hex lines": "0123456789abcdef" * 4 + "\n",
    "dump": "00000000  41 42 43 44 45 46 47 48  41 42 43 44 45 46 47 48  |ABCD|\n",
    "dump heads": "00000000: ",
    "sha256": "sha256:" + "0123456789abcdef" * 4 + " ",
    "secret hex": "key=" + "0123456789abcdef" * 4 + "\n",
    "full lines": "aB3dE5gH7jK9mN1pQ3sT\n",
    "strings put together": '"aB3dE5gH7jK9mN1p" +\n"aB3dE5gH7jK9mN1p"\n',
    "continued lines": "abc\\\n",
    "values of XML": "<key>a</key><string>",
    "pairs": '"key","value",',
    "cells": "| key | value ",
    "name value": '"name":"token","value":"',
    "wide": "a\0",
    "wider": "a\0\0\0",
    "NUL": "\0",
    "not UTF-8": b"\xff\xfe\xfd",
    "env lines": "A=B\n",
}

LINES = {
    "passwords": 'password="{v}"\n',
    "bare passwords": "password={v}\n",
    "passwords of many names": "{n}_password={v}\n",
    "keys of many names": '{n}_api_key: "{v}{v}"\n',
    "weak names": "{n}_salt = '{v}{v}'\n",
    "words": "token: {n}_{n}_1{n}\n",
    "loose": "the token {v} is\n",
    "headers": "Authorization: Bearer {v}{v}\n",
    "URLs": "https://u:{v}@h.internal/\n",
    "URLs, short": "a://b:{v}@c ",
    "tokens": "ghp_{v}{v}{v}\n",
    "JWT": "eyJ{v}{v}.eyJ{v}.{v}{v}\n",
    "shapes": "{n}_live_{v}{v}{v}\n",
    "shapes, words": "{n}_{n}_{n}{n}{n}1\n",
    "dotted": "{v}{v}.{v}{v}.{v}{v} ",
    "curl -u": "curl -u a:{v} b\n",
    "hashes": "$6$ab${v}{v}{v}\n",
    "netrc": "machine a login b password {v}\n",
    "pgpass lines": "h:5432:d:u:{v}\n",
    "one line": "var {n}={v},b=function(a){return a.{n}?a.{v}:'{n}'};",
    "minified tokens": "{n}.token={n}.{v},{n}.key={v}({n}),",
    "queries": "https://h/?{n}=1&sig={v}{v}{v}\n",
    "percents, varied": "%41{v}%42 ",
    "entities, varied": "&quot;{v}&quot;\n",
    "colours, varied": "\x1b[1m{v}\x1b[0m\n",
    "split tokens": "{v}{v}\\\n{v}{v}\n",
    "base64 words": "QUJD{v}{v}{v}{v} ",
    "base64 of text": "dGhpcyBpcyBhIHRleHQgd2l0aCBsZXR0ZXJz{v}{v} ",
    "hex words": "6162636465666768696a6b6c6d6e6f70{v} ",
    "keys": "-----BEGIN PRIVATE KEY-----\n{v}{v}{v}{v}{v}\n-----END PRIVATE KEY-----\n",
    "jwk": '{"kty":"RSA","d":"{v}{v}{v}{v}"}\n',
    "secret hex, varied": "secret " + "6162636465666768696a6b6c6d6e6f70" * 2 + "\n",
    "escaped passwords": 'password=\\"{v}\\"\\n',
    "twice escaped": 'password=\\\\\\"{v}\\\\\\"\\\\n',
}


def inputs() -> dict[str, Make]:
    """Returns the makers of all inputs by name."""
    made: dict[str, Make] = {"ordinary sources": sources, "random bytes": random_bytes}
    made |= {name: repeated(piece) for name, piece in PIECES.items()}
    made |= {f"lines of {name}": varied(line) for name, line in LINES.items()}
    passwords = varied(LINES["passwords"])
    made |= {
        "sources in JSON": around(sources, nested_json(1), 0.93),
        "sources in JSON, 3 deep": around(sources, nested_json(3), 0.7),
        "passwords in JSON, 6 deep": around(passwords, nested_json(6), 0.05),
        "sources in base64": around(sources, base64.b64encode, 0.75),
        "sources in lines of base64": around(sources, lines_of_base64, 0.74),
        "sources in base64, 3 deep": around(
            sources,
            lambda data: base64.b64encode(base64.b64encode(base64.b64encode(data))),
            0.421,
        ),
        "passwords in base64, 3 deep": around(
            passwords,
            lambda data: base64.b64encode(base64.b64encode(base64.b64encode(data))),
            0.421,
        ),
        "random bytes in base64": around(random_bytes, base64.b64encode, 0.75),
        "random bytes in lines of base64": around(random_bytes, lines_of_base64, 0.74),
        "sources in hex": around(sources, lambda data: data.hex().encode(), 0.5),
        "sources in gzip": lambda size: gzip.compress(sources(size * 4))[:size],
        "passwords in gzip": lambda size: gzip.compress(passwords(size))[:size],
        "bomb": lambda size: gzip.compress(
            repeated('password="k3J9dLq0"\n')(size * 24)
        ),
        "zip of small members": around(sources, zipped, 0.95),
        "passwords in UTF-16": around(
            passwords, lambda data: data.decode().encode("utf-16"), 0.5
        ),
        "passwords in UTF-32": around(
            passwords, lambda data: data.decode().encode("utf-32"), 0.25
        ),
        "sources in UTF-16": around(
            sources, lambda data: data.decode("utf-8", "replace").encode("utf-16"), 0.5
        ),
        "sources in a URL": lambda size: sources(size).replace(b" ", b"%20"),
        "sources with entities": lambda size: sources(size).replace(b" ", b"&nbsp;"),
        "coloured sources": lambda size: sources(size).replace(b" ", b" \x1b[0m"),
    }
    return made


def measured(name: str, make: Make, sizes: list[int]) -> Row:
    """Scans one input at each size."""
    scan = Scanner(Fingerprints(bytes(32)))
    rates, hits = [], []
    for size in sizes:
        data = make(size)
        began = time.process_time()
        hits = scan.scan([data])
        rates.append((time.process_time() - began) / len(data) * MEGABYTE)
    return Row(name, rates, len(hits), any(hit.rule == UNREAD for hit in hits))


def main() -> None:
    """Prints a row for each input, the slowest first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=float, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--only", help="inputs whose name holds this")
    parser.add_argument("--top", type=int, default=20, help="measured at all sizes")
    options = parser.parse_args()
    sizes = [int(size * MEGABYTE) for size in options.sizes]
    (usual,) = measured("", sources, sizes[:1]).rates
    rows = [
        measured(name, make, sizes[:1])
        for name, make in inputs().items()
        if options.only is None or options.only in name
    ]
    rows.sort(key=lambda row: -row.rates[0])
    rows = [
        measured(row.name, inputs()[row.name], sizes) for row in rows[: options.top]
    ]
    shown = ", ".join(f"{size:g}" for size in options.sizes[1:])
    print(
        f"s/MB at {options.sizes[0]:g} MB; to sources; more per MB at {shown} MB; hits"
    )
    for row in rows:
        growth = " ".join(f"{rate / row.rates[0]:4.1f}" for rate in row.rates[1:])
        ended = f"{row.hits}{' (unread)' if row.unread else ''}"
        ratio = row.rates[0] / usual
        print(f"{row.rates[0]:6.2f}  {ratio:5.1f}  {growth}  {ended:>14}  {row.name}")
    print(f"{usual:6.2f}    1.0  ordinary sources")


if __name__ == "__main__":
    main()
