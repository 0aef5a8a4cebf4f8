"""What the scanner takes for a secret, and what it does not."""

import base64
import json
import os
import re
import sysconfig
import uuid
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gitcp.purge.redact import Eraser
from gitcp.secrets import decoding, dotenv, library
from gitcp.secrets.scanner import Fingerprints, Scanner
from tests.support.sample_secrets import sample_secrets

FINGERPRINTS = Fingerprints(b"k" * 32)
CANARY = "k3J9dLq0" + "Xz7Yv3Wn5Bt1"


def found(text, path=b"", known=()):
    scan = Scanner(FINGERPRINTS, dict.fromkeys(known, ".env"))
    return scan.scan([text if isinstance(text, bytes) else text.encode()], path)


def in_transcript(text):
    """A tool's output as an agent keeps it: JSON, in a string, in JSON."""
    inner = json.dumps({"stdout": f"ok\n{text}\nbye", "code": 0})
    return json.dumps({"message": {"content": [{"content": inner}]}}) + "\n"


@pytest.mark.parametrize("name", sample_secrets())
def test_a_secret_is_the_same_in_a_file_and_in_a_transcript(name):
    _, line = sample_secrets()[name]
    raw = found(line)
    assert raw
    assert {one.fingerprint for one in raw} == {
        one.fingerprint for one in found(in_transcript(line))
    }


def test_the_built_in_layer_alone_sees_most_of_31_secrets():
    for seed in range(3):
        lines = [line for _, line in sample_secrets(seed).values()]
        assert sum(bool(found(line)) for line in lines) >= 0.7 * 31
        assert sum(bool(found(in_transcript(line))) for line in lines) >= 0.7 * 31


def test_with_the_library_nine_in_ten_are_seen():
    extra = library.library()
    if extra is None:
        pytest.skip("the extra gitcp[secrets] is not installed")
    scan = Scanner(FINGERPRINTS, extra=extra)
    lines = [line for _, line in sample_secrets().values()]
    assert sum(bool(scan.scan([line.encode()])) for line in lines) >= 0.9 * 31
    told = [in_transcript(line).encode() for line in lines]
    assert sum(bool(scan.scan([line])) for line in told) >= 0.9 * 31
    # It adds what the built-in rules have no name for.
    for piece in _clean_set():
        assert scan.scan([piece]) == []


@pytest.mark.slow
def test_rules_are_kept_where_there_is_no_home(monkeypatch, tmp_path):
    pytest.importorskip("kingfisher_sdk")
    for name in ("HOME", "XDG_CACHE_HOME", "KF_RULE_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    here = tmp_path / "secrets" / "rules"

    def load():
        return list(library.Library(here)(b"text"))

    load()
    assert list(here.iterdir()) == []
    assert here.stat().st_mode & 0o777 == 0o700
    load()
    (kept,) = here.iterdir()
    written = kept.stat().st_mtime_ns
    load()
    assert kept.stat().st_mtime_ns == written


def _clean_set():
    standard = Path(sysconfig.get_path("stdlib"))
    for name in ("email", "http", "urllib", "json", "asyncio", "logging"):
        for path in sorted((standard / name).glob("*.py")):
            yield path.read_bytes()
    digests = [os.urandom(size).hex() for size in (16, 20, 32, 64) for _ in range(50)]
    yield "\n".join(digests).encode()
    yield "\n".join(str(uuid.uuid4()) for _ in range(200)).encode()
    yield json.dumps(
        {
            "packages": {
                f"node_modules/js-tokens-{number}": {
                    "version": f"4.{number}.0",
                    "resolved": f"https://registry.npmjs.org/t/-/t-4.{number}.0.tgz",
                    "integrity": "sha512-" + base64.b64encode(os.urandom(64)).decode(),
                }
                for number in range(100)
            }
        },
        indent=2,
    ).encode()


def test_nothing_is_seen_where_nothing_is():
    for piece in _clean_set():
        assert found(piece) == []


@pytest.mark.parametrize(
    "line",
    [
        'password = os.environ["DB_PASSWORD"]',
        "API_KEY=$API_KEY",
        "DB_PASSWORD=changeme",
        'token: str = "your-token-here-123"',
        "postgres://user:password@localhost:5432/app",
        "https://user:${TOKEN}@github.com/x.git",
        '"max_tokens": 4096, "input_tokens": 123456789012',
        "secret_name: projects/p1/secrets/db-v2",
        "self.token = self.get_token_v2()",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "password: [purged:0123456789ab]",
        "token_url = 'https://login.example.com/oauth2/v2.0/token'",
        "passwordless_login_v2 = True",
        "private_key = Ed25519PrivateKey.from_private_bytes",
        "token=b64decode",
        "self.secret_key: PKCS7PrivateKeyTypes",
    ],
)
def test_what_only_speaks_of_a_secret_is_none(line):
    assert found(line) == []
    assert found(in_transcript(line)) == []


@pytest.mark.parametrize(
    "told",
    [
        lambda text: text,
        lambda text: f"x{text}y",
        lambda text: json.dumps(json.dumps(json.dumps({"a": f"q {text}"}))),
        lambda text: base64.b64encode(f"user:{text}".encode()).decode(),
        lambda text: base64.b64encode(f"a user:{text} b".encode()).decode(),
        lambda text: f"\x00\x01binary{text}\x00",
    ],
    ids=["alone", "inside", "json", "base64", "base64-shifted", "binary"],
)
def test_a_value_known_for_sure_is_found_however_it_is_written(told):
    hits = found(told(CANARY), known=[CANARY.encode()])
    assert [one.value for one in hits] == [CANARY.encode()]
    assert found(told(CANARY[::-1]), known=[CANARY.encode()]) == []


def wrapped(text):
    """As the program `base64` writes it: 76 letters a line."""
    words = f"A=1\nGREETING=hello there, this is a line\nTOKEN={text}\nLAST=1\n" * 2
    return base64.encodebytes(words.encode()).decode()


HIDDEN = {
    "coloured": lambda text: f"token \x1b[31m{text}\x1b[0m",
    "coloured-json": lambda text: json.dumps({"a": f"token \x1b[1;31m{text}\x1b[0m"}),
    "coloured-name": lambda text: f"\x1b[36mtoken\x1b[0m=\x1b[33m{text}\x1b[0m",
    "highlighted": lambda text: f"it: \x1b[01;31m{text[:4]}\x1b[m\x1b[K{text[4:]}",
    "highlighted-json": lambda text: json.dumps(f"\x1b[31m{text[:4]}\x1b[m{text[4:]}"),
    "query": lambda text: f"https://example.org/?u=token%3D{text}%26x",
    "base64-wrapped": wrapped,
    "base64-wrapped-json": lambda text: json.dumps({"a": json.dumps(wrapped(text))}),
    "base64-of-json": lambda text: base64.b64encode(
        json.dumps({"x": json.dumps(f"a\n{text}")}).encode()
    ).decode(),
    "base64-twice": lambda text: base64.b64encode(
        base64.b64encode(f"user:{text}".encode())
    ).decode(),
}


@pytest.mark.parametrize("told", HIDDEN.values(), ids=HIDDEN)
def test_a_token_is_found_and_erased_however_tools_write_it(told):
    value, _ = sample_secrets()["github"]
    data = told(value).encode()
    hits = Scanner(FINGERPRINTS).scan([data])
    assert [one.value for one in hits] == [value.encode()]
    left = Eraser([(value.encode(), "0" * 12)]).erased(data)
    assert b"[purged:" in left
    assert Scanner(FINGERPRINTS).scan([left]) == []


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_read_without_a_mark_and_far_behind_it(encoding):
    value, line = sample_secrets()["db-password"]
    data = f"one\n{line}\n".encode(encoding)
    assert [one.value for one in Scanner(FINGERPRINTS).scan([data])] == [value.encode()]
    large = ("\ufeff" + "a line of text\n" * 200_000 + line).encode(encoding)
    assert len(large) > 5 << 20
    (hit,) = Scanner(FINGERPRINTS).scan([large])
    assert hit.value == value.encode()


def test_a_known_value_is_found_in_utf16_and_across_windows():
    known = [CANARY.encode()]
    assert found(f"\ufeff{CANARY}".encode("utf-16-le"), known=known)
    scan = Scanner(FINGERPRINTS, dict.fromkeys(known, ".env"))
    size = 4 << 20
    for shift in (0, 1 << 16, (1 << 16) - 10):
        data = b"\n" * (size - shift - 10) + CANARY.encode() + b"\n" * (1 << 20)
        chunks = [data[at : at + 100_000] for at in range(0, len(data), 100_000)]
        (hit,) = scan.scan(chunks)
        assert hit.line == size - shift - 10 + 1


def test_common_values_of_an_env_file_are_not_looked_for():
    data = (
        b"NODE_ENV=production\nPORT=3000\nAWS_REGION=eu-central-1\n"
        b"DATABASE_HOST=db-1.internal.corp:5432\nDB_PASSWORD=postgres\n"
        b"APP_URL=http://localhost:3000/app\nRELEASE=2024-11-02T10:00\n"
        b"export API_TOKEN='" + CANARY.encode() + b"' # comment\n"
        b"DSN=postgres://app:" + CANARY[::-1].encode() + b"@db/app\n"
    )
    assert {value for value, _ in dotenv.values(data)} == {
        CANARY.encode(),
        CANARY[::-1].encode(),
    }


def test_example_env_files_hold_no_values():
    assert dotenv.is_dotenv(b"apps/web/.env.local")
    assert dotenv.is_dotenv(b"prod.env")
    for name in (b".env.example", b".env.sample", b"environment.py", b".environ"):
        assert not dotenv.is_dotenv(name)


def test_lines_are_those_of_the_file():
    text = "one\n" + in_transcript("x") + in_transcript(f"DB_PASSWORD={CANARY}")
    (hit,) = found(text)
    assert hit.line == 3


def test_fingerprints_differ_from_repository_to_repository():
    assert Fingerprints(b"a" * 32).of(b"x") != Fingerprints(b"b" * 32).of(b"x")


def test_a_fingerprint_is_what_the_format_says():
    page = (Path(__file__).parents[2] / "docs/format/vectors.md").read_text()
    made = Fingerprints(bytes(range(32))).of(b"correct horse")
    assert f"of the value `correct horse`: `{made}`" in page
    key = Fingerprints(bytes(range(32))).of(b"+ab+c/1\n+D==\n")
    assert f"counts as `abc/1D`: `{key}`" in page
    assert key == Fingerprints(bytes(range(32))).of(b"abc/1D")


TRICKY = 'p"w\\1/2 $é💥\t-' + "x7"


@pytest.mark.parametrize(
    "told",
    [
        lambda text: text,
        json.dumps,
        lambda text: json.dumps(json.dumps({"a": [text]})),
        lambda text: json.dumps(json.dumps(text, ensure_ascii=False)),
        lambda text: json.dumps(text).replace("/", "\\/").replace("$", "\\u0024"),
        lambda text: quote(text, safe=""),
        lambda text: base64.b64encode(text.encode()).decode(),
        lambda text: base64.urlsafe_b64encode(b"ab" + text.encode() + b"c").decode(),
        lambda text: text.encode("utf-16-le").decode("latin-1"),
    ],
    ids=["plain", "json", "twice", "mixed", "php", "url", "base64", "shifted", "wide"],
)
def test_a_value_is_erased_however_it_is_written(told):
    eraser = Eraser([(TRICKY.encode(), "0" * 12)])
    whole = f"before {told(TRICKY)} after"
    wide = told(TRICKY).startswith("p\0")
    data = whole.encode("latin-1" if wide else "utf-8")
    assert eraser.holds(data)
    marker = f"[purged:{'0' * 12}]"
    left = eraser.erased(data)
    if wide:
        assert left == b"before " + marker.encode("utf-16-le") + b" after"
    else:
        assert re.fullmatch(
            rf'before [\\"\[{{a: ]*{re.escape(marker)}.* after', left.decode()
        )
    assert not eraser.holds(left)


TEXT = st.characters(categories=["L", "N", "P", "S"], include_characters=' \\"\n')


@given(
    st.text(TEXT, min_size=4, max_size=20).filter(
        lambda text: text == text.strip("\n")
    ),
    st.text(TEXT, max_size=8),
    st.integers(0, 4),
)
def test_no_depth_of_json_hides_a_value(value, beside, depth):
    assume(value not in beside and value not in "[purged:ffffffffffff]")
    told = f"{beside}{value}"
    for _ in range(depth):
        told = json.dumps({"k": told})
    eraser = Eraser([(value.encode(), "f" * 12)])
    data = told.encode()
    left = eraser.records(data)
    assert b"[purged:ffffffffffff]" in left
    assert not eraser.holds(left)
    for _ in range(depth):
        left = json.loads(left)["k"].encode()


def test_what_is_no_value_stays_byte_for_byte():
    eraser = Eraser([(CANARY.encode(), "0" * 12)])
    for path in sorted(Path(sysconfig.get_path("stdlib"), "json").glob("*.py")):
        data = path.read_bytes()
        assert eraser.erased(data) == data


def test_long_runs_of_base64_take_no_longer_than_they_are_long():
    eraser = Eraser([(CANARY.encode(), "0" * 12)])
    run = base64.b64encode(os.urandom(3_000_000))
    assert eraser.erased(run) == run


def test_escapes_are_undone_one_layer_at_a_time():
    text = json.dumps(json.dumps('a "b" \\ é\n'))
    layers = list(decoding.unescaped(text.encode()))
    assert layers[-1] == '""a "b" \\ é\r""'.encode()
