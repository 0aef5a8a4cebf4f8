"""The forms a credential takes on its way into a file. Each gives bytes."""

import base64
import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import quote_plus

from bench.secret_kinds import base as b

ORDINARY = """\
# Settings of the service; see docs/operations.md
LOG_LEVEL=info
import logging
def total(rows): return sum(row.amount for row in rows)
2026-11-03 10:12:45,120 INFO worker started, 4 processes
version: "3.9"
    restart: unless-stopped
timeout = 30
The release notes are in CHANGELOG.md.
for name in sorted(names):
    print(f"{name}: {counts[name]}")
region = eu-central-1
max_connections = 200
const port = 8080;
  return response.json()
- run: make test
{"status": "ok", "items": 12}
TZ=Europe/Berlin
SELECT id, created_at FROM orders WHERE state = 'open';
export PATH="$HOME/.local/bin:$PATH"
  image: registry.corp.net/web:2.14.0
GET /health 200 3ms
feature_flags = ["search", "export"]
if not rows: raise LookupError("nothing to report")
cache:
  paths: [node_modules/]
retries: 5
class Report(NamedTuple):
    title: str
EDITOR=vim""".splitlines()
ESCAPES = (
    "\x1b(B\x1b[m",  # tput sgr0
    "\x1b7",  # save the cursor
    "\x1bM",  # reverse index
    "\x1b8\x1b[K",
    "\x9b0m",  # CSI as one character of 8 bits
    "\x9b1;32m",
    "\x1b[?25h\x1b[0m",
)
SENTENCES = (
    "I rotated it yesterday: {v}, please update the staging box.",
    "The old one ({v}) still works.",
    "Use `{v}` until the new one is there.",
    "It was **{v}** when I last looked.",
    "Can you check why {v} is refused?",
)


def _text(line, rng):
    before = rng.randint(3, 17)
    rows = rng.sample(ORDINARY, 20)
    return "\n".join([*rows[:before], line, *rows[before:]]) + "\n"


def _record(content, rng):
    """Give a tool result as Claude Code writes it into a transcript."""
    return {
        "parentUuid": b.uuid(rng),
        "isSidechain": False,
        "type": "user",
        "message": {
            "role": "user",
            "content": [
                {
                    "tool_use_id": "toolu_01" + b.chars(rng, b.B58, 22),
                    "type": "tool_result",
                    "content": content,
                }
            ],
        },
        "uuid": b.uuid(rng),
        "timestamp": f"2026-11-03T10:{rng.randint(10, 59)}:07.120Z",
    }


def _jsonl(record, ascii_only=True):
    text = json.dumps(record, separators=(",", ":"), ensure_ascii=ascii_only)
    return (text + "\n").encode()


def plain(value, line, rng):
    return _text(line, rng).encode()


def base64_tool_result(value, line, rng):
    encoded = base64.b64encode(_text(line, rng).encode()).decode()
    wrapped = "\n".join(encoded[i : i + 76] for i in range(0, len(encoded), 76))
    return _jsonl(_record(wrapped, rng))


def after_terminal_escapes(value, line, rng):
    """Put escapes right before the line, or right around the value in it."""
    first, second = rng.sample(ESCAPES, 2)
    if rng.random() < 0.5 or value not in line:
        shown = first + second + line
    else:
        shown = line.replace(value, first + value + "\x1b(B\x1b[m")
    return _jsonl(_record(_text(shown, rng), rng), rng.random() < 0.5)


def json_nested(value, line, rng):
    inner = json.dumps({"stdout": _text(line, rng), "exitCode": 0})
    return _jsonl(_record(json.dumps({"type": "text", "text": inner}), rng))


def crlf(value, line, rng):
    return _text(line, rng).replace("\n", "\r\n").encode()


def utf16(value, line, rng):
    return _text(line, rng).encode("utf-16")


def utf32le(value, line, rng):
    return _text(line, rng).encode("utf-32-le")


def gzipped(value, line, rng):
    return gzip.compress(_text(line, rng).encode(), mtime=0)


def zipped(value, line, rng):
    file = io.BytesIO()
    info = zipfile.ZipInfo("config/settings.txt", (2026, 11, 3, 10, 12, 0))
    info.compress_type = zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(info, _text(line, rng))
    return file.getvalue()


def zlibbed(value, line, rng):
    return zlib.compress(_text(line, rng).encode())


def split_by_line_continuation(value, line, rng):
    middle = len(value) // 2
    cut = value[:middle] + "\\\n" + value[middle:]
    return _text(line.replace(value, cut), rng).encode()


def binary_neighbour(value, line, rng):
    before = rng.randbytes(40) + b"\0" * rng.randint(1, 20) + b"\n"
    after = b"\n" + b"\0" * rng.randint(1, 20) + rng.randbytes(40)
    return rng.randbytes(200) + before + line.encode() + after + rng.randbytes(200)


def url_encoded(value, line, rng):
    """Give a form as it is posted: the line is what was pasted into it."""
    return f"id={rng.randint(1, 999)}&text={quote_plus(line)}&submit=Save".encode()


def markdown_prose(value, line, rng):
    sentence = rng.choice(SENTENCES).replace("{v}", value)
    return (
        f"## Notes\n\nWe talked about the move. {sentence}\n\n- next: tests\n".encode()
    )


def yaml(value, line, rng):
    block = "\n".join("      " + row for row in line.splitlines())
    text = f"jobs:\n  build:\n    runs-on: ubuntu-24.04\n    script: |\n{block}\n"
    return (text + "    timeout-minutes: 10\n").encode()


def diff_line(value, line, rng):
    rows = line.splitlines()
    sign = rng.choice("+-")
    old, new = (len(rows), 0) if sign == "-" else (0, len(rows))
    body = "\n".join(sign + row for row in rows)
    return (
        "diff --git a/.env b/.env\nindex 3f1a2bc..9d8e7f6 100644\n--- a/.env\n+++ b/.env\n"
        f"@@ -7,{old + 1} +7,{new + 1} @@\n LOG_LEVEL=info\n{body}\n"
    ).encode()


class Form(NamedTuple):
    """One form, and the kinds it can be fairly asked of."""

    name: str
    wrap: Callable[..., bytes]
    applies: Callable[..., bool]  # (kind, value)


def _always(kind, value):
    return True


def _one_line(kind, value):
    return "\n" not in value


def _bare(kind, value):
    return kind.bare and "\n" not in value


FORMS = (
    Form("plain", plain, _always),
    Form("base64_tool_result", base64_tool_result, _always),
    Form("after_terminal_escapes", after_terminal_escapes, _always),
    Form("json_nested", json_nested, _always),
    Form("crlf", crlf, _always),
    Form("utf16", utf16, _always),
    Form("utf32le", utf32le, _always),
    Form("gzip", gzipped, _always),
    Form("zip", zipped, _always),
    Form("zlib", zlibbed, _always),
    Form("split_by_line_continuation", split_by_line_continuation, _one_line),
    Form("binary_neighbour", binary_neighbour, _always),
    Form("url_encoded", url_encoded, _always),
    Form("markdown_prose", markdown_prose, _bare),
    Form("yaml", yaml, _always),
    Form("diff_line", diff_line, _always),
)
