"""Thirty-one synthetic secrets, made at run time so that nothing here looks like one."""

from __future__ import annotations

import base64
import random
import string

_ALNUM = string.ascii_letters + string.digits
_UPPER32 = string.ascii_uppercase + "234567"
_HEX = "0123456789abcdef"


class _Maker:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def of(self, letters: str, count: int) -> str:
        return "".join(self._random.choice(letters) for _ in range(count))

    def digest(self, count: int) -> bytes:
        return self._random.randbytes(count)


def sample_secrets(seed: int = 7) -> dict[str, tuple[str, str]]:
    """Each secret's value, and the line of a file or of a tool's output it stands in."""
    make = _Maker(seed)

    def jwt(part: int) -> str:
        raw = make.digest(part)
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")

    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    body = (
        base64.urlsafe_b64encode(b'{"sub":"1234567890","adm":1}').decode().rstrip("=")
    )
    password = make.of(_ALNUM, 14) + "7b"
    pem = base64.encodebytes(make.digest(600)).decode()
    fence = "-" * 5
    values = {
        "aws-id": ("AK" + "IA" + make.of(_UPPER32, 16), "aws_access_key_id = {}"),
        "aws-secret": (make.of(_ALNUM + "/+", 40), "aws_secret_access_key = {}"),
        "github": ("gh" + "p_" + make.of(_ALNUM, 36), "git clone with {}"),
        "github-fine": ("github" + "_pat_" + make.of(_ALNUM, 82), "GH={}"),
        "gitlab": ("gl" + "pat-" + make.of(_ALNUM, 20), "curl -H 'PRIVATE-TOKEN: {}'"),
        "slack-bot": (
            f"{'xox'}b-{make.of('123456789', 12)}-{make.of(_ALNUM, 24)}",
            "slack {}",
        ),
        "slack-hook": (
            (
                f"https://{'hooks.slack'}.com/services/T{make.of(_UPPER32, 8)}"
                f"/B{make.of(_UPPER32, 8)}/{make.of(_ALNUM, 24)}"
            ),
            "url: {}",
        ),
        "stripe": ("sk" + "_live_" + make.of(_ALNUM, 24), "stripe.api = '{}'"),
        "openai": (
            "sk-" + make.of(_ALNUM, 20) + "T3Blbk" + "FJ" + make.of(_ALNUM, 20),
            "OPENAI={}",
        ),
        "openai-project": (
            f"{'sk'}-proj-"
            + make.of(_ALNUM + "_-", 74)
            + "T3Blbk"
            + "FJ"
            + make.of(_ALNUM, 74),
            "key {}",
        ),
        "anthropic": (
            "sk-" + "ant-api03-" + make.of(_ALNUM + "_-", 93) + "AA",
            "export ANTHROPIC={}",
        ),
        "google": ("AI" + "za" + make.of(_ALNUM, 35), "maps?key={}"),
        "npm": ("np" + "m_" + make.of(_ALNUM, 36), "//registry/:_auth={}"),
        "pypi": (
            "pypi" + "-AgEIcHlwaS5vcmc" + make.of(_ALNUM + "_-", 150),
            "upload {}",
        ),
        "sendgrid": (
            "SG" + f".{make.of(_ALNUM, 22)}.{make.of(_ALNUM, 43)}",
            "mail with {}",
        ),
        "twilio": ("S" + "K" + make.of(_HEX, 32), "twilio {}"),
        "twilio-auth": (make.of(_HEX, 32), 'TWILIO_AUTH_TOKEN="{}"'),
        "telegram": (
            make.of("123456789", 9) + ":A" + "A" + make.of(_ALNUM, 33),
            "bot{}",
        ),
        "digitalocean": ("dop" + "_v1_" + make.of(_HEX, 64), "do: {}"),
        "huggingface": ("hf" + "_" + make.of(string.ascii_letters, 34), "login {}"),
        "jwt": (f"{head}.{body}.{jwt(32)}", "cookie {}"),
        "bearer": (make.of(_ALNUM, 40), "Authorization: Bearer {}"),
        "pem": (
            pem,
            f"{fence}BEGIN RSA PRIVATE KEY{fence}\n{{}}{fence}END RSA PRIVATE KEY{fence}",
        ),
        "openssh": (
            base64.encodebytes(make.digest(300)).decode(),
            f"{fence}BEGIN OPENSSH PRIVATE KEY{fence}\n{{}}{fence}END OPENSSH PRIVATE KEY{fence}",
        ),
        "db-url": (password, "postgres://app:{}@db.internal:5432/app"),
        "basic-url": (
            make.of(_ALNUM, 12) + "9",
            "https://deploy:{}@git.internal/x.git",
        ),
        "db-password": (make.of(_ALNUM, 16) + "1x", "DB_PASSWORD={}"),
        "django": (make.of(_ALNUM + "!@#^*-_=+", 46) + "q8#R", 'SECRET_KEY = "{}"'),
        "k8s": (
            base64.b64encode(make.digest(15)).decode(),
            "kind: Secret\ndata:\n  password: {}",
        ),
        "azure": (
            base64.b64encode(make.digest(64)).decode(),
            "DefaultEndpointsProtocol=https;AccountName=x;AccountKey={};EndpointSuffix=c",
        ),
        "vault": ("hv" + "s." + make.of(_ALNUM, 90), "vault login {}"),
    }
    assert len(values) == 31
    return {name: (value, line.format(value)) for name, (value, line) in values.items()}
