"""Decides by its name (`password`, `api_key`) whether a value is a secret."""

import re

from gitcp.secrets import chance, examples, heuristics, words

# The name is not of a secret; the value must look random; the name is of a secret; it is of a
# password, which people make.
NONE, WEAK, STRONG, PASSWORD = range(4)

# Names of things beside a secret, not of the secret itself.
_BESIDE = re.compile(
    rb"(?i)[_.-]?(?:addr(?:ess)?|names?|files?|paths?|dirs?|ur[il]s?|hosts?|endpoint|types?|kind|len"
    rb"|length|count|limit|size|index|idx|expir\w*|ttl|at|age|date|time\w*|regex|re"
    rb"|pattern|fields?|label|hint|prompt|policy|column|refs?|header|format|version"
    rb"|provider|iv|nonce|tx|class|method|func\w*|algorithm|algo|alg|ids?|i[sz]e[rd]?\w*|map|list|set"
    rb"|usages?|budget|cost|price|store|manager|service|error|message|valid\w*|src"
    rb"|bytes|chars?|words?|board\w*|hash|words|_?env|less|ring|stroke|frame\w*"
    rb"|s?um|types?|arn|digest|fingerprint|checksum|thumbprint|prefix|suffix|scope\w*"
    rb"|mint|program|contract|symbol|accounts?|cert(?:ificate)?s?|issuer|owner|supply|decimals"
    rb"|amount|balance|modulus|accessor|resource|exponent|curve|code|encryption|hashers?|encoding|storage|request|req|attr(?:ibute)?s?|sha-?\d{1,3}|md5)(?:_hex|_b64|_base64)?\Z"
)
_SECRET_KEY = re.compile(
    rb"(?i)(?:api|access|private|secret|auth|sign(?:ing)?|encrypt(?:ion)?|crypt|master"
    rb"|account|storage|shared|service|license|session|deploy|admin|client|consumer"
    rb"|hmac"
    rb"|jwt|cookie|app|application|rails|write|ingest|integration|server|ssh|webhook"
    rb"|hook|function|host|token"
    rb"|subscription|root|team|personal|user|preshared|pre[_-]shared|seal|unseal"
    rb"|recovery|wallet"
    rb"|decrypt(?:ion)?|vault|fernet|symmetric|routing|management|sending|live)"
    rb"[_.-]?key\Z"
)
_NOT_SECRET = re.compile(
    rb"(?i)public[_.-]?(?:api[_.-]?)?key|\bpubkey|(?:key|pass)[_-]?id\Z|publishable"
    # A nonce.
    rb"|websocket[_.-]?key\Z"
)
# Names of the tokens by which a cloud's API pages and repeats requests.
_PAGING = re.compile(
    rb"(?i)(?:next|prev\w*|page|paging|pagination|continu\w*|client|request|req|sync"
    rb"|start\w*|end\w*"
    rb"|resume|skip|delta|change\w*|cursor|idempoten\w*|creator|caller|marker"
    rb"|watermark|list|batch|lifetime"
    rb"|scroll|since|version|upload|input|output|ordering|lock|fencing|cancel\w*|access_?token_?sub|css"
    rb"|style|color|theme"
    rb"|design|syntax|lex\w*|parse\w*|unk|bos|eos|pad|mask|special"
    rb"|stop)[_.-]?(?:page[_.-]?|request[_.-]?)?token\Z"
)
_KEY_ELSE = re.compile(
    rb"(?i)(?:badge|primary|foreign|partition|sort|cache|hash|range|row|object|item|group"
    rb"|index|map|dict|routing"
    rb"|sortby|lookup|translation|storage|local|i18n|react|unique|dedup\w*"
    rb"|idempotency|s3|host|known|public|pub"
    rb"|registry|resource|hk\w+|reg|shortcut|hot|arrow|meta|ctrl|press|tab|alt|func|entity"
    rb"|event|field|menu|order"
    rb"|type|site|json|data|config|setting|option|property|feature|flag)[_.-]?key\Z"
)
_WHOLE_WORD = re.compile(
    rb"(?:\A|[_.-]|(?<=[a-z])(?=[A-Z]))(?i:pass|pw|pat|psk|auth|creds?|cookie|bearer|jwt)\Z"
)
_GLUED_PASS = re.compile(
    rb"(?i)(?:require|store|key|db|root|user|smtp|mail|ftp|my|ssh|sudo|login|admin"
    rb"|bind|become)pass?w?\Z"
)
_UUID = re.compile(rb"(?i)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# A UUID made of the time and the machine, such as the id of an interface.
_UUID_OF_TIME = re.compile(rb"(?i)[0-9a-f]{8}-[0-9a-f]{4}-1[0-9a-f]{3}-")
_ID = re.compile(rb"[0-9a-f]{24}|[0-9a-f]{40}")
_PEOPLE = (
    b"password",
    b"passwd",
    b"passwrd",
    b"passwd",
    b"pwd",
    b"passphrase",
    b"passcode",
    b"passwort",
)
_PLURAL = frozenset({b"s", b"ing", b"ed", b"es", b"ize", b"izer", b"ized"})
_MADE_BY_PEOPLE = re.compile(rb"[!@#%^*?~\d]")
_WEAKER = (b"cookie", b"auth", b"pat")
# A value that sets something else.
_SETS = re.compile(rb"[A-Za-z_]\w{1,23}=[^=]+|[A-Za-z_]{3,24}:[^:]+")
# A cookie whose value is a word, whatever its name.
_COOKIE = re.compile(rb"[\w{}-]{1,80}=[A-Za-z]{1,12}\d{0,3}")
# `authkey` has two words.
_MORE = re.compile(rb"(?i)key|token|secret")
_LEAST_WEAK = 20
# Issued values cannot be guessed, so a shorter value is an example, or a name.
_LEAST_ISSUED = 10
# One of several with the same name, such as `pw_512`.
_NUMBERED = re.compile(rb"(?i)(?:pw|pwd|pass|password|token|secret|key)_\d{1,4}")
_REPEATED = 5
_HELD = 4
# A variable that holds a password: `srx2_pass`.
_VARIABLE = re.compile(
    rb"[a-z][a-z0-9]*(?:_[a-z0-9]+)*_(?:pass(?:w(?:or)?d|phrase)?|pwd|secret|token|key)"
)
_QUERIES = frozenset({b"?", b"&"})


def strength(name: bytes, rest: bytes, before: bytes) -> int:
    """Returns how surely a name, from its keyword and the rest, names a secret.

    `before` is the byte in front of the name.
    """
    whole = name + rest
    if _BESIDE.search(rest) or _NOT_SECRET.search(whole) or _PAGING.search(name):
        return NONE
    lower = name.lower()
    if lower.endswith(b"key"):
        return _key(name, rest, before)
    if lower.endswith(_PEOPLE):
        if lower.endswith(b"pwd") and rest[:1].isalpha() and rest.islower():
            # The word continues.
            return NONE
        # `passwords`, `tokens`: a plural often names a count.
        return PASSWORD if rest.lower() not in _PLURAL else NONE
    if rest[:1].isalpha() and lower.endswith(
        (b"pass", *_WEAKER, b"pw", b"psk", b"jwt")
    ):
        more = _MORE.match(rest)
        if more is not None:
            return strength(name + more[0], rest[more.end() :], before)
        if rest[:1].islower() == name[-1:].islower():
            # The word continues: a path, an author, a passenger.
            return NONE
    if lower.endswith((b"pass", b"pw")):
        known = _WHOLE_WORD.search(name) or _GLUED_PASS.search(name)
        return PASSWORD if known else NONE
    if lower.endswith((b"secret", b"token", b"credential")):
        return STRONG if rest.lower() not in _PLURAL else NONE
    return WEAK if _WHOLE_WORD.search(name) else NONE


def _key(name: bytes, rest: bytes, before: bytes) -> int:
    if rest[:1] not in {b"", b"_", b"-"}:
        return NONE
    if _SECRET_KEY.search(name):
        return STRONG
    if _KEY_ELSE.search(name):
        return NONE
    if before in _QUERIES:
        # The rule for the queries of URLs judges it.
        return NONE
    capitals = name == name.upper() and b"_" in name
    header = b"-" in name and name[:1].isupper()
    flag = name.startswith(b"--")
    return WEAK if capitals or header or flag else NONE


def holds(
    strength: int, name: bytes, value: bytes, *, quoted: bool, loose: bool
) -> bool:
    """Whether a value beside a name of a given strength is a secret.

    A `loose` value is not assigned, but only follows the name.
    """
    if b" " in value or _NUMBERED.fullmatch(value):
        return False
    if strength != PASSWORD and (
        words.worded(value) or words.says_itself(value) or words.typed(value)
    ):
        return False
    if loose and _SETS.fullmatch(value):
        return False
    if not quoted and _VARIABLE.fullmatch(value):
        return False
    bare = not quoted and (strength != PASSWORD or b"." in value)
    if bare and heuristics.code(name, value):
        return False
    if _UUID.fullmatch(value):
        if heuristics.placeholder(value) or _UUID_OF_TIME.match(value):
            return False
        return strength == PASSWORD or (
            strength == STRONG and not loose and _sure(name)
        )
    if strength == WEAK:
        word = _COOKIE.fullmatch(value) and name.lower().endswith(b"cookie")
        return not (word or (loose and _ID.fullmatch(value))) and (
            len(value) >= _LEAST_WEAK
            and heuristics.random(value)
            and heuristics.irregular(value)
        )
    if loose:
        # A word that happens to be `pass` may be next to a commit's id, for example.
        return (
            heuristics.random(value)
            and heuristics.chance(value)
            and not words.worded(value)
            and not _ID.fullmatch(value.strip(b"-"))
        )
    return heuristics.assigned(value, quoted=quoted, password=strength == PASSWORD)


def by_chance(strength: int, value: bytes) -> bool:
    """Whether a value is not a name: it is random, or a password that a person made of words.

    A password of words has less evidence than a name has. It counts if it has a digit, or a
    sign that no name in a program has.
    """
    if strength != PASSWORD:
        return len(value) >= _LEAST_ISSUED and chance.evidence(value) >= chance.TOKEN
    return not examples.guessable(value) and (
        _MADE_BY_PEOPLE.search(value) is not None
        or chance.evidence(value) >= chance.PASSWORD
    )


def repeats(name: bytes, rest: bytes, value: bytes) -> bool:
    """Whether a value is or holds the name that it is assigned to, as in `a.pw_1 = b.pw_1`.

    Another example is `RESET_PASSWORD = "kit#ResetPasswordResponse"`; the rest of the value
    must not look random.
    """
    if len(rest) >= _REPEATED and value.endswith(rest):
        return True
    whole = name + rest
    own, other = (one.rpartition(b".")[2].lower().strip(b"_") for one in (whole, value))
    if len(other) >= _REPEATED and own.endswith(other):
        return True
    if own == other and b"." in value:
        return True
    own, held = own.replace(b"_", b""), value.lower().replace(b"_", b"")
    if len(own) < _HELD or own in {*_PEOPLE, b"pass"} or own not in held:
        # Many passwords contain the word `password`.
        return False
    # Not by a pattern made of the name: compiling one for each name takes ten times as long.
    at, letters = held.index(own), value.replace(b"_", b"")
    beside = letters[:at], letters[at + len(own) :]
    return not any(map(heuristics.chance, beside))


def whole(name: bytes, rest: bytes) -> bytes:
    """Returns a name that ends in a keyword, with the next keyword: `auth` of `authToken`."""
    more = _MORE.match(rest)
    return name if more is None else name + more[0]


def _sure(name: bytes) -> bool:
    """Whether a name is of an issued value, not of one that a program makes for itself."""
    lower = name.lower()
    return (
        name == name.upper()
        or lower.endswith(
            (b"secret", b"access_token", b"accesstoken", b"auth_token", b"authtoken")
        )
        or re.search(rb"api[_.-]?(?:key|token)\Z|(?:access|secret)[_.-]?key\Z", lower)
        is not None
    )
