"""Finds tokens by shape: a short prefix and a long random run.

`acme_live_` and thirty letters and digits that no person would write in this order; three
such runs joined by dots. What makes ids, digests and names of files look like that is
left out by their prefixes, which say so.
"""

import re
from collections.abc import Iterator

from gitcp.secrets import chance, heuristics, words
from gitcp.secrets.runs import Spend
from gitcp.secrets.tokens import Token, is_digest

_SHAPE = re.compile(
    # The `m` that ends a colour is not a letter of it; behind `/@` stands a user, behind `<` a tag.
    rb"(?<![A-Za-z0-9_/.=+<\\-])(?<!/@)(?!(?<=\[)[mK])(?P<head>(?:[A-Za-z][A-Za-z0-9]{0,11}[_-]){1,4})"
    rb"(?P<tail>[A-Za-z0-9]{16,200}(?:[_.-][A-Za-z0-9]{4,100}){0,4}={0,2})"
    rb"(?![A-Za-z0-9/+])"
)
_DOTTED = re.compile(
    # Behind a dollar sign stands a part of the hash of a password, which is found as that.
    rb"(?<![A-Za-z0-9_/.=+$\\-])[A-Za-z0-9_-]{8,200}"
    rb"(?:\.[A-Za-z0-9_-]{16,400}){1,3}(?![\w/-])"
)
# Parts of a prefix that say a secret follows.
_SAYS = re.compile(
    rb"(?i)(?:\A|[_-])(?:[a-z]{0,8}(?:api|key|token|secret|auth)|sk|rk|ak|sak|uak|pat"
    rb"|[a-z]{1,3}pat"
    rb"|tok|tkn|pw|pwd|sec|live|prod|priv|svc|svcacct|admin|oauth|refresh|rt|personal"
    rb"|deploy"
    rb"|webhook|wh|master|root|cred|sandbox|bot|account|access|u?sk\d?|pass"
    rb"|s2s)(?:[_-]|\Z)"
)
# Those that say something else: an id, a digest, a file of a build.
_ELSE = re.compile(
    rb"(?i)(?:\A|[_-])(?:toolu|tool|call|chatcmpl|cmpl|msg|message|req|request|resp"
    rb"|run|runs|step"
    rb"|thread|asst|file|ses|session|sess|prt|rs|fc|ws|batch|gen|evt|event|trace|span"
    rb"|id|uid|uuid|guid"
    rb"|sha\d*|md5|blake\w*|hash|digest|checksum|etag|rev|commit|build|chunk|chunks"
    rb"|bundle|css|js|sc"
    rb"|img|image|icon|font|fonts|v|ver|version|test|tests|pk|pub|public|publishable"
    rb"|pypi|snap|node|npm"
    rb"|cache|cached|key\d|index|main|vendor|polyfill|runtime|data|obj|object|layer"
    rb"|container|pod|deployment"
    rb"|srv|vm|i|ami|vol|vpc|subnet|sg|eni|arn|subscription|cus|customer|acct|price"
    rb"|prod\d|pi|pm|ch|in|sub"
    rb"|seti|cs|po|txn|item|org|proj|project|team|user|usr|room|doc|page|ref|refs"
    rb"|patch|part|section|table"
    rb"|app|game|video|channel|x|tmp|temp|mod|module|src|lib|dist|assets?|static"
    rb"|media|nonce|sri|integrity"
    rb"|serial|batch|job|task|wf|workflow|conv|conversation|checkpoint|snapshot"
    rb"|stream|cursor|page)(?:[_-]|\Z)"
)
# What stands beside names like these is known to anyone who asks.
_ID_NAME = re.compile(
    rb"(?:(?i:ids?|etag|hash|digest|version|cursor|marker|checksum|uuid|fingerprint"
    rb"|\burl|(?:next|page|paging|pagination|continuation|sync|scroll|resume)[_-]?token)"
    # The point of a public key, its number, and what it signed.
    rb"|(?<![A-Za-z0-9_])(?:[xyn]|signature|p256dh))"
    rb"[\"']?[ \t]{0,4}[:=>][ \t]{0,4}\[?[\"'`]?\Z"
)
# What a site shows, so that its owner is known.
_SHOWN = re.compile(rb"(?i)verif(?:y|ication)[^\r\n]{0,40}\Z")
# The last line of something, and a call of a method in the one below it; a file.
_METHOD = re.compile(rb"\.(?:[a-z]{3,}(?:_[a-z]{3,})+|[a-z]{2,5})\Z")
# What a program decodes is data.
_DECODED = re.compile(rb"(?i)(?:decode|unpack|inflate|parse)\w{0,20}\([\"'`]\Z")
# In a pattern a class of letters and how often it comes stand behind what does not change.
_PATTERN = re.compile(rb"[_-]?(?:\[[^\]\r\n]{1,40}\]|\\{1,2}[wdsS])[{+*]")
# The lines of something that is encrypted, say.
_BEHIND_FULL = re.compile(
    rb"[A-Za-z0-9_-]{60,80}[\r\n]{1,2}[ \t]{0,40}\Z"
    # The second half of a string is looked at where both are put together.
    rb"|[A-Za-z0-9_-]{20,80}[\"'][\r\n]{1,2}[ \t]{0,40}[\"']\Z"
)
_WHOLE = re.compile(
    rb"([A-Za-z0-9_-]{1,400})([\"'][\r\n]{1,2}[ \t]{0,40}[\"'][A-Za-z0-9_-]{20})?"
)
# With it, the id of a message; with a colon in front of both, a user of a host.
_OF_HOST = re.compile(rb"@[\w-]+(?:\.[\w-]+)+")
_HEX = re.compile(rb"[0-9a-f]+|[0-9A-F]+")
# What a cloud names a thing by.
_ID = re.compile(rb"(?!(?:[sra]k|pat|tok|api)-)[a-z]{1,5}-[a-z0-9]{8,24}")
_UUID = re.compile(rb"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# What judging a shape costs, in bytes looked at.
_JUDGED = 300
_LONG = 30
_LONG_NAMED = 20
_LONG_HEX = 32


def shaped(data: bytes, start: int, end: int, spend: Spend) -> Iterator[Token]:
    """Yields what has the shape of a token in a run."""
    for match in _SHAPE.finditer(data, start, end):
        spend(_JUDGED)
        head, tail = match["head"], match["tail"]
        start = match.start()
        if _is_none(data, match):
            continue
        whole = _WHOLE.match(data, start)
        if whole is not None and (whole[2] or words.public(whole[1])):
            continue
        if _ID.fullmatch(match[0]) or words.decoded(match[0]) is not None:
            # What it says is looked at by itself.
            continue
        if (
            _ELSE.search(head) is None
            and _random_tail(head, tail)
            and chance.evidence(tail) >= chance.ALONE
        ):
            yield Token("shaped-token", match[0], match.start())
    if data.find(b".", start, end) < 0:
        return
    for match in _DOTTED.finditer(data, start, end):
        spend(_JUDGED)
        if _ID_NAME.search(data, max(0, match.start() - 60), match.start()):
            continue
        if data[match.end() : match.end() + 1] == b"(":
            # A function of a module; the run ends before its bracket.
            continue
        parts = match[0].split(b".")
        if heuristics.repeats(match[0]) or words.unsigned(match[0]):
            continue
        long = [part for part in parts if len(part) >= _LONG_NAMED]
        random = all(
            heuristics.irregular(part)
            and heuristics.mixed(part)
            and chance.evidence(part) >= chance.ALONE
            and not words.worded(part)
            for part in long
        )
        if long and random and sum(map(len, long)) >= 2 * _LONG_NAMED:
            yield Token("shaped-token", match[0], match.start())


def _is_none(data: bytes, match: re.Match[bytes]) -> bool:
    """Whether what stands around a shape, or ends it, says that it is no token."""
    start = match.start()
    before = max(0, start - 60)
    return (
        _DECODED.search(data, before, start) is not None
        or _METHOD.search(match["tail"]) is not None
        or _SHOWN.search(data, before, start) is not None
        or (
            _OF_HOST.match(data, match.end()) is not None
            and data[start - 1 : start] != b":"
        )
        or _PATTERN.match(data, match.end()) is not None
        or is_digest(data, start)
        or _ID_NAME.search(data, before, start) is not None
        or _BEHIND_FULL.search(data, max(0, start - 130), start) is not None
    )


def _random_tail(head: bytes, tail: bytes) -> bool:
    says = _SAYS.search(head) is not None
    body = re.sub(rb"[_.=-]", b"", tail)
    if _HEX.fullmatch(body) or _UUID.fullmatch(tail):
        return says and len(body) >= _LONG_HEX and heuristics.irregular(body)
    least = _LONG_NAMED if says else _LONG
    longest = max(re.split(rb"[_.=-]+", tail), key=len)
    if len(longest) < (16 if says else 24):
        return False
    if len(body) < least or not heuristics.irregular(longest) or words.worded(longest):
        return False
    if says:
        return True
    # Nothing says so: letters of both cases and digits, as chance has them.
    return heuristics.mixed(longest) and head.count(b"_") + head.count(b"-") <= 2  # noqa: PLR2004
