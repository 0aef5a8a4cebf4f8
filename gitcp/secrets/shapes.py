"""Finds tokens by shape: a short prefix and a long random run.

For instance `acme_live_` and thirty letters and digits that no person would write in this
order; or three such runs joined by dots. Ids, digests and names of files look like that, too;
their prefixes tell them apart.
"""

import re
from collections.abc import Iterator

from gitcp.secrets import chance, heuristics, words
from gitcp.secrets.runs import Spend
from gitcp.secrets.tokens import Token, is_digest, is_in_table

_SHAPE = re.compile(
    # The `m` that ends a colour is not part of it; after `/@` a user follows, after `<` a tag.
    rb"(?<![A-Za-z0-9_/.=+<\\-])(?<!/@)(?!(?<=\[)[mK])(?P<head>(?:[A-Za-z][A-Za-z0-9]{0,11}[_-]){1,4})"
    rb"(?P<tail>[A-Za-z0-9]{16,200}(?:[_.-][A-Za-z0-9]{4,100}){0,4}={0,2})"
    rb"(?![A-Za-z0-9/+])"
)
_DOTTED = re.compile(
    # After a dollar sign a part of a password's hash follows, which another rule finds.
    rb"(?<![A-Za-z0-9_/.=+$\\-])[A-Za-z0-9_-]{8,200}"
    rb"(?:\.[A-Za-z0-9_-]{16,400}){1,3}(?![\w/-])"
)
# Parts of a prefix that announce a secret.
_SAYS = re.compile(
    rb"(?i)(?:\A|[_-])(?:[a-z]{0,8}(?:api|key|token|secret|auth)|sk|rk|ak|sak|uak|pat"
    rb"|[a-z]{1,3}pat"
    rb"|tok|tkn|pw|pwd|sec|live|prod|priv|svc|svcacct|admin|oauth|refresh|rt|personal"
    rb"|deploy"
    rb"|webhook|wh|master|root|cred|sandbox|bot|account|access|u?sk\d?|pass"
    rb"|s2s)(?:[_-]|\Z)"
)
# Parts that announce something else: an id, a digest, a file of a build.
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
# Values beside names like these are public.
_ID_NAME = re.compile(
    rb"(?:(?i:ids?|etag|hash|digest|version|cursor|marker|checksum|uuid|fingerprint"
    rb"|\burl|(?:next|page|paging|pagination|continuation|sync|scroll|resume)[_-]?token)"
    # The point of a public key, its number, and a signature.
    rb"|(?<![A-Za-z0-9_])(?:[xyn]|signature|p256dh))"
    # In a string of JSON, or of JSON in JSON, quotes have backslashes.
    rb"\\{0,7}[\"']?[ \t]{0,4}[:=>][ \t]{0,4}(?:\[[ \t\r\n]{0,40})?\\{0,7}[\"'`]?\Z"
)
# A code that a site publishes to prove its owner.
_SHOWN = re.compile(rb"(?i)verif(?:y|ication)[^\r\n]{0,40}\Z")
# A last line, with a method call in the line below it; or a file name.
_METHOD = re.compile(rb"\.(?:[a-z]{3,}(?:_[a-z]{3,})+|[a-z]{2,5})\Z")
# The argument of a decoding function is data.
_DECODED = re.compile(rb"(?i)(?:decode|unpack|inflate|parse)\w{0,20}\([\"'`]\Z")
# How pictures, sounds and documents begin, in base64.
_FILE = re.compile(rb"UklGR|iVBORw0KGgo|R0lGOD|JVBERi0|T2dnUw|SUQzB")
# In a pattern, a class of letters with a quantifier follows the fixed part.
_PATTERN = re.compile(rb"[_-]?(?:\[[^\]\r\n]{1,40}\]|\\{1,2}[wdsS])[{+*]")
# For instance the lines of encrypted data.
_BEHIND_FULL = re.compile(
    rb"[A-Za-z0-9_-]{60,80}[\r\n]{1,2}[ \t]{0,40}\Z"
    # The second half of a string is scanned where both halves are joined.
    rb"|[A-Za-z0-9_-]{20,80}[\"'][\r\n]{1,2}[ \t]{0,40}[\"']\Z"
)
_WHOLE = re.compile(
    rb"([A-Za-z0-9_-]{1,400})([\"'][\r\n]{1,2}[ \t]{0,40}[\"'][A-Za-z0-9_-]{20})?"
)
# With this, it is the id of a message; with a colon before both, a user of a host.
_OF_HOST = re.compile(rb"@[\w-]+(?:\.[\w-]+)+")
_HEX = re.compile(rb"[0-9a-f]+|[0-9A-F]+")
# A cloud resource's id; an account of an OpenStack object store.
_ID = re.compile(
    rb"(?!(?:[sra]k|pat|tok|api)-)[a-z]{1,5}-[a-z0-9]{8,24}|AUTH_[0-9a-f]{32}"
)
_UUID = re.compile(rb"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# The cost of judging a shape, in bytes scanned.
_JUDGED = 300
_LONG = 30
_LONG_NAMED = 20
_LONG_HEX = 32
# The evidence for chance of a prefix that is part of base64.
_RANDOM_HEAD = 30


def shaped(data: bytes, start: int, end: int, spend: Spend) -> Iterator[Token]:
    """Yields the parts of a run that have the shape of a token."""
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
            # The text that it encodes is scanned by itself.
            continue
        if (
            _ELSE.search(head) is None
            and not _random_head(head)
            and _random_tail(head, tail)
            and chance.evidence(tail) >= chance.ALONE
            and not is_in_table(data, start, spend)
        ):
            yield Token("shaped-token", match[0], match.start())
    if data.find(b".", start, end) < 0:
        return
    for match in _DOTTED.finditer(data, start, end):
        spend(_JUDGED)
        if _ID_NAME.search(data, max(0, match.start() - 60), match.start()):
            continue
        if data[match.end() : match.end() + 1] == b"(":
            # This is a function of a module; the run ends before its bracket.
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
    """Whether the text around a shape, or its end, shows that it is not a token."""
    start = match.start()
    before = max(0, start - 60)
    return (
        _FILE.match(data, start) is not None
        or _DECODED.search(data, before, start) is not None
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


def _random_head(head: bytes) -> bool:
    """Whether chance made a prefix of several parts, too, so that all of it is base64."""
    return len(re.findall(rb"[_-]", head)) > 1 and chance.evidence(head) >= _RANDOM_HEAD


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
    # The prefix announces nothing: require letters of both cases and digits, as in random text.
    return heuristics.mixed(longest) and head.count(b"_") + head.count(b"-") <= 2  # noqa: PLR2004
