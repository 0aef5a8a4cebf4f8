"""Messages of the Agent Client Protocol: what is read of them, and what is put into them."""

import json

import pytest

from gitcp.acp import observed, replay
from gitcp.acp.observed import Agent

PROMPT = (
    b'{"jsonrpc":"2.0", "id":1.0e2, "method":"session/prompt", "params":'
    b' {"x":12345678901234567890123, "prompt":[{"type":"text","text":"\\u00e4"}]}}\n'
)


def _message(value: object) -> observed.Message:
    found = observed.message(json.dumps(value).encode() + b"\n")
    assert found is not None
    return found


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"[]\n",
        b"7\n",
        b'{"id":1.5}\n',
        b'{"id":true}\n',
        b'{"id":[]}\n',
        b'{"method":1}\n',
        b'{"id":1}x\n',
        b'{"a":' + b"[" * 100_000 + b"\n",
        b'{"id":"\xff"}\n',
    ],
)
def test_what_is_no_message_is_not_read_as_one(line):
    assert observed.message(line) is None


def test_half_a_character_does_not_hide_a_message():
    found = observed.message(b'{"id":"\\ud83d","method":"session/prompt"}\n')
    assert found is not None
    assert (found.id, found.method) == ("\ufffd", "session/prompt")


@pytest.mark.parametrize(
    ("error", "failed"), [({"code": 1}, True), ("x", True), (None, False)]
)
def test_a_response_has_failed_if_it_has_an_error(error, failed):
    assert _message({"id": 1, "error": error}).failed == failed
    assert not _message({"id": 1, "result": None}).failed


@pytest.mark.parametrize(
    ("prompt", "text"),
    [
        ([{"type": "text", "text": "a"}, {"type": "image", "data": "x"}], "a"),
        ([{"text": "a"}, {"text": "b"}], "a\n\nb"),
        ([{"text": "\u00e4" * 9000}], "\u00e4" * 4096),
        ([], ""),
        ("a", ""),
        ([7], ""),
        (None, ""),
    ],
)
def test_the_beginning_of_a_prompt_names_its_checkpoint(prompt, text):
    assert observed.prompt_text(_message({"params": {"prompt": prompt}})) == text


@pytest.mark.parametrize(
    ("result", "agent"),
    [
        ({"protocolVersion": 1}, Agent()),
        ({"protocolVersion": 2}, Agent(accepts=True)),
        ({"protocolVersion": "2"}, Agent()),
        (None, Agent()),
        ([], Agent()),
        ({"agentCapabilities": [], "capabilities": "x"}, Agent()),
        ({"agentCapabilities": {"sessionCapabilities": []}}, Agent()),
        ({"agentCapabilities": {"sessionCapabilities": {"fork": None}}}, Agent()),
        (
            {"agentCapabilities": {"sessionCapabilities": {"fork": {}}}},
            Agent(forks=True),
        ),
        (
            {"protocolVersion": 2, "capabilities": {"session": {"fork": {}}}},
            Agent(accepts=True, forks=True),
        ),
    ],
)
def test_an_agent_can_only_what_it_says(result, agent):
    assert observed.initialized(_message({"id": 1, "result": result})) == agent


def test_a_prompt_with_a_text_before_it_is_otherwise_unchanged():
    given = replay.with_texts(PROMPT, ["a\n\x00", "b"])
    assert given is not None
    assert given.count(b"\n") == 1
    assert b'"id":1.0e2,' in given
    assert b'"x":12345678901234567890123,' in given
    assert b'{"type":"text","text":"\\u00e4"}]' in given
    blocks = json.loads(given)["params"]["prompt"]
    assert [one["text"] for one in blocks] == ["a\n\x00", "b", "\u00e4"]


@pytest.mark.parametrize(
    "line",
    [
        b"{}\n",
        b'{"params":[]}\n',
        b'{"params":{}}\n',
        b'{"params":{"prompt":"x"}}\n',
        b'{"params":{"prompt":null}}\n',
        b"[]\n",
    ],
)
def test_a_malformed_prompt_gets_no_text(line):
    assert replay.with_texts(line, ["a"]) is None


def test_a_request_for_a_session_becomes_one_for_a_fork():
    line = b'{"id":"a","method":"session/new","params":{"cwd":"/p","x":1.0}}\n'
    fork = replay.as_fork(line, 's"0')
    assert fork == (
        b'{"id":"a","method":"session/fork",'
        b'"params":{"cwd":"/p","x":1.0,"sessionId":"s\\"0"}}\n'
    )


@pytest.mark.parametrize("line", [b"{}\n", b'{"params":[]}\n', b'{"params":null}\n'])
def test_a_malformed_request_becomes_no_fork(line):
    assert replay.as_fork(line, "s0") is None


def test_of_a_long_talk_the_end_is_given():
    def talk(text: str) -> bytes:
        content = [{"type": "text", "text": text}]
        return json.dumps({"role": "user", "content": content}).encode() + b"\n"

    whole = replay.text_of(talk("short"))
    assert "short" in whole
    assert "left out" not in whole
    cut = replay.text_of(talk("begin") + talk("x" * 200_000) + talk("end"))
    assert "begin" not in cut.partition("left out")[2]
    assert "end" in cut
    assert "earlier characters are left out]" in cut
    assert len(cut) < 201_000
