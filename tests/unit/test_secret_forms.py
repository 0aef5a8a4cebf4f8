"""A secret is found however the tool that printed it, or its file, writes it."""

import base64
import gzip
import io
import json
import random
import zipfile
import zlib
from collections.abc import Iterator

import pytest

from gitcp.secrets import budget, decoding, encodings, library
from gitcp.secrets.scanner import UNREAD, Fingerprints, Scanner
from gitcp.secrets.text import Text
from gitcp.secrets.tokens import Token
from tests.support.sample_secrets import sample_secrets

TOKEN = sample_secrets()["github"][0]
PASSWORD = sample_secrets()["db-password"][0]
SCANNER = Scanner(Fingerprints(b"k" * 32))


def values(data):
    data = data if isinstance(data, bytes) else data.encode()
    return [hit.value.decode() for hit in SCANNER.scan([data])]


def told(text):
    """As an agent keeps what a tool printed."""
    content = json.dumps({"stdout": f"$ it\n{text}\ndone"})
    return json.dumps({"message": {"content": [{"content": content}]}}) + "\n"


def zipped(text):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("empty", "")
        archive.writestr("etc/settings", text)
    return file.getvalue()


TERMINAL = {
    "sgr0": "\x1b(B\x1b[m{}",
    "save-cursor": "\x1b7{}\x1b8",
    "reverse-index": "\x1bM{}",
    "keypad": "\x1b={}\x1b>",
    "c1": "\u009b31m{}\u009b0m",
    "c1-raw": b"\x9b31m%b\x9b0m",
    "title": "\x1b]0;a title\x07{}",
    "shift-in": "\x0f{}\x0e",
    "struck-over": "x\x08{}",
    "device": "\x1bP1$r0m\x1b\\{}",
}


@pytest.mark.parametrize("form", TERMINAL.values(), ids=TERMINAL)
def test_what_steers_a_terminal_hides_no_token(form):
    if isinstance(form, bytes):
        assert values(form % TOKEN.encode()) == [TOKEN]
        return
    assert values(form.format(TOKEN)) == [TOKEN]
    assert values(told(form.format(TOKEN))) == [TOKEN]


def encoded(text):
    return base64.b64encode(f"user=app\n{text}\nhost=db\n".encode()).decode()


@pytest.mark.parametrize(
    "form",
    [
        lambda text: told(encoded(text)),
        lambda text: told(f"n{encoded(text)}"),
        lambda text: told(f"a/b/{encoded(text)}"),
        lambda text: told(f"k: {encoded(told(text))}"),
        lambda text: told(base64.b64encode(gzip.compress(text.encode())).decode()),
        lambda text: told(text.encode().hex()),
    ],
    ids=["line", "n-before", "path-before", "in-json", "gzip", "hex"],
)
def test_what_a_tool_printed_encoded_is_read(form):
    assert TOKEN in values(form(f"it is {TOKEN}"))


FILES = {
    "gzip": lambda text: gzip.compress(text.encode()),
    "zlib": lambda text: zlib.compress(text.encode()),
    "zip": zipped,
    "zip-in-gzip": lambda text: gzip.compress(zipped(text)),
    "utf-32-le": lambda text: text.encode("utf-32-le"),
    "utf-32-be": lambda text: text.encode("utf-32-be"),
    "utf-32-mark": lambda text: text.encode("utf-32"),
    "environ": lambda text: f"HOME=/root\0{text.strip()}\0A=b\0".encode(),
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
}


@pytest.mark.parametrize("form", FILES.values(), ids=FILES)
def test_a_file_of_any_form_is_read(form):
    text = f"first\nDB_PASSWORD={PASSWORD}\nlast\n" * 3
    assert PASSWORD in values(
        form(f"DB_PASSWORD={PASSWORD}" if b"\0" in form("") else text)
    )


@pytest.mark.parametrize(
    "form",
    [
        "- name: DB_PASSWORD\n  value: {}\n",
        "- name: DB_PASSWORD\r\n  value: {}\r\n",
        '<add key="DbPassword" value="{}"/>',
        "define('DB_PASSWORD', '{}');",
        "ENV DB_PASSWORD {}",
        "set -gx DB_PASSWORD {}",
        "&quot;password&quot;: &quot;{}&quot;",
        "DB_PASS={}",
        "machine db.internal login app password {}",
        "db.internal:5432:app:app:{}",
        "curl -u app:{} https://db.internal",
        "sshpass -p {} ssh db",
        "mysql -u app -p{} app",
        "ALTER USER app IDENTIFIED BY '{}';",
    ],
)
def test_a_password_is_found_where_its_name_or_its_command_says_so(form):
    assert PASSWORD in values(form.format(PASSWORD))
    assert PASSWORD in values(told(form.format(PASSWORD)))


@pytest.mark.parametrize(
    "form",
    ["{}\\\n{}", "{}\\\n    {}", '"{}" +\n  "{}"', "'{}'\n'{}'", "key {}\n{}\n"],
    ids=["shell", "indented", "plus", "python", "hard-wrap"],
)
def test_a_token_that_a_line_end_splits_is_found(form):
    assert TOKEN in values(form.format(TOKEN[:20], TOKEN[20:]))


def lines_of(form):
    return lambda key: "\n".join(form.format(line) for line in key.split("\n"))


WRITTEN = {
    "plain": str,
    "crlf": lines_of("{}\r"),
    "indented": lines_of("    {}"),
    "diff": lines_of("+{}"),
    "mail": lines_of("> {}"),
    "program": lines_of('  "{}\\n" +'),
    "printed": told,
    "printed-twice": lambda key: told(told(key)),
    "base64": encoded,
    "base64-printed": lambda key: told(base64.encodebytes(key.encode()).decode()),
}


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("with_library", [False, True], ids=["built-in", "library"])
def test_a_key_has_one_name_however_it_is_written(written, with_library):
    extra = library.library() if with_library else None
    if with_library and extra is None:
        pytest.skip("without gitcp[secrets]")
    names = Fingerprints(b"k" * 32)
    # Each has a plus sign at another place in its lines.
    for seed in range(2):
        value, line = sample_secrets(seed)["pem"]
        hits = Scanner(names, extra=extra).scan([written(line).encode()])
        assert {hit.fingerprint for hit in hits} == {names.of(value.encode())}


def test_each_writing_of_a_key_is_reported():
    key = sample_secrets()["pem"][1]
    both = f"{key}\n\n{lines_of('    {}')(key)}\n".encode()
    one, other = SCANNER.scan([both])
    assert one.fingerprint == other.fingerprint
    assert one.value != other.value


NONE = [
    '"NextToken": "{}"',
    '"nextPageToken": "{}"',
    "<ContinuationToken>{}</ContinuationToken>",
    "--starting-token {}",
    '"ClientToken": "9b2f3c1e-7a51-4c7e-9b1d-0a4b8f6f2c11"',
    "--client-request-token 9b2f3c1e-7a51-4c7e-9b1d-0a4b8f6f2c11",
    "pageToken={}",
    '"x-token-y": "var(--vscode-token-1a2b3c)"',
]


@pytest.mark.parametrize("form", NONE)
def test_what_pages_and_repeats_requests_is_no_secret(form):
    opaque = base64.b64encode(bytes(range(7, 250, 5))).decode()
    assert values(form.format(opaque)) == []
    assert values(told(form.format(opaque))) == []


@pytest.mark.parametrize(
    "piece",
    [
        *("sk-", "key-", "SG.", "/SK", "sk-button.sk-icon/", "eyJabcdefghijklmn."),
        *("eyJ-", "-----BEGIN PRIVATE KEY-----", 'password="', "curl -u ", ":AA"),
        "?sig=aaaaaaaaaa",
    ],
)
def test_time_is_linear_in_what_looks_like_secrets(piece):
    # Each took minutes while every start in a run was searched to the run's end.
    SCANNER.scan([piece.encode() * (40_000 // len(piece))])


def test_what_takes_too_long_is_not_let_through(monkeypatch):
    monkeypatch.setattr(budget, "FREE", 1_000)
    monkeypatch.setattr(budget, "TIMES", 2)
    nested = told(told(told(told("a\\b\nc" * 100)))).encode()
    (hit,) = SCANNER.scan([nested])
    assert (hit.rule, hit.value) == (UNREAD, b"")
    (again,) = SCANNER.scan([nested])
    assert again.fingerprint == hit.fingerprint
    assert SCANNER.scan([nested + b" "])[0].fingerprint != hit.fingerprint


def test_what_holds_too_many_secrets_is_not_looked_through(monkeypatch):
    monkeypatch.setattr(budget, "FREE", 20_000)
    monkeypatch.setattr(budget, "TIMES", 2)
    rng = random.Random(1)
    text = "".join(f'password="{rng.randbytes(6).hex()}"\n' for _ in range(200))
    hits = SCANNER.scan([text.encode()])
    # What was found before the limit is reported beside it.
    assert sum(hit.rule == UNREAD for hit in hits) == 1
    assert 1 < len(hits) < 200


def test_a_block_of_base64_is_joined_once(monkeypatch):
    read: list[int] = []

    def spy(at: int, run: bytes) -> Iterator[tuple[int, bytes]]:
        read.append(len(run))
        yield from ()

    monkeypatch.setattr(encodings, "_read", spy)
    text = (b"0123456789abcdef" * 4 + b"\n") * 500
    assert list(encodings.encoded(Text(text))) == []
    # Each line was joined with all lines behind it.
    assert sum(read) < 2 * len(text)


def test_a_layer_of_escapes_holds_only_what_the_one_before_did_not():
    inner = json.dumps({"deep": "a\nb"})
    first, second = decoding.unescaped(json.dumps(f"plain\n{inner}\nplain").encode())
    assert first == b'"plain\r{"deep": "a\\nb"}\rplain"'
    assert second == b'\r{"deep": "a\rb"}\r'


def test_lines_that_go_on_are_found_as_their_pattern_would():
    rng = random.Random(1)
    for _ in range(500):
        text = bytes(rng.choices(b'aaaaaaa\'""+.&\\\n\n\r  \t=', k=60))
        found = [match.span() for match in decoding._continued(text)]
        assert found == [match.span() for match in decoding._CONTINUED.finditer(text)]


def test_a_value_within_another_is_known_by_its_middle():
    work = budget.Budget()
    work.note(Token("ai-key", b"sk-abcdefghij", 0))
    assert work.holds_found(Token("ai-key", b"msk-abcdefghijx", 0))
    assert not work.holds_found(Token("ai-key", b"sk-abcdefghi", 0))


def test_a_bomb_is_looked_into_within_limits():
    bomb = gzip.compress(b"\0" * (64 << 20))
    assert SCANNER.scan([bomb]) == []


def test_what_is_far_from_escapes_is_in_no_further_view():
    far = b"var a=1;" * 4_000
    text = b'\\"' + far + b'\\"x' + far + b"y\n" + far + b"\n\\n"
    (view,) = decoding.unescaped(text)
    assert len(view) < len(text) / 2
    assert view.count(b"\n") == text.count(b"\n")
    assert view.startswith(b'"' + far[:4_000])
    assert b'"x' + far[:4_000] in view


def test_base64_between_escapes_is_whole_in_the_next_view():
    run = base64.b64encode(random.Random(1).randbytes(30_000))
    text = b"\\n" + run + b"\\n"
    (view,) = decoding.unescaped(text)
    assert run in view
