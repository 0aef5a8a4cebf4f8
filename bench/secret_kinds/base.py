"""What the tables share: alphabets, makers of values and of natural lines."""

import base64
import hashlib
import json
import random
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

DIGITS = "0123456789"
LOWER = "abcdefghijklmnopqrstuvwxyz"
UPPER = LOWER.upper()
HEX = DIGITS + "abcdef"
UPPER_HEX = HEX.upper()
LOWER36 = DIGITS + LOWER
UPPER36 = DIGITS + UPPER
B62 = DIGITS + UPPER + LOWER
B64 = UPPER + LOWER + DIGITS + "+/"
B64URL = UPPER + LOWER + DIGITS + "-_"
B32 = UPPER + "234567"
B58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
CRYPT = "./" + DIGITS + UPPER + LOWER
NAMES = [
    *("orders", "billing", "ledger", "atlas", "harbor", "quartz", "meadow"),
    *("copper", "lantern", "comet", "walnut", "tundra", "falcon", "prism", "juniper"),
]
LAST = "AQgw"  # what base64 of 3n + 1 bytes ends with, before "=="

Make = Callable[[random.Random], str]
Line = Callable[[str, random.Random], str]


class Kind(NamedTuple):
    """One kind of credential: what it looks like and where it is found."""

    name: str
    group: str  # cloud, forge, ai, saas, key or password
    make: Make
    line: Line
    source: str  # the page or the documentation that describes it
    bare: bool  # is the value recognisable alone, by its shape?
    sure: bool  # was its format documented, or only seen in the wild?


def chars(rng: random.Random, alphabet: str, count: int) -> str:
    return "".join(rng.choices(alphabet, k=count))


def pre(prefix: str, count: int, alphabet: str = B62, suffix: str = "") -> Make:
    return lambda rng: prefix + chars(rng, alphabet, count) + suffix


def shape(*parts: str | tuple[str, int]) -> Make:
    """Join literal text and runs of (alphabet, count)."""

    def make(rng):
        return "".join(p if isinstance(p, str) else chars(rng, *p) for p in parts)

    return make


def one_of(*makes: Make) -> Make:
    return lambda rng: rng.choice(makes)(rng)


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def b64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def random_b64(count: int, prefix: str = "") -> Make:
    return lambda rng: prefix + b64(rng.randbytes(count))


def random_b64url(count: int, prefix: str = "") -> Make:
    return lambda rng: prefix + b64url(rng.randbytes(count))


def uuid(rng: random.Random) -> str:
    text = rng.randbytes(16).hex()
    variant = rng.choice("89ab")
    return "-".join(
        (text[:8], text[8:12], "4" + text[13:16], variant + text[17:20], text[20:])
    )


def pre_uuid(prefix: str) -> Make:
    return lambda rng: prefix + uuid(rng)


def base62(number: int, width: int) -> str:
    digits = ""
    while number:
        number, rest = divmod(number, 62)
        digits = B62[rest] + digits
    return digits.rjust(width, "0")


def with_crc32(prefix: str) -> Make:
    """Give 30 random characters and their CRC32 in 6 of base 62 (GitHub, npm)."""

    def make(rng):
        body = chars(rng, B62, 30)
        return prefix + body + base62(zlib.crc32(body.encode()), 6)

    return make


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def jwt(header: dict, claims: dict, signature: bytes) -> str:
    parts = (compact(header).encode(), compact(claims).encode(), signature)
    return ".".join(b64url(part) for part in parts)


def password(rng: random.Random, low: int = 12, high: int = 20) -> str:
    """Give what a generator or a careful person would choose."""
    count = rng.randint(low, high)
    plain = LOWER + UPPER + DIGITS
    text = chars(rng, rng.choice((plain, plain + "!#%*-_+.~^")), count - 4)
    ends = (LOWER, UPPER, DIGITS, DIGITS)
    return chars(rng, LOWER, 1) + text + "".join(rng.choice(e) for e in ends[1:])


def url_password(rng: random.Random) -> str:
    return chars(rng, LOWER + UPPER + DIGITS + "-_.~", rng.randint(14, 24)) + "7k"


def word(rng: random.Random) -> str:
    return rng.choice(NAMES)


def user(rng: random.Random) -> str:
    return rng.choice(
        ["deploy", "app", "svc_reports", "mkeller", "jtanaka", "worker", "api", "ci"]
    )


def host(rng: random.Random) -> str:
    domain = rng.choice(("internal", "prod.corp.net", "eu-west.svc.io", "lan"))
    return f"{word(rng)}-{rng.randint(1, 9)}.{domain}"


def lines(*templates: str) -> Line:
    """Give one of the templates, with {v} the value, {u} a user, {h} a host."""

    def line(value, rng):
        template = rng.choice(templates)
        for mark, make in (("{u}", user), ("{h}", host), ("{w}", word)):
            template = template.replace(mark, make(rng))
        return template.replace("{v}", value)

    return line


def natural(names: Sequence[str], vendor: str, bare: bool, also: Sequence[str]) -> Line:
    shapes = (
        "{N}={v}",
        'export {N}="{v}"',
        "{N}: {v}",
        '  "{N}": "{v}",',
        '{n} = "{v}"',
        "{n}: '{v}'",
        "      - name: {N}\n        value: {v}",
    )
    if bare:
        neutral = ("token: {v}", 'key = "{v}"', "auth={v}", 'const value = "{v}";')
    else:
        neutral = ("[{vendor}]\ntoken = {v}", "{vendor}:\n  secret: {v}")

    def line(value, rng):
        roll = rng.random()
        if also and roll < 0.3:
            return lines(*also)(value, rng)
        template = rng.choice(neutral if roll > 0.88 else shapes)
        name = rng.choice(names)
        for mark, text in (("N", name), ("n", name.lower()), ("vendor", vendor)):
            template = template.replace("{" + mark + "}", text)
        return template.replace("{v}", value)

    return line


def table(group: str) -> tuple[list[Kind], Callable[..., None]]:
    """Give an empty table of a group and the function that adds rows to it."""
    rows: list[Kind] = []

    def add(name, make, where, source, *also, bare=True, sure=True):
        if isinstance(where, str):
            line = natural(where.split(), name.split("_")[0], bare, also)
        else:
            line = where
        rows.append(Kind(name, group, make, line, source, bare, sure))

    return rows, add


def digest(raw: bytes) -> bytes:
    return hashlib.sha256(raw).digest()
