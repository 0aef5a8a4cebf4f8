"""Names of sessions and branches, and their form in a ref (docs/format.md, 2)."""

import hashlib

from gitcp.errors import UsageError

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789_-")
_DASH = 0x2D
_LONGEST = 180
_KEPT = 120
_NAME_LIMIT = 1_000


def encode(name: str) -> str:
    """Returns the ref component of a name: injective, safe where case folds.

    Raises:
        UsageError: the name is empty, too long, or not encodable as UTF-8.
    """
    try:
        raw = name.encode()
    except UnicodeEncodeError as exc:
        raise UsageError(
            f"the name {name!a} is not valid Unicode",
            hint="choose a name that can be written in UTF-8",
        ) from exc
    if not raw:
        raise UsageError("a name must not be empty", hint="give it a name")
    if len(raw) > _NAME_LIMIT:
        raise UsageError(
            f"the name starting {name[:40]!a} is longer than {_NAME_LIMIT:,} bytes",
            hint="choose a shorter one",
        )
    pieces = [
        chr(byte)
        if byte in _PLAIN and not (at == 0 and byte == _DASH)
        else f"%{byte:02x}"
        for at, byte in enumerate(raw)
    ]
    whole = "".join(pieces)
    if len(whole) <= _LONGEST:
        return whole
    kept = ""
    for piece in pieces:
        if len(kept) + len(piece) > _KEPT:
            break
        kept += piece
    return f"{kept}%%{hashlib.sha256(raw).hexdigest()[:32]}"


def decode(component: str) -> str | None:
    """Returns the name behind a ref component, or None if it was cut.

    A cut name is in the checkpoint itself. A component that `encode` cannot have
    made is None as well.
    """
    if "%%" in component:
        return None
    raw = bytearray()
    at = 0
    while at < len(component):
        if component[at] == "%":
            try:
                raw.append(int(component[at + 1 : at + 3], 16))
            except ValueError:
                return None
            at += 3
        else:
            raw.extend(component[at].encode())
            at += 1
    try:
        name = raw.decode()
        return name if encode(name) == component else None
    except (UnicodeDecodeError, UsageError):
        return None


def quoted(text: str) -> str:
    """Returns a name or a path as one word of a command that a person may copy into a shell.

    It may be a stranger's. What cannot be printed is escaped, so that the word stays on its
    line: it names nothing then, and no more than that.
    """
    from shlex import quote  # noqa: PLC0415  only where a command is shown

    return quote(
        "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    )


def check_text(text: str, what: str) -> str:
    """Returns a text if it can be stored.

    Raises:
        UsageError: the text is not valid Unicode, such as an argument in another encoding.
    """
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise UsageError(
            f"{what} {text[:40]!a} is not valid Unicode", hint="write it in UTF-8"
        ) from exc
    return text


def check_typed(name: str, what: str) -> str:
    """Returns a name typed by a person; refuses what can only be a typing error.

    Programs may use any text; at a terminal a name with control characters, a `.`
    or `..` between slashes or a leading dash is a slip or an attack.

    Raises:
        UsageError: the name is one of these.
    """
    if (
        {"", ".", ".."}.intersection(name.split("/"))
        or name.startswith("-")
        or not name.isprintable()
    ):
        raise UsageError(
            f"{what} name {name!a} is not usable",
            hint="use letters, digits and inner dots or dashes",
        )
    encode(name)
    return name
