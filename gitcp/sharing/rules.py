"""What a secret looks like: token shapes, keys, URLs with passwords, assignments.

The built-in layer of the scanner. Each rule says what it found as bytes of the text it
looked at; the caller decides which texts to look at. Precision comes first where a rule
needs no name beside the value (a token's own prefix), and judgement where it does.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from gitcp.sharing import judge


class Match(NamedTuple):
    """A secret in a text: the rule, the value, and where it starts."""

    rule: str
    value: bytes
    start: int


# name, what the value starts with, the rest; all are told by their own form alone
_TOKENS = (
    ("aws-access-key", "AKIA ASIA ABIA ACCA", r"[A-Z2-7]{16}(?![A-Za-z0-9])"),
    ("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{36,255}"),
    ("github-token", "github_pat_", r"[A-Za-z0-9_]{60,255}"),
    ("gitlab-token", "glpat- gldt- glrt- glcbt- glptt- glagent-", r"[\w.-]{20,}"),
    ("slack-token", "xoxa- xoxb- xoxp- xoxr- xoxs- xoxe- xapp-", r"[A-Za-z0-9-]{20,}"),
    (
        "slack-webhook",
        "hooks.slack.com/services/",
        r"T\w{6,}/B\w{6,}/[A-Za-z0-9]{20,}",
    ),
    (
        "discord-webhook",
        "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
        r"\d{15,}/[\w-]{50,}",
    ),
    ("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", r"[A-Za-z0-9]{20,}"),
    ("stripe-webhook", "whsec_", r"[A-Za-z0-9+/]{32,}=*"),
    ("anthropic-key", "sk-ant-", r"[\w-]{24,}"),
    ("openai-key", "sk-proj- sk-svcacct- sk-admin-", r"[\w-]{24,}"),
    ("openrouter-key", "sk-or-v1-", r"[0-9a-f]{48,}"),
    ("openai-key", "sk-", r"[A-Za-z0-9]{32,}(?![A-Za-z0-9_-])"),
    ("google-key", "AIza", r"[\w-]{35}(?![\w-])"),
    ("google-oauth", "GOCSPX-", r"[\w-]{24,}"),
    ("google-oauth", "ya29.", r"[\w-]{30,}"),
    ("npm-token", "npm_", r"[A-Za-z0-9]{36}(?![A-Za-z0-9])"),
    ("pypi-token", "pypi-AgE", r"[\w-]{50,}"),
    ("rubygems-token", "rubygems_", r"[0-9a-f]{48}"),
    ("crates-token", "cio", r"[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("sendgrid-key", "SG.", r"[\w-]{20,24}\.[\w-]{39,50}"),
    ("mailgun-key", "key-", r"[0-9a-f]{32}(?![0-9A-Za-z])"),
    ("mailchimp-key", "", r"[0-9a-f]{32}-us\d{1,2}(?![0-9A-Za-z])"),
    ("twilio-key", "SK", r"[0-9a-f]{32}(?![0-9A-Za-z])"),
    ("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{64}"),
    ("shopify-token", "shpat_ shpca_ shppa_ shpss_", r"[0-9a-fA-F]{32}"),
    ("databricks-token", "dapi", r"[0-9a-f]{32}(?![0-9A-Za-z])"),
    ("huggingface-token", "hf_", r"[A-Za-z]{30,40}(?![A-Za-z0-9])"),
    ("vault-token", "hvs. hvb. hvr.", r"[\w-]{24,}"),
    ("doppler-token", "dp.pt. dp.st. dp.ct. dp.sa.", r"[\w.-]{40,}"),
    ("linear-key", "lin_api_ lin_oauth_", r"[A-Za-z0-9]{32,}"),
    ("notion-token", "ntn_ secret_", r"[A-Za-z0-9]{43,50}(?![A-Za-z0-9])"),
    ("figma-token", "figd_", r"[\w-]{38,}"),
    ("groq-key", "gsk_", r"[A-Za-z0-9]{50,}"),
    ("xai-key", "xai-", r"[A-Za-z0-9]{70,}"),
    ("perplexity-key", "pplx-", r"[A-Za-z0-9]{40,}"),
    ("replicate-token", "r8_", r"[A-Za-z0-9]{37}(?![A-Za-z0-9])"),
    ("langsmith-key", "lsv2_pt_ lsv2_sk_", r"[0-9a-f]{32}_[0-9a-f]{10}"),
    ("grafana-token", "glsa_ glc_", r"[A-Za-z0-9+/_=]{32,}"),
    ("newrelic-key", "NRAK-", r"[A-Z0-9]{27}"),
    ("sentry-token", "sntrys_ sntryu_", r"[A-Za-z0-9+/=_]{60,}"),
    ("supabase-key", "sbp_ sb_secret_", r"[A-Za-z0-9_-]{30,}"),
    ("planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[\w.=-]{32,}"),
    ("postman-key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    ("pulumi-token", "pul-", r"[0-9a-f]{40}"),
    ("docker-token", "dckr_pat_ dckr_oat_", r"[\w-]{24,}"),
    ("atlassian-token", "ATATT3 ATCTT3", r"[\w=-]{60,}"),
    ("square-token", "sq0atp- sq0csp- sq0idp-", r"[\w-]{22,}"),
    ("tailscale-key", "tskey-", r"[a-z]+-\w{10,}-\w{20,}"),
    ("netlify-token", "nfp_", r"[A-Za-z0-9]{36,}"),
    ("buildkite-token", "bkua_", r"[0-9a-f]{40}"),
    ("circleci-token", "CCIPAT_ CCIPRJ_", r"[\w]{20,}"),
    ("heroku-key", "HRKU-", r"[\w-]{36,}"),
    ("age-secret-key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{58}"),
    ("terraform-token", "", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}"),
    ("telegram-token", "", r"(?:bot)?\d{8,10}:AA[\w-]{32,34}(?![\w-])"),
    ("discord-token", "", r"[MNO][A-Za-z0-9_-]{23,27}\.[\w-]{6}\.[\w-]{27,40}"),
    ("azure-secret", "", r"[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{31,34}"),
    ("json-web-token", "eyJ", r"[\w-]{14,}\.eyJ[\w-]{14,}\.[\w-]{20,}"),
)


def _alternatives() -> tuple[str, dict[str, str]]:
    parts, names = [], {}
    for number, (name, starts, rest) in enumerate(_TOKENS):
        head = "|".join(re.escape(start) for start in starts.split())
        parts.append(f"(?P<r{number}>(?:{head}){rest})")
        names[f"r{number}"] = name
    return "|".join(parts), names


_PATTERN, _NAMES = _alternatives()
_TOKEN = re.compile(_PATTERN.encode())
# What may be a token: a run of what they are made of. Most text has none.
_RUN = re.compile(rb"[A-Za-z0-9_~.:/+=-]{20,}")
_STARTS = tuple(start.encode() for _, starts, _ in _TOKENS for start in starts.split())
_DIGIT = re.compile(rb"\d")
_LONG_RUN = 1_024
_LONGEST_TOKEN = 2_048
_WORD = re.compile(rb"[A-Za-z0-9_]")
_PERCENT = re.compile(rb"%[0-9A-Fa-f]{2}")

_URL = re.compile(
    rb"[a-zA-Z][a-zA-Z0-9+.-]{1,20}://"
    rb"[^\s/:@\"'<>\\`|{}()\[\],]{0,200}:([^\s/@\"'<>\\`|(),]{3,300})@(?=[\w\[.-])"
)
_PEM = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(.{40,20000}?)"
    rb"(?:-----END|\Z)",
    re.DOTALL,
)
_PUTTY = re.compile(rb"Private-Lines: ?\d+\s+((?:[A-Za-z0-9+/=]{8,}\s+){2,})")
_BEARER = re.compile(
    rb"(?i:\b(?:bearer|basic|authorization[\"']?\s*[:=]\s*[\"']?(?:token|apikey)))"
    rb"\s+([A-Za-z0-9_.~+/=-]{16,1000})"
)

_KEYWORDS = (
    b"passw",
    b"passphrase",
    b"pwd",
    b"secret",
    b"token",
    b"key",
    b"credential",
)
# Between the keyword and the value: the rest of the name, then what assigns.
_ASSIGNED = re.compile(
    rb"(?P<rest>[A-Za-z0-9_-]{0,40})"
    rb"(?:[\"'`]?[ \t]*,[ \t\r\n]*[\"']?value[\"']?[ \t]*[:=][ \t]*"
    rb"|[\"'`]?\]?\)?[ \t]*(?::[ \t]*[A-Za-z_][\w.\[\]| ]{0,40}=|=>|:=|\?=|[:=])[ \t]*"
    rb"|\r?\n[ \t]+value:[ \t]*"
    rb"|>(?=[^<\r\n]{4,200}</)"
    rb"|(?P<flag>[ \t]+))"
    rb"(?:[bruf]{0,2}(?P<quote>[\"'`])(?P<quoted>[^\"'`\r\n\\]{5,512})(?P=quote)"
    rb"|(?P<bare>[^\s\"'`,;(){}\[\]<>\\|&]{6,512}))"
)
_NAME_BEFORE = re.compile(rb"[A-Za-z0-9_.-]{0,48}\Z")


def matches(data: bytes, *, binary: bool = False) -> Iterator[Match]:
    """Yields the secrets that the built-in rules see in a text.

    In `binary` data only what is told by its own form counts: a name beside a value is
    an accident there.
    """
    yield from _tokens(data)
    if b"PRIVATE KEY" in data:
        yield from _keys(data)
    if b"Private-Lines" in data:
        for match in _PUTTY.finditer(data):
            yield Match("private-key", match[1], match.start(1))
    if binary:
        return
    if b"://" in data and b"@" in data:
        for match in _URL.finditer(data):
            if judge.password(match[1]):
                yield Match("url-password", match[1], match.start(1))
    lower = data.lower()
    if b"bearer" in lower or b"basic" in lower or b"authorization" in lower:
        for match in _BEARER.finditer(data):
            if judge.random(match[1]):
                yield Match("authorization", match[1], match.start(1))
    yield from _assignments(data, lower)


def _tokens(data: bytes) -> Iterator[Match]:
    for run in _RUN.finditer(data):
        start, end = run.span()
        if end - start <= _LONG_RUN and _DIGIT.search(data, start, end):
            yield from _tokens_in(data, start, end)
            continue
        # Words and dots, encoded data, or a list: only where something starts as a token does.
        for prefix in _STARTS:
            at = data.find(prefix, start, end)
            while at >= 0:
                if not _inside_word(data, at):
                    yield from _tokens_in(data, at, min(at + _LONGEST_TOKEN, end))
                at = data.find(prefix, at + len(prefix), end)


def _tokens_in(data: bytes, start: int, end: int) -> Iterator[Match]:
    at = start
    while True:
        match = _TOKEN.search(data, at, end)
        if match is None:
            return
        if _inside_word(data, match.start()):
            at = match.start() + 1
            continue
        assert match.lastgroup is not None
        name = _NAMES[match.lastgroup]
        # Words and dots may have this form, where a token hardly does.
        words = name == "discord-token" and not _DIGIT.search(match[0])
        if not words and judge.token(match[0]):
            yield Match(name, match[0], match.start())
        at = match.end()


def _inside_word(data: bytes, at: int) -> bool:
    if at == 0 or _WORD.match(data, at - 1) is None:
        return False
    # `%3D` is an equals sign in a URL, and no word.
    return _PERCENT.match(data, max(at - 3, 0), at) is None


def _keys(data: bytes) -> Iterator[Match]:
    for match in _PEM.finditer(data):
        body = match[1]
        # Where line ends are escapes, the text without them is looked at as well.
        if b"\\" not in body and judge.key_body(body):
            yield Match("private-key", body, match.start(1))


def _assignments(data: bytes, lower: bytes) -> Iterator[Match]:
    seen = -1
    for word in _KEYWORDS:
        at = lower.find(word)
        while at >= 0:
            found = _assignment(data, at, word)
            if found is not None and found.start != seen:
                seen = found.start
                yield found
            at = lower.find(word, at + len(word))


def _assignment(data: bytes, at: int, word: bytes) -> Match | None:
    tail = _ASSIGNED.match(data, at + len(word))
    if tail is None:
        return None
    before = _NAME_BEFORE.search(data, max(0, at - 48), at)
    name = (before[0] if before else b"") + data[at : at + len(word)]
    flag = tail["flag"] is not None
    if flag and not name.startswith(b"--"):
        return None
    if not judge.secret_name(name, tail["rest"]):
        return None
    quoted = tail["quoted"]
    value = quoted if quoted is not None else tail["bare"]
    start = tail.start("quoted") if quoted is not None else tail.start("bare")
    if quoted is None:
        value = value.rstrip(b".:!?")
        if data[start + len(value) : start + len(value) + 1] == b"\\":
            # An escape cuts it short: the text without escapes has the whole.
            return None
        if (b"." in value or word in {b"token", b"key", b"secret"}) and judge.code(
            name, value
        ):
            return None
    password = word in {b"passw", b"passphrase", b"pwd"}
    if not judge.assigned(value, quoted=quoted is not None, password=password):
        return None
    return Match("assigned-secret", value, start)
