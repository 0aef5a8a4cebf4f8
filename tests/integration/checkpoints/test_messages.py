"""Messages in, messages out: byte for byte, or one sentence and nothing saved."""

from __future__ import annotations

import datetime
import json
import os
import threading
from datetime import UTC
from decimal import Decimal
from pathlib import Path

import pytest

import gitcp
from gitcp.cli import saving
from gitcp.format import layout
from gitcp.store import logs
from tests.support.gitrepo import make_repo
from tests.support.inprocess import Done, fails, invoke, ok

ANTHROPIC = (
    (
        '{"role":"user","content":[{"type":"text","text":"Fix é ☃"},'
        '{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO"}}]}'
    ),
    (
        '{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"Bash",'
        '"input":{"z":1,"command":"ls -l","a":null}}],"stop_reason":"tool_use"}'
    ),
    (
        '{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1",'
        '"content":[{"type":"text","text":"a  b"}],"is_error":false}]}'
    ),
)
OPENAI = (
    '{"content":"be brief","role":"system"}',
    (
        '{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function",'
        '"function":{"name":"f","arguments":"{\\"x\\": 1.0}"}}],"refusal":null}'
    ),
    '{"role":"tool","tool_call_id":"call_1","content":"42"}',
    '{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}',
)
ODD = (
    '{"n":[1.00,1e400,-0.0,1E+2,123456789012345678901234567890,0.1e-400]}',
    '{"z":1,"a":2,"z":3}',
    r'{"s":"\u00e9\/\ud800 \ud83d\ude00 \"\\ \b\t\u0000"}',
    r'{"lone":"\udc00"}',
    '{"unknown":{"deep":[[[{}]]]},"":"","é":"\u2028\u007f\u202e"}',
    "null",
    '"text"',
    '{"role":"user","content":"  spaces , : { stay }  "}',
)
SETS = {"anthropic": ANTHROPIC, "openai": OPENAI, "odd": ODD}
HUGE = '{"n":' + "7" * 5000 + "}"


def jsonl(lines) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def give(tmp_path: Path, text: bytes | str) -> str:
    path = tmp_path / "given.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def stored(repo: Path, selector: str = "last") -> bytes:
    done = invoke(repo, "messages", selector, "--format", "jsonl")
    assert done.returncode == 0, done.stderr
    return done.stdout


def loosen(line: str) -> str:
    """The same value with whitespace between its tokens."""
    found, inside, escaped = "", False, False
    for char in line:
        if char == '"' and not escaped:
            inside = not inside
        escaped = inside and char == "\\" and not escaped
        found += f" {char}\n\t" if not inside and char in "{}[]:," else char
    return found


# --- shapes -----------------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("shape", ["array", "pretty", "lines", "crlf", "object", "bom"])
def test_every_shape_comes_back_as_it_was_written(repo, tmp_path, name, shape):
    lines = (*SETS[name], HUGE)
    text = {
        "array": f"[{','.join(lines)}]",
        "pretty": "\n [ " + " ,\n ".join(map(loosen, lines)) + "\n]\n\n",
        "lines": "\n".join(lines),
        "crlf": "".join(f"{line}\r\n\r\n" for line in lines),
        "object": '{"messages" : [' + ",".join(lines) + "]}",
        "bom": "\ufeff[" + ",".join(lines) + "]",
    }[shape]
    saved = ok(repo, "save", "--messages", give(tmp_path, text))["checkpoint"]
    assert stored(repo) == jsonl(lines)
    assert saved["conversation"]["messages"] == len(lines)
    assert saved["conversation"]["bytes"] == len(jsonl(lines))
    # As an array it is valid JSON of the same values.
    for options in (["--format", "json"], ["--json"]):
        done = invoke(repo, "messages", *options)
        assert done.returncode == 0
        assert [line.encode() for line in lines] == _elements(done)
    # The same again is not a change, in whatever shape.
    again = ok(repo, "save", "--messages", give(tmp_path, jsonl(lines)))
    assert again["created"] is False
    for form in ("markdown", None):
        shown = invoke(repo, "messages", *(["--format", form] if form else []))
        assert shown.returncode == 0
    for command in ("show", "context", "log", "sessions"):
        assert invoke(repo, command).returncode == 0


def _elements(done: Done) -> list[bytes]:
    body = done.stdout.strip()
    assert body[:1] + body[-1:] == b"[]"
    from gitcp.format import jsontext

    return [jsontext.compact(element) for element in jsontext.elements(body)]


def test_an_empty_conversation(repo, tmp_path):
    saved = ok(repo, "save", "--messages", give(tmp_path, "[]"))["checkpoint"]
    assert stored(repo) == b""
    assert (saved["conversation"] or {"messages": 0})["messages"] == 0
    for text in ("", " \n", "\ufeff"):
        said = fails(repo, 22, "save", "--messages", give(tmp_path, text))
        assert "is empty" in said


def test_metadata_comes_back(repo, tmp_path):
    metadata = (
        '{"savedAt":"2026-01-01T00:00:00Z","phase":2.0,"objective":"é","x":[1e2]}'
    )
    text = '{"messages":[{"role":"user","content":"hi"}],"metadata": ' + metadata + "}"
    done = invoke(repo, "save", "--messages", give(tmp_path, text), "--json")
    assert f'"metadata":{metadata}'.encode() in done.stdout
    ok(repo, "save", "--allow-empty")
    assert ok(repo, "show")["checkpoint"]["metadata"] == json.loads(metadata)


@pytest.mark.parametrize(
    ("beside", "expected"),
    [
        ('"savedAt":1.50,"phase":"p"', '{"savedAt":1.50,"phase":"p"}'),
        ('"v":1,"metadata":{"phase":"p"}', '{"v":1,"phase":"p"}'),
        ('"v":1,"metadata":[2]', '{"v":1,"metadata":[2]}'),
        ('"metadata":null', "null"),
    ],
)
def test_fields_beside_the_messages_are_kept(repo, tmp_path, beside, expected):
    text = '{"messages":[],' + beside + "}"
    done = invoke(repo, "save", "--messages", give(tmp_path, text), "--json")
    assert done.returncode == 0
    assert f'"metadata":{expected}'.encode() in done.stdout


def test_python_gets_the_values(repo):
    messages = [json.loads(line) for line in (*ANTHROPIC, *OPENAI)]
    messages += [{"s": "\ud800"}, {"n": 10**30, "f": 0.1}, None, "text"]
    session = gitcp.open(repo).session("py")
    saved = session.save(messages=messages)
    assert saved.messages() == messages
    more = session.save(append=[{"last": True}])
    assert more.messages() == [*messages, {"last": True}]


@pytest.mark.parametrize(
    "value",
    [
        *(float("inf"), float("nan"), object(), {1, object()}),
        # What would come back as text, or as a list.
        *(b"bytes", {1}, Decimal("1.10"), datetime.datetime(2026, 1, 1, tzinfo=UTC)),
        *({1: "a", "1": "b"}, ({None: 1},)),
    ],
    ids=[
        *("inf", "nan", "object", "objects", "bytes", "set", "decimal", "date"),
        *("one-key-twice", "key"),
    ],
)
def test_python_refuses_what_is_not_json(repo, value):
    session = gitcp.open(repo).session("py")
    with pytest.raises(gitcp.UsageError):
        session.save(messages=[{"x": [value, None]}])
    with pytest.raises(gitcp.UsageError):
        session.save(position=[value])
    assert gitcp.open(repo).sessions() == []


def test_a_position_of_no_unicode_is_refused_in_words(repo):
    session = gitcp.open(repo).session("py")
    name = os.fsdecode(b"\xff.csv")
    with pytest.raises(gitcp.UsageError, match="not valid Unicode"):
        session.save(position={"file": name})
    with pytest.raises(gitcp.UsageError, match="not valid Unicode"):
        session.save(metadata={"file": name})
    assert gitcp.open(repo).sessions() == []


# --- appending --------------------------------------------------------------------


def test_append_adds(repo, tmp_path):
    ok(repo, "save", "--messages", give(tmp_path, jsonl(ANTHROPIC)))
    ok(repo, "save", "--append", "-", input=jsonl(ODD))
    done = ok(repo, "save", "--append", "-", input=f"[{','.join(OPENAI)}]".encode())
    assert stored(repo) == jsonl((*ANTHROPIC, *ODD, *OPENAI))
    assert done["checkpoint"]["conversation"]["segments"] == 3
    assert stored(repo, "1") == jsonl(ANTHROPIC)
    assert ok(repo, "save", "--append", "-", input=b"")["created"] is False


@pytest.mark.parametrize("count", [120, pytest.param(1_000, marks=pytest.mark.slow)])
def test_many_appends(repo, count):
    session = gitcp.open(repo).session("long")
    expected = b""
    saved = session.save(allow_empty=True)
    for number in range(count):
        message = {"n": number, "text": "x" * (number % 50)}
        expected += json.dumps(message, separators=(",", ":")).encode() + b"\n"
        saved = session.save(append=[message])
    assert saved.seq == count + 1
    assert saved.conversation() == expected
    said = saved.manifest.conversation
    assert said is not None
    assert (said.messages, said.segments, said.bytes) == (count, count, len(expected))
    name = layout.LogName("conversation")
    pieces = logs.segments(saved.log_tree, name, saved.objects.tree)
    assert len(pieces) == count
    packs = list((repo / ".git" / "objects" / "pack").glob("*.pack"))
    assert len(packs) <= 20
    middle = gitcp.open(repo).checkpoint("long:101")
    assert middle.conversation() == b"".join(expected.splitlines(keepends=True)[:100])


# --- bad input --------------------------------------------------------------------

BAD = [
    "{", "[", "[1,]", "[1 2]", '{"a":1', '{"messages":[1,}', "nonsense", "[NaN]",
    '{"a":01}', '["\\x"]', '["\t"]', '{"a":Infinity}\n', '{"ok":1}\n{"torn":',
    "[" * 100_000, "[1]x", '["a"', "'a'", '{"messages":[NaN]}',
]  # fmt: skip


@pytest.mark.parametrize("text", [*BAD, b'["\xff"]', b'{"a":"\xed\xa0\x80"}\n', b"\0"])
@pytest.mark.parametrize("option", ["--messages", "--append"])
def test_unreadable_messages_are_one_sentence(repo, tmp_path, option, text):
    ok(repo, "save", "--append", "-", input=b'{"first":1}\n')
    (repo / "changed").write_bytes(b"1")
    done = invoke(repo, "save", option, give(tmp_path, text))
    said = done.stderr.decode()
    assert done.returncode == 22, said
    assert said.startswith("gitcp: ")
    assert "given.json" in said
    assert "nothing was saved" in said
    assert len(said.splitlines()) == 2
    assert ok(repo, "show")["checkpoint"]["seq"] == 1
    assert stored(repo) == b'{"first":1}\n'


def test_the_line_that_is_wrong_is_named(repo):
    said = fails(repo, 22, "save", "--append", "-", input=b'{"a":1}\n\n{"b":')
    assert "line 3 of stdin" in said


def test_files_that_are_not_there(repo):
    for option in ("--messages", "--append", "--transcript"):
        assert "nowhere" in fails(repo, 2, "save", option, "nowhere")
    fails(repo, 2, "save", "--messages", "-", "--append", "-")
    fails(repo, 2, "save", "--agent", "codex")
    assert ok(repo, "sessions")["sessions"] == []


# --- transcripts ------------------------------------------------------------------

TRANSCRIPTS = {
    "claude-code": (
        "claude-code",
        (
            b'{"type":"queue-operation","operation":"enqueue","sessionId":"s-1"}\n'
            b'{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user",'
            b'"content":"hi"},"uuid":"u-0001","sessionId":"s-1"}\n'
            b'{"type":"assistant","message":{"role":"assistant","content":[{"type":"text",'
            b'"text":"ok"}]},"uuid":"u-0002","sessionId":"s-1"}\n'
        ),
    ),
    "codex": (
        "codex",
        (
            b'{"timestamp":"t","type":"session_meta","payload":{"id":"c-1","cwd":"/w"}}\n'
            b'{"timestamp":"t","type":"response_item","payload":{"type":"message",'
            b'"role":"user","content":[{"type":"input_text","text":"hi"}]}}\n'
        ),
    ),
    "gemini": (
        "gemini",
        (
            b'{"sessionId":"g-1","projectHash":"h","startTime":"t"}\n'
            b'{"id":"1","type":"user","content":"hi"}\n'
            b'{"id":"2","type":"gemini","content":"ok","tokens":{"input":1}}\n'
        ),
    ),
    "plain": ("messages", b'{"role":"user","content":"hi"}\n'),
    "whitespace": ("messages", b' { "role" : "user" }\r\n\r\n\n{"b":1.00}\n\n'),
    "torn": ("messages", b'{"role":"user"}\n{"role":"assi'),
    "unknown": ("unknown", b'{"something":"else"}\nnot json\x1b[31m\0\xff\n'),
    "pretty": ("unknown", b'{\n  "info": {},\n  "messages": []\n}'),
}


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_a_transcript_is_byte_identical(repo, tmp_path, name):
    kind, raw = TRANSCRIPTS[name]
    saved = ok(repo, "save", "--transcript", give(tmp_path, raw))["checkpoint"]
    assert saved["conversation"]["agent"] == kind
    assert stored(repo) == raw
    target = tmp_path / "out"
    assert invoke(repo, "messages", "-o", target).returncode == 0
    assert target.read_bytes() == raw
    assert invoke(repo, "messages").returncode == 0
    assert invoke(repo, "show").returncode == 0
    assert ok(repo, "save", "--transcript", give(tmp_path, raw))["created"] is False
    other = ok(repo, "save", "--transcript", give(tmp_path, raw), "--agent", "mine")
    assert other["checkpoint"]["conversation"]["agent"] == "mine"


def test_a_pipe_is_written_to_and_not_replaced(repo, tmp_path):
    """As /dev/null is, where root works."""
    raw = TRANSCRIPTS["claude-code"][1]
    ok(repo, "save", "--transcript", give(tmp_path, raw))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        for form in ("jsonl", "markdown"):
            invoke(repo, "messages", "--format", form, "--output", pipe)
            assert pipe.is_fifo()
            assert os.read(reader, 1 << 16)
        fails(repo, 2, "export", "last", "--force", "-o", pipe)
        assert pipe.is_fifo()
    finally:
        os.close(reader)


def test_a_file_is_written_where_a_link_leads(repo, tmp_path):
    raw = TRANSCRIPTS["claude-code"][1]
    ok(repo, "save", "--transcript", give(tmp_path, raw))
    (tmp_path / "link").symlink_to("file")
    invoke(repo, "messages", "--output", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == raw


@pytest.mark.parametrize(
    ("first", "second", "lines"),
    [
        (b'{"a":1}\n{"b":2}\n', b'{"a":1}\n{"b":2}\n{ "c" : 3 }', [1, 2, 3]),
        # The stored line by itself is a document with messages.
        (b'{"messages":[{"a":1}]}\n', b'{"messages":[{"a":1}]}\n', [1]),
        (b"[1]\n", b"[1]\n", None),
        (b'{"a":1}\n{"b":2}\n', b'{"a":1}\n{"b":2} \n', [1, 2]),
        (b'{"a":1}\n{"b":2}\n', b'{"a":1}\n{"b":7}\n{"c":3}\n', [1, 7, 3]),
        (b'{"a":1}\n{"b":2}\n', b'{"a":1}\n', [1]),
    ],
)  # fmt: skip
def test_what_is_stored_already_is_known_by_its_bytes(
    repo, tmp_path, first, second, lines
):
    ok(repo, "save", "--append", give(tmp_path, first))
    ok(repo, "save", "--messages", give(tmp_path, second))
    alone = tmp_path / "alone"
    make_repo(alone, {"a": b"a"})
    ok(alone, "save", "--messages", give(tmp_path, second))
    assert stored(repo) == stored(alone)
    if lines is not None:
        assert [next(iter(json.loads(line).values()))
                for line in stored(repo).splitlines()] == lines  # fmt: skip


GROWING = [
    [b'{ "a" : 1 }\n{"b": 2}', b'{ "a" : 1 }\n{"b": 2}\n{"c": 3}\n'],
    [b'{ "a" : 1 }\n{"b": 2}\n', b'{ "a" : 1 }\n{"b": 2} {"c": 3}\n'],
    [b'{ "a" : 1 }\n{"b": 2}\n', b'{ "a" : 9 }\n{"b": 2}\n{"c": 3}\n'],
    [b'[{"a": 1}, {"b": 2}]', b'[{"a": 1}, {"b": 2}, {"c": 3}\n]\n'],
    [b'[{"a": 1}, {"b": 2} ]\n', b'[{"a": 1}, {"b": 2} ]'],
    [b'[{"a": 1}]', b'[{"a": 1}, ]'],
    [b'[{"a": 1}]', b'[{"a": 1}'],
    [b'[{"a": 1}]', b'[{"a": 1}] [2]'],
    [b'[{"a": 1}, 2]', b'[{"a": 1}, 23]'],
    [b'[{"a": 1}, {"b": 2}]', b'[{"a": 1}]'],
    [b'{\n"messages": [{"a": 1}]}\n', b'{\n"messages": [{"a": 1}]}\n{"b": 2}\n'],
    [b'{"messages": [{"a": 1}]}\n', b'{"messages": [{"a": 1}]}\n{"b": 2}\n'],
    [b"[]", b'[{"a": 1}]'],
]  # fmt: skip


@pytest.mark.parametrize("texts", GROWING)
def test_an_input_that_grows_is_what_it_would_be_alone(repo, tmp_path, texts):
    for text in (*texts, texts[0], texts[0], *texts):
        alone = tmp_path / os.urandom(8).hex()
        make_repo(alone, {"a": b"a"})
        wanted = invoke(alone, "save", "--messages", give(tmp_path, text))
        done = invoke(repo, "save", "--messages", give(tmp_path, text))
        assert done.returncode == wanted.returncode
        if done.returncode == 0:
            assert stored(repo) == stored(alone)


def test_a_bad_line_after_the_stored_ones_is_named_by_its_number(repo, tmp_path):
    ok(repo, "save", "--append", give(tmp_path, b'{"a":1}\n{"b":2}\n'))
    bad = give(tmp_path, b'{"a":1}\n{"b":2}\n{"c":3}\n{"d"')
    done = invoke(repo, "save", "--messages", bad)
    assert done.returncode == 22
    assert b"line 4 of" in done.stderr


def test_files_of_which_nothing_is_known_stay_apart(repo, tmp_path):
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_bytes(b"not json: " + name.encode())
        done = invoke(repo, "save", "--transcript", tmp_path / name)
        assert b"was replaced" not in done.stderr
    (tmp_path / "one.txt").write_bytes(b"not json: one.txt, and more")
    ok(repo, "save", "--transcript", tmp_path / "one.txt")
    assert stored(repo) == b"not json: one.txt, and more"


def test_a_note_that_is_not_kept_is_told(repo):
    ok(repo, "save")
    assert b"the note was not saved" in invoke(repo, "save", "-m", "why").stderr
    assert b"the note" not in invoke(repo, "save").stderr


def transcript(number: int) -> bytes:
    return b'{"role":"user","content":"%d"}\n' % number


def save_transcript(repo: Path, tmp_path: Path, raw: bytes) -> tuple[dict, str]:
    done = invoke(repo, "save", "--transcript", give(tmp_path, raw), "--json")
    assert done.returncode == 0, done.stderr
    assert stored(repo) == raw
    return json.loads(done.stdout)["checkpoint"]["conversation"], done.stderr.decode()


def pieces(repo: Path) -> list[bytes]:
    found = gitcp.open(repo).checkpoint("last")
    assert found.manifest.conversation is not None
    name = layout.LogName("conversation", found.manifest.conversation.source)
    return logs.segments(found.log_tree, name, found.objects.tree)


def test_a_torn_last_line_is_completed(repo, tmp_path):
    whole = transcript(1) + transcript(2)
    torn = whole[:-7]
    said, _ = save_transcript(repo, tmp_path, torn)
    assert said["messages"] == 2
    assert json.loads(invoke(repo, "messages", "--json").stdout) == [
        {"role": "user", "content": "1"}
    ]
    assert invoke(repo, "messages", "--format", "json").returncode == 3
    with pytest.raises(gitcp.AgentRecordError, match="record 2"):
        gitcp.open(repo).checkpoint("last").messages()
    said, warning = save_transcript(repo, tmp_path, whole)
    assert (said["messages"], said["segments"]) == (2, 2)
    assert warning == ""
    assert stored(repo, "1") == torn


def test_a_file_that_shrank_or_was_rewritten_keeps_what_still_fits(repo, tmp_path):
    parts = [transcript(number) for number in range(6)]
    for end in range(1, 7):
        save_transcript(repo, tmp_path, b"".join(parts[:end]))
    six = pieces(repo)
    assert len(six) == 6
    said, warning = save_transcript(repo, tmp_path, b"".join(parts[:4]))
    assert (said["segments"], said["messages"]) == (4, 4)
    assert "does not continue" in warning
    assert pieces(repo) == six[:4]
    parts[2] = transcript(222)
    said, warning = save_transcript(repo, tmp_path, b"".join(parts))
    assert (said["segments"], said["messages"]) == (3, 6)
    assert "does not continue" in warning
    assert pieces(repo)[:2] == six[:2]
    # Earlier checkpoints keep theirs, and the digest is that of the segments.
    assert stored(repo, "6") == b"".join(transcript(number) for number in range(6))
    assert invoke(repo, "verify").returncode == 0


def test_messages_of_two_sources_live_side_by_side(repo, tmp_path):
    ok(repo, "save", "--messages", give(tmp_path, jsonl(OPENAI)))
    raw = TRANSCRIPTS["claude-code"][1]
    save_transcript(repo, tmp_path, raw)
    found = gitcp.open(repo).checkpoint("last")
    assert found.conversation("main") == jsonl(OPENAI)
    # The state before a prompt is the one that does not hold it, whatever else it holds.
    assert ok(repo, "show", "u-0002")["checkpoint"]["seq"] == 1


def test_what_is_not_captured_by_a_window_is_never_cut(repo, tmp_path):
    text = jsonl(['{"role":"user","content":"' + "word " * 5_000 + '"}'])
    ok(repo, "save", "--messages", give(tmp_path, text), "--fact", "F", "--next", "N")
    done = invoke(repo, "context", "--window", "1000")
    assert done.returncode == 0
    assert b"more than the window of 1,000" in done.stderr
    assert done.stdout.index(b"Case facts") < done.stdout.index(b"Next steps")
    assert stored(repo) == text


@pytest.mark.parametrize("option", ["--messages", "--append", "--transcript"])
def test_what_does_not_end_is_refused(repo, monkeypatch, option):
    monkeypatch.setattr(saving, "_STREAM", 1000)
    assert "/dev/zero did not end" in fails(repo, 2, "save", option, "/dev/zero")
    done = invoke(repo, "save", option, "-", input=b"[" * 1001)
    assert done.returncode == 2
    assert b"stdin did not end" in done.stderr


def test_a_pipe_that_ends_is_read(repo, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    said = b'{"role": "user", "content": "hello"}\n'
    # Opening the pipe waits for the reader.
    writer = threading.Thread(target=pipe.write_bytes, args=(said,))
    writer.start()
    assert ok(repo, "save", "--messages", str(pipe))["checkpoint"]["conversation"]
    writer.join()
