"""What clients write in JavaScript is read, halves of characters included."""

from __future__ import annotations

import json

import msgspec
import pytest

from gitcp.clients.claude_code import CLIENT as CLAUDE
from gitcp.clients.client import ClientPlaces, StoredConversation
from gitcp.clients.codex import CLIENT as CODEX
from gitcp.clients.gemini import CLIENT as GEMINI
from gitcp.clients.opencode import CLIENT as OPENCODE
from gitcp.clients.records import decode


def test_halves_of_characters_are_read_and_backslashes_stay():
    decoder = msgspec.json.Decoder(dict[str, str])
    raw = rb'{"a":"\ud83d","b":"\\ud83d","c":"\\\udc00","d":"\ud83d\ude00"}'
    assert decode(decoder, raw) == {
        "a": "\ufffd",
        "b": "\\ud83d",
        "c": "\\\ufffd",
        "d": "\ufffd\ufffd",
    }
    with pytest.raises(msgspec.MsgspecError):
        decode(decoder, rb'{"a":\ud83d}')


@pytest.mark.parametrize(
    ("client", "record"),
    [
        (
            CLAUDE,
            {
                "type": "user",
                "uuid": "the-id",
                "message": {"role": "user", "content": "x\ud83d"},
            },
        ),
        (
            CODEX,
            {
                "type": "response_item",
                "payload": {
                    "type": "message",
                    "id": "the-id",
                    "role": "user",
                    "content": [{"type": "input_text", "text": "x\ud83d"}],
                },
            },
        ),
        (GEMINI, {"type": "user", "id": "the-id", "content": [{"text": "x\ud83d"}]}),
    ],
    ids=["claude-code", "codex", "gemini"],
)
def test_a_message_with_half_a_character_is_found(client, record):
    line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
    assert client.has_messages(line)
    assert client.position(b'{"other":1}\n' + line, "the-id") == 12


def test_messages_in_a_patch_of_gemini_are_messages():
    call = {"id": "t", "name": "write_file", "args": {"content": "\ud83d"}}
    message = {"id": "m", "type": "gemini", "content": "", "toolCalls": [call]}
    line = json.dumps({"$set": {"messages": [message]}}).encode() + b"\n"
    assert GEMINI.has_messages(line)
    assert GEMINI.copied(line) == {"m"}
    assert GEMINI.position(line, "m") == 0


@pytest.mark.parametrize("client", [CLAUDE, CODEX, GEMINI, OPENCODE])
def test_a_conversation_in_which_nothing_is_said_is_no_origin(client):
    assert client.first_new_message(b'{"type":"system"}\n', frozenset({"m"})) == ""


def test_what_gemini_puts_before_a_chat_does_not_relate_it_to_another():
    def chat(*ids: str) -> bytes:
        context = {
            "id": "d0",
            "type": "user",
            "content": [{"text": "<session_context>\nx"}],
        }
        said = [{"id": one, "type": "user", "content": [{"text": "hi"}]} for one in ids]
        records = [{"$set": {"messages": [context]}}, *said]
        return b"".join(json.dumps(one).encode() + b"\n" for one in records)

    assert GEMINI.first_new_message(chat("m1"), GEMINI.copied(chat("n1"))) == ""
    assert GEMINI.first_new_message(
        chat("m1", "m2"), GEMINI.copied(chat("m1", "n2"))
    ) == ("m2")
    assert GEMINI.first_new_message(chat("m1"), GEMINI.copied(chat("m1", "n2"))) is None


def test_a_copy_of_a_chat_that_was_resumed_has_one_id(tmp_path):
    # Gemini CLI writes a header once more, and then which chat it continues.
    header = b'{"sessionId":"%s","projectHash":"h"}\n'
    renamed = b'{"$set":{"sessionId":"%s"}}\n'
    asked = b'{"id":"1","type":"user","content":"{\\"sessionId\\":\\"old\\"}"}\n'
    chat = header % b"old" + asked + header % b"old" + renamed % b"old" + asked
    kept = StoredConversation("old", chat, {}, tmp_path / "shop")
    written = GEMINI.resume_files(kept, ClientPlaces(None, tmp_path, {}))
    assert written is not None
    new = written.session.encode()
    ((_, copy), *_) = written.files
    assert copy == header % new + asked + header % new + renamed % new + asked


@pytest.mark.parametrize(
    "registry", [b"{ // mine\n}", b'{"projects": []}', b"[1]", b'{"projects": {']
)
def test_a_registry_that_is_not_understood_is_not_rewritten(tmp_path, registry):
    home = tmp_path / ".gemini"
    home.mkdir()
    (home / "projects.json").write_bytes(registry)
    chat = (
        b'{"sessionId":"s","projectHash":"h"}\n{"id":"1","type":"user","content":"x"}\n'
    )
    kept = StoredConversation("s", chat, {}, tmp_path / "shop")
    written = GEMINI.resume_files(kept, ClientPlaces(None, tmp_path, {}))
    assert written is not None
    assert written.grown is None
    (home / "projects.json").write_bytes(b'{"projects":{"/other":"shop"},"more":1}')
    written = GEMINI.resume_files(kept, ClientPlaces(None, tmp_path, {}))
    assert written is not None
    assert written.grown is not None
    assert written.grown.path == home / "projects.json"
    made = json.loads(written.grown.after)
    assert made["projects"]["/other"] == "shop"
    assert made["more"] == 1
    assert len(set(made["projects"].values())) == 2


def test_a_payload_with_half_a_character_is_no_error():
    payload = {"type": "message", "id": "m", "role": "assistant", "content": 7}
    line = json.dumps({"type": "response_item", "payload": payload}).encode()
    assert CODEX.has_messages(line.replace(b"7", rb'"\ud83d"') + b"\n")
    assert not CODEX.has_messages(b'{"type":"response_item","payload":[1]}\n')
