"""Finds assignments, fields and headers whose name says that they hold a secret.

An assignment of any language, a flag of a command, a header, an element of XML, a pair of
a name and a value. One pass over the text is enough: the keyword, the rest of the name, the
sign that assigns and the value are one pattern, with each part bounded.
"""

import re
from collections.abc import Iterator

from gitcp.secrets import examples, heuristics, names, words
from gitcp.secrets.budget import Budget
from gitcp.secrets.runs import at_places
from gitcp.secrets.text import Text, Words
from gitcp.secrets.tokens import Token

_WORD = (
    rb"(?:pass(?:w(?:or)?d|wrd|phrase|code)?|pwd|secret|token|key|credential|creds?"
    rb"|auth"
    rb"|psk|pw|pat|cookie|bearer|jwt)"
)
# Between the keyword and the value: the rest of the name, then the sign that assigns.
_ASSIGNED = re.compile(
    _WORD + rb"(?P<rest>[a-z0-9_-]{0,40}+)(?="
    rb"(?:[\"'`]?[ \t]{0,9}[,/]?[ \t\r\n]{0,60}[\"']?value[\"']?[ \t]{0,9}[:=][ \t]{0,9}"
    rb"|[\"'`]?\]?\)?[ \t]{0,40}"
    rb"(?::[ \t]{0,9}[a-z_][\w.\[\]| ]{0,40}=(?!=)|=>|:=|\?=|=(?![=~>])|:(?!:))"
    rb"(?:[ \t]{0,40}[|>][-+]?[ \t]{0,9}[\r\n]{1,2})?[ \t]{0,40}"
    rb"|[\"']?>(?:<!\[cdata\[)?(?=[^<\r\n]{4,400}[<\]])"
    rb"|</key>[ \t\r\n]{0,40}<string>"
    rb"|(?P<pair>[\"'][ \t]{0,9},[ \t]{0,9}(?=[\"']))"
    rb"|(?P<call>\([ \t]{0,9}(?=[\"']))"
    rb"|(?P<cell>[\"'`*]{0,3}[ \t]{0,9}[|,][ \t]{0,9}`?)"
    rb"|(?P<space>[\"'`*]{0,3}[ \t]{1,9}(?:(?:is|was|to|as|of|for|with|by)[ \t]{1,3}"
    rb"|[=:>-]{1,2}[ \t]{1,3})?))"
    rb"(?:[bruf@$]{0,2}(?P<quote>[\"'`])(?P<quoted>[^\"'`\r\n\\]{5,512})(?P=quote)"
    rb"|(?P<bare>[^\s\"'`,;(){}\[\]<>\\|&]{6,512})))"
)
# The beginning of each keyword, or all of it.
_BEGINS = Words(
    *(b"pass", b"pwd", b"secret", b"token", b"key", b"cred", b"auth", b"psk", b"pw"),
    *(b"pat", b"cookie", b"bearer", b"jwt"),
)
_NAME = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_LONGEST_NAME = 48
_DECLARES = re.compile(
    rb"(?i)(?:\b(?:env|arg|setx|setenv|set(?:[ \t]+-[a-z]+)+|export|putenv"
    rb"|define)[ \t]+"
    rb"|[ \t\"'=]-{1,2})\Z"
)
_USER = re.compile(rb"://(?:[^\s/@\"'`<>]{0,60}:)?\Z")
_QUERIES = frozenset({b"?", b"&"})
# The costs of finding a value and of judging it, in bytes scanned.
_MATCHED = 20
_JUDGED = 450
_JUDGED_LETTER = 8
# Of a longer value, most checks look only at the beginning.
_LONGEST_JUDGED = 128
# How many bytes before a name may count.
_CLOSE = 120
# And how many of these tell one place from another, if other lines may be joined.
_COMPARED = 80
_LEAST = 16
_CUT = 40
_NESTED = 3
# The text between two strings.
_BETWEEN = re.compile(rb"(?:[)\]},;?:+]|\.\w{1,30}\().*[(\[{,;?:+]")
# Long runs that cannot hold a name: encoded programs and pictures.
_ENDS = b"\t\r\n\"'`,;(){}[]<>\\|&?"
_ENDED = bytes.maketrans(_ENDS, b" " * len(_ENDS))
_RUN = 100
# Three letters may be a word by chance in encoded data, but not with the case of a word.
_SHORT_WORD = 3
_NO_NAME = re.compile(rb"\d{1,2}[A-Za-z]|[A-Z]\Z")
# Data encoded in nearly all signs switches between them, and has no blanks.
_ENCODED = 64
_PRINTED = re.compile(rb"[!-~]{64}")
_SIGNS = re.compile(rb"[!-/:-@\[-`{-~]")
_DISTINCT_SIGNS = 9
_TURNS = 0.6
# In one line of it, there are fewer signs.
_BLOCK_SIGNS = 6
_LONGEST_LINE = 160
# Text before or around a keyword that is at least this long is checked for chance.
_NO_WORD = 24
_VARIABLE = re.compile(rb"[A-Za-z_][\w.]*")
_OPERATOR = re.compile(rb"[ \t]{1,4}(?:[-+*/%&|^?]|<<|>>)[ \t]")
# A directory's names of its fields: `ATTk589914`.
_NUMBERED = re.compile(rb"([A-Za-z]{3,8}?)[a-z]?(\d{4,8})")
_ROW = 300
_IN_ROW = 4
_PUBLIC = re.compile(rb"(?i)public[ _-]?key")
_RETURNS = re.compile(
    rb"(?i:shared_?secret)\Z"
    rb"|(?:\A|[._])(?:get|compute|derive|calc(?:ulate)?|generate|find|fetch|load|read|lookup)"
    rb"(?=[_A-Z])"
)
# A name in prose has several words: `Next page token`.
_PAGES = re.compile(
    rb"(?i)\b(?:next|prev(?:ious)?|page|continuation|pagination|public)[ \t]\Z"
    # The digest of a secret, in the annotations of a deployment.
    rb"|checksum/\Z"
)
# Beside a signature, a key is the public one that verifies it.
_BEHIND_SIGNATURE = re.compile(
    rb"(?i)signature[\"'][ \t]{0,4}:[ \t]{0,4}[\"'][\w+/=-]{40,200}[\"'],\s{0,60}[\"']\Z"
)
_SIGNATURE = 300
# By this, a server knows the address of a client again (RFC 7873).
_DNS_COOKIE = re.compile(rb"; COOKIE: (?:[0-9a-f]{2}){8,40}(?![\w/+=-])")
_CALLED = frozenset({b"(", b"["})
_QUOTES = frozenset({b'"', b"'"})
_GOES_ON = frozenset({b",", b";", b")", b"}", b"|", b"<", b">"})
_CALLS = re.compile(rb"\(\s{0,9}[\"'][\w.-]{0,48}\Z")


def assignments(text: Text, work: Budget) -> Iterator[Token]:
    """Yields the values that are assigned to names of secrets."""
    data = text.data
    seen = behind = -1
    within = 0
    for match in _named(text):
        work.spend(_MATCHED)
        # In `a=token=b=token=c…` each value holds all later values.
        start, end = match.span("bare")
        within = within + 1 if 0 <= start < behind else 0
        if within > _NESTED:
            continue
        if not within:
            behind = end
        start, end = match.span("quoted") if start < 0 else (start, end)
        if not work.is_new(_with_context(data, match.start(), end)):
            # Another view of the text has it as well.
            continue
        work.spend(_JUDGED + _JUDGED_LETTER * min(end - start, _LONGEST_JUDGED))
        found = _judged(data, match)
        if found is None or found.start == seen:
            continue
        seen = found.start
        if not examples.made_up(text, found.value, found.start, work.spend):
            yield found


def _with_context(data: bytes, at: int, end: int) -> bytes:
    """Returns a name, its value and the text close before them, whose lines may be joined.

    The name begins at or before the keyword, which is at `at`.
    """
    close = data[max(0, at - _CLOSE) : at]
    before = close.rstrip(_NAME)
    joined = before.translate(None, b"\r\n")[-_COMPARED:]
    return joined + b"\0" + close[len(before) :] + data[at : end + 1]


def _named(text: Text) -> Iterator[re.Match[bytes]]:
    """Yields the assignments to names that contain a keyword, each name once."""
    yield from at_places(_ASSIGNED, text.lower, _BEGINS.starts(text))


def _value(data: bytes, match: re.Match[bytes]) -> tuple[int, bytes]:
    """Returns a value with its start; the value is empty if it cannot be a secret."""
    quoted = match["quoted"] is not None
    start, end = match.span("quoted" if quoted else "bare")
    value = data[start:end]
    if not quoted:
        cut = len(value) >= _CUT and value.endswith(b"...")
        value = value.rstrip(b".:!?*")
        behind = data[end : end + 1]
        if cut or behind in _CALLED or (behind in _GOES_ON and words.worded(value)):
            # The beginning of a tool's output; a function, an element of a list, a type.
            return start, b""
        if data[start + len(value) : start + len(value) + 1] == b"\\":
            # An escape truncates it; the text without escapes has the whole value.
            return start, b""
    return start, value


def _judged(data: bytes, match: re.Match[bytes]) -> Token | None:
    start, value = _value(data, match)
    if b"\\" in value or not heuristics.plausible(value):
        return None
    quoted = match["quoted"] is not None
    at = match.start()
    keyword = data[at : match.start("rest")]
    rest = data[match.start("rest") : match.end("rest")]
    if len(keyword) <= _SHORT_WORD and (
        _NO_NAME.match(rest)
        or not (keyword.islower() or keyword.isupper() or keyword.istitle())
    ):
        return None
    if (quoted and _BETWEEN.fullmatch(value)) or (not quoted and _in_data(data, at)):
        return None
    chunk = data[max(0, at - _LONGEST_NAME) : at]
    before = chunk[len(chunk.rstrip(_NAME)) :]
    name = before + data[at : match.start("rest")]
    colon = data[match.end("rest") : match.end("rest") + 1] == b":"
    if colon and _USER.search(data, max(0, at - _CLOSE), at - len(before)):
        # The name of a user in a URL, or its password: another rule checks the rest.
        return None
    strength = names.strength(name, rest, data[at - len(before) - 1 : at - len(before)])
    if not before and _PAGES.search(data, max(0, at - _LONGEST_NAME), at) is not None:
        return None
    if strength == names.NONE or _by_chance(before, keyword + rest):
        return None
    if (
        data[at - len(before) - 1 : at - len(before)] in _QUERIES
        and len(value) < _LEAST
    ):
        # A part of the URL of a badge or a counter.
        return None
    loose = any(match[group] is not None for group in ("space", "cell", "call", "pair"))
    if loose and _declared(data, at - len(before), match, name):
        loose = False
    # Two strings in a list: the first is not the name of the second.
    listed = loose and (
        match["pair"] is not None or _within_base64(data, at, match.end("rest"))
    )
    if listed or names.repeats(name, rest, value) or _taken(data, match, name + rest):
        return None
    if _of_program(data, match, value, start) or _verifies(
        data, at - len(before), name
    ):
        return None
    name = names.whole(name, rest)
    # As in an environment, where values need no quotes: `DB_PASSWORD=two-words`.
    plain = data[match.end("rest") : start] == b"=" and name.isupper()
    # With the sign that ends it, or that ends a sentence.
    whole = value if quoted else data[start : match.end("bare")]
    held = names.holds(strength, name, value, quoted=quoted or plain, loose=loose) and (
        plain or names.by_chance(strength, whole)
    )
    return Token("assigned-secret", value, start) if held else None


def _taken(data: bytes, match: re.Match[bytes], name: bytes) -> bool:
    """Whether a function's argument is not a secret, by the name or the words before it.

    A function that computes or looks up a secret returns it, and takes a public key or a name.
    """
    at = match.start()
    return match["call"] is not None and (
        _RETURNS.search(name) is not None
        or _PUBLIC.search(data, max(0, at - _CLOSE), at) is not None
    )


def _verifies(data: bytes, at: int, name: bytes) -> bool:
    """Whether a key's name, at an offset, is behind the signature that the key verifies."""
    return (
        name.lower().endswith(b"key")
        and _BEHIND_SIGNATURE.search(data, max(0, at - _SIGNATURE), at) is not None
    )


def _computed(data: bytes, start: int, value: bytes) -> bool:
    """Whether a value is a name in a program, because an operator follows."""
    return (
        _VARIABLE.fullmatch(value) is not None
        and _OPERATOR.match(data, start + len(value)) is not None
        and not heuristics.irregular(value)
    )


def _of_program(data: bytes, match: re.Match[bytes], value: bytes, start: int) -> bool:
    """Whether a value is a name in a program, or one of a row of names."""
    if _in_row(data, start, value):
        return True
    bare = match["quoted"] is None
    return bare and (_computed(data, start, value) or _named_in_map(match, value))


def _named_in_map(match: re.Match[bytes], value: bytes) -> bool:
    """Whether a value in a map is a name in a program: its key has quotes, it has none."""
    data, end = match.string, match.end("bare")
    return (
        data[match.end("rest") : match.end("rest") + 1] in _QUOTES
        and data[end : end + 1] in _GOES_ON
        and _VARIABLE.fullmatch(value) is not None
        and not heuristics.irregular(value)
    )


def _in_row(data: bytes, start: int, value: bytes) -> bool:
    """Whether a value is one of several close together that differ only in their numbers."""
    one = _NUMBERED.fullmatch(value)
    if one is None:
        return False
    alike = re.escape(one[1]) + rb"[a-z]?(\d{%d})(?!\w)" % len(one[2])
    near = data[max(0, start - _ROW) : start + _ROW]
    return len(set(re.findall(alike, near))) >= _IN_ROW


def _in_data(data: bytes, at: int) -> bool:
    """Whether a name is part of encoded data or of a cloud resource's name, or not a name.

    For instance, a test run prints `--- PASS: TestOne/2`, and a DNS client `; COOKIE: `.
    """
    if data.endswith(b"--- ", 0, at) or _DNS_COOKIE.match(data, max(0, at - 2)):
        return True
    before = data[max(0, at - _RUN) : at]
    run = before.translate(_ENDED).rpartition(b" ")[2]
    if run.startswith(b"arn:") or (len(run) == _RUN and bool(run.strip(_NAME))):
        return True
    return _dense(before.translate(None, b"\r\n")[-_ENCODED:]) or in_block(data, at)


def in_block(data: bytes, at: int) -> bool:
    """Whether an offset is in one of the full lines of data that is encoded in most signs."""
    low = data.rfind(b"\n", max(0, at - _LONGEST_LINE), at)
    end = data.find(b"\n", at, at + _LONGEST_LINE)
    if low < 0 or end < 0 or end - low < _ENCODED:
        return False
    line = data[low + 1 : end]
    before = data.rfind(b"\n", max(0, 2 * low - end - 1), low)
    return (
        low - before == end - low
        and _PRINTED.match(line) is not None
        and b" " not in line
        and len(set(_SIGNS.findall(line))) >= _BLOCK_SIGNS
    )


def _dense(run: bytes) -> bool:
    """Whether a run is part of data encoded in letters, digits and most other signs."""
    return (
        _PRINTED.fullmatch(run) is not None
        and len(set(_SIGNS.findall(run))) >= _DISTINCT_SIGNS
        and heuristics.turns(run) >= _TURNS
    )


def _by_chance(before: bytes, behind: bytes) -> bool:
    """Whether a keyword is within encoded data, and not in a name."""
    whole = before + behind
    return (
        (len(before) >= _NO_WORD and heuristics.irregular(before))
        or (
            len(whole) >= _NO_WORD
            # Only its last letters, because earlier letters may repeat.
            and heuristics.irregular(whole[-_NO_WORD:])
            and not words.worded(whole[-_NO_WORD:])
        )
    )


def _within_base64(data: bytes, at: int, end: int) -> bool:
    """Whether a keyword is the end of a run of base64, with the signs that no name has."""
    before = data[max(0, at - _LONGEST_NAME) : at]
    run = before[len(before.rstrip(_BASE64)) :] + data[at:end]
    return len(run) >= _NO_WORD and heuristics.irregular(run) and not words.worded(run)


def _declared(data: bytes, at: int, match: re.Match[bytes], name: bytes) -> bool:
    """Whether a name and a value side by side are an assignment."""
    if match["space"] is not None:
        line = data[max(0, at - 24) : at]
        return name.startswith(b"-") or _DECLARES.search(line) is not None
    if match["pair"] is not None:
        return (
            name == name.upper()
            and _CALLS.search(data[max(0, at - 60) : at]) is not None
        )
    return False
