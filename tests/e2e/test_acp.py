"""`gitcp acp` between an editor and an agent, both made up."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support import acp_agent
from tests.support.gitrepo import gitcp_argv, gitcp_environment, run_gitcp

AGENT = str(Path(acp_agent.__file__))
NEW = {"jsonrpc": "2.0", "id": 1, "method": "session/new"}


class Editor:
    """The other end of the proxy's input and output."""

    def __init__(
        self,
        repo: Path,
        heard: Path,
        environment: dict[str, str],
        agent: Sequence[str] = (sys.executable, AGENT),
    ) -> None:
        self.repo = repo
        self.sent = self.got = b""
        self.next = 2
        self.errors = heard.with_name("errors")
        environment = {**gitcp_environment(), "HEARD": str(heard), **environment}
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                gitcp_argv("acp", "--", *agent),
                cwd=repo,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
            )

    def send(self, data: bytes | dict[str, Any]) -> None:
        raw = data if isinstance(data, bytes) else json.dumps(data).encode() + b"\n"
        self.sent += raw
        assert self.process.stdin is not None
        self.process.stdin.write(raw)
        self.process.stdin.flush()

    def line(self) -> bytes:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.got += line
        return line

    def until(self, ident: int) -> dict[str, Any]:
        while line := self.line():
            with contextlib.suppress(ValueError):
                message: dict[str, Any] = json.loads(line)
                if message.get("id") == ident and "method" not in message:
                    return message
                if message.get("method") == "session/request_permission":
                    self.allow(message)
        raise AssertionError(self.errors.read_text())

    def allow(self, request: dict[str, Any]) -> None:
        """Answers what an agent asks for, where it gives a choice."""
        for option in request["params"]["options"]:
            if option["kind"].startswith("allow"):
                chosen = {"outcome": "selected", "optionId": option["optionId"]}
                result = {"outcome": chosen}
                self.send({"jsonrpc": "2.0", "id": request["id"], "result": result})
                return

    def open(self, cwd: Path | None = None, ident: int = 1) -> str:
        params = {"cwd": str(cwd or self.repo), "mcpServers": []}
        self.send({**NEW, "id": ident, "params": params})
        return str(self.until(ident)["result"]["sessionId"])

    def prompt(self, session: str, text: str) -> int:
        self.next += 1
        params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
        method = "session/prompt"
        self.send(
            {"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}
        )
        return self.next

    def turn(self, session: str, text: str) -> dict[str, Any]:
        return self.until(self.prompt(session, text))

    def close(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        if not self.process.stdout.closed:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
            self.got += self.process.stdout.read()
            self.process.stdout.close()
        return self.process.wait()


@pytest.fixture
def editor(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    started: list[Editor] = []

    def start(**environment: str) -> Editor:
        started.append(Editor(repo, tmp_path / "heard", environment))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.close()


def _log(repo: Path) -> list[dict[str, Any]]:
    done = run_gitcp(repo, "log", "--all", "--json", "--full")
    found = json.loads(done.stdout)["checkpoints"]
    return sorted(found, key=lambda one: one["number"])


def _talk(repo: Path, number: int) -> list[Any]:
    raw = run_gitcp(repo, "messages", str(number), "--format", "jsonl").stdout
    return [json.loads(line) for line in raw.splitlines()]


def _texts(talk: list[Any]) -> list[str]:
    return [block["text"] for one in talk for block in one["content"]]


def test_each_turn_is_saved_with_its_talk_before_the_next_prompt_is_handed_on(
    repo, editor
):
    one = editor()
    session = one.open()
    for text in ("first", "second"):
        assert one.turn(session, f"write {text}")["result"]["stopReason"] == "end_turn"
    assert one.close() == 0
    made = _log(repo)
    assert [(each["trigger"], each["note"]) for each in made] == [
        ("turn-start", "before: write first"),
        ("turn-end", "write first"),
        ("turn-end", "write second"),
    ]
    assert _texts(_talk(repo, made[-1]["number"])) == [
        "write first",
        "wrote first",
        "write second",
        "wrote second",
    ]
    run_gitcp(repo, "restore", str(made[1]["number"]), "--yes", "--files")
    assert (repo / "written").read_text() == "first\n"
    assert one.errors.read_text() == ""


def test_all_else_passes_byte_for_byte(repo, editor, tmp_path):
    one = editor()
    session = one.open()
    odd = (
        b'  {"method" : "x/unknown", "params":[1, 2]}\r\n'
        b"\xff\xfe not JSON\n\n"
        b'{"id":7,"result":{"content":"' + b"\xc3\xa4" * 4_000_000 + b'"}}\n'
        b'[{"jsonrpc":"2.0","method":"x"}]\n'
    )
    said = b'\x00\x1b[2J\n{"method":"x/y","params":"' + b"z" * 3_000_000 + b'"}\n{}'
    one.send(odd)
    one.send({"method": "x/raw", "params": {"hex": said.hex()}})
    one.send(b"\n")
    one.turn(session, "write a")
    one.send(b'{"unfinished')
    assert one.close() == 0
    assert (tmp_path / "heard").read_bytes() == one.sent
    assert said in one.got


def test_what_was_said_before_a_kill_is_saved_by_the_next_start(repo, editor):
    one = editor()
    session = one.open()
    one.turn(session, "write a")
    one.prompt(session, "hang")
    while b"half an answer" not in one.line():
        pass
    one.process.send_signal(signal.SIGKILL)
    one.process.wait()
    other = editor()
    other.turn(other.open(), "write b")
    assert other.close() == 0
    last = [each for each in _log(repo) if each["note"] == "hang"][-1]
    talk = _talk(repo, last["number"])
    assert _texts(talk) == ["write a", "wrote a", "hang", "half an answer"]
    assert talk[-1]["stop_reason"] == "interrupted"
    assert run_gitcp(repo, "verify").returncode == 0


def test_a_new_session_after_a_restore_is_given_the_talk_once(repo, editor):
    one = editor()
    session = one.open()
    one.turn(session, "write a")
    one.turn(session, "write b")
    assert one.close() == 0
    first = next(each for each in _log(repo) if each["note"] == "write a")
    told = run_gitcp(repo, "restore", str(first["number"]), "--yes").stdout
    assert b"open a new thread" in told
    other = editor()
    session = other.open()
    for wanted in (True, False):
        other.turn(session, "heard")
        given = other.got.rpartition(b"agent_message_chunk")[2]
        assert (b"write a" in given) == wanted
        assert b"write b" not in given
    assert other.close() == 0
    newest = _log(repo)[-1]
    assert newest["branch"] == first["branch"]
    assert _texts(_talk(repo, newest["number"]))[:3] == ["write a", "wrote a", "heard"]


def test_an_agent_that_forks_gets_the_restored_session_as_a_fork(repo, editor):
    one = editor()
    session = one.open()
    one.turn(session, "write a")
    assert one.close() == 0
    (repo / "written").unlink()
    run_gitcp(repo, "restore", str(_log(repo)[-1]["number"]), "--yes")
    other = editor(FORKS="1")
    other.send({"jsonrpc": "2.0", "id": 90, "method": "initialize", "params": {}})
    other.until(90)
    fork = other.open()
    assert fork == f"fork-of-{session}"
    other.turn(fork, "heard")
    assert b'"[]"' in other.got
    assert other.close() == 0
    talk = _talk(repo, _log(repo)[-1]["number"])
    assert _texts(talk) == ["write a", "wrote a", "heard", "[]"]


def test_only_the_last_restore_is_taken_up(repo, editor):
    one = editor()
    session = one.open()
    for text in ("first", "second"):
        one.turn(session, f"write {text}")
    assert one.close() == 0
    ends = [each for each in _log(repo) if each["trigger"] == "turn-end"]
    for each in reversed(ends):
        run_gitcp(repo, "restore", str(each["number"]), "--yes")
    other = editor()
    for ident, wanted in ((1, True), (70, False)):
        session = other.open(ident=ident)
        other.turn(session, "heard")
        given = other.got.rpartition(b"agent_message_chunk")[2]
        assert (b"write first" in given) == wanted
        assert b"write second" not in given
    assert other.close() == 0


def test_an_agent_is_told_of_a_restore_under_its_open_session(repo, editor):
    one = editor()
    session = one.open()
    one.turn(session, "write a")
    one.turn(session, "write b")
    first = next(each for each in _log(repo) if each["note"] == "write a")
    run_gitcp(repo, "restore", str(first["number"]), "--yes", "--files")
    one.turn(session, "heard")
    assert b"restored" in one.got.rpartition(b"agent_message_chunk")[2]
    assert one.close() == 0


def test_a_session_that_is_loaded_goes_on_where_it_was(repo, editor):
    one = editor()
    session = one.open()
    one.turn(session, "write a")
    assert one.close() == 0
    other = editor()
    params = {"sessionId": session, "cwd": str(repo), "mcpServers": []}
    other.send({"id": 80, "method": "session/load", "params": params})
    other.until(80)
    other.turn(session, "write b")
    assert other.close() == 0
    made = _log(repo)
    assert len({each["session"] for each in made}) == 1
    assert _texts(_talk(repo, made[-1]["number"])) == [
        "write a",
        "wrote a",
        "write b",
        "wrote b",
    ]


def test_a_session_goes_on_after_what_was_said_in_it_is_purged(repo, editor, tmp_path):
    one = editor()
    session = one.open()
    one.turn(session, "write wombat-quokka")
    one.turn(session, "write b")
    assert one.close() == 0
    value = b"wombat-quokka"
    run_gitcp(repo, "purge", "--value-from-stdin", "--yes", input=value)
    talks = list((tmp_path / "state/gitcp/acp").rglob("talk.jsonl"))
    assert talks
    assert not any(value in path.read_bytes() for path in talks)
    (repo / "written").unlink()
    other = editor()
    params = {"sessionId": session, "cwd": str(repo), "mcpServers": []}
    other.send({"id": 80, "method": "session/load", "params": params})
    other.until(80)
    other.turn(session, "write c")
    assert other.close() == 0
    made = _log(repo)
    assert len({each["session"] for each in made}) == 1
    said = _texts(_talk(repo, made[-1]["number"]))
    assert said[2:] == ["write b", "wrote b", "write c", "wrote c"]
    assert "[purged" in said[0]


def test_an_id_that_was_used_before_is_another_session(repo, editor):
    for text in ("a", "b"):
        one = editor()
        one.turn(one.open(), f"write {text}")
        assert one.close() == 0
    made = _log(repo)
    assert len({each["session"] for each in made}) == 2
    assert _texts(_talk(repo, made[-1]["number"])) == ["write b", "wrote b"]


def test_a_cancel_behind_a_prompt_reaches_the_agent_after_it(repo, editor):
    one = editor()
    session = one.open()
    asked = one.prompt(session, "hang")
    one.send({"method": "session/cancel", "params": {"sessionId": session}})
    assert one.until(asked)["result"]["stopReason"] == "cancelled"
    assert one.close() == 0
    assert _talk(repo, _log(repo)[-1]["number"])[-1]["stop_reason"] == "cancelled"


def test_a_signal_that_another_thread_gets_reaches_the_agent(editor):
    """The kernel may choose any thread; the main one, which runs handlers, waits in a read."""
    one = editor()
    one.open()
    pid = one.process.pid
    thread = max(int(name) for name in os.listdir(f"/proc/{pid}/task"))
    assert thread != pid
    tgkill = {"x86_64": 234, "aarch64": 131}[os.uname().machine]
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.syscall(tgkill, pid, thread, int(signal.SIGTERM)) == 0
    assert one.process.wait(60) == 128 + signal.SIGTERM


@contextlib.contextmanager
def _no_checkpoints(one: Editor) -> Iterator[None]:
    """Has no checkpoint made for as long as this lasts."""
    children = Path(f"/proc/{one.process.pid}/task/{one.process.pid}/children")
    threads = children.parent.parent.glob("*/children")
    pids = [int(pid) for thread in threads for pid in thread.read_text().split()]
    (worker,) = (
        pid
        for pid in pids
        if b"acp_worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    os.kill(worker, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(worker, signal.SIGCONT)


def _passed(one: Editor, heard: Path) -> bytes:
    """What the agent has got, once it has got what is sent last."""
    one.send({"method": "x/raw", "params": {"hex": b"{}\n".hex()}})
    while one.line() != b"{}\n":
        pass
    return heard.read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_a_prompt_waits_for_the_checkpoint_of_the_turn_before_it(
    repo, editor, tmp_path
):
    one = editor()
    session = one.open()
    one.turn(session, "write a")
    with _no_checkpoints(one):
        asked = one.prompt(session, "write b")
        assert b"write b" not in _passed(one, tmp_path / "heard")
    one.until(asked)
    assert one.close() == 0
    assert [each["note"] for each in _log(repo)][-2:] == ["write a", "write b"]


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
def test_a_command_that_was_asked_about_runs_after_a_checkpoint(repo, editor, tmp_path):
    one = editor()
    session = one.open()
    one.turn(session, "write a")
    names = ("written", "hours")
    with _no_checkpoints(one):
        one.send({"method": "x/ask", "params": {"sessionId": session}})
        while b"request_permission" not in one.line():
            pass
        (repo / "hours").write_text("of work\n")
        one.send({"jsonrpc": "2.0", "id": 1000, "result": {"outcome": "yes"}})
        assert b"yes" not in _passed(one, tmp_path / "heard")
    while not one.line().startswith(b'{"jsonrpc": "2.0", "method": "x/removed"'):
        pass
    assert one.close() == 0
    # The checkpoint of the turn before it, or its own if that was made by then.
    held = [
        [run_gitcp(repo, "cat", str(each["number"]), name).returncode for name in names]
        for each in _log(repo)
    ]
    assert [0, 0] in held


def test_sessions_side_by_side_and_one_outside_of_any_repository(
    repo, editor, tmp_path
):
    outside = tmp_path / "out\x1b[31mside"
    outside.mkdir()
    one = editor()
    inside, other = one.open(), one.open(outside, ident=500)
    hangs = one.prompt(inside, "hang")
    one.turn(other, "write b")
    one.send({"method": "session/cancel", "params": {"sessionId": inside}})
    one.until(hangs)
    one.turn(other, "write c")
    assert one.close() == 0
    (line,) = one.errors.read_text().splitlines()
    told = str(outside).replace("\x1b", "\\x1b")
    assert line.startswith(f"gitcp acp: {told} is not in a git repository")
    assert {each["note"] for each in _log(repo)} == {"before: hang", "hang"}


def test_the_end_of_an_agent_is_that_of_the_proxy(repo, editor):
    one = editor()
    session = one.open()
    one.prompt(session, "die")
    while one.line():
        pass
    assert one.process.wait() == 3
    assert _texts(_talk(repo, _log(repo)[-1]["number"])) == ["die", "last words"]


def test_a_prompt_that_waits_is_handed_on_though_the_editor_has_closed(repo, editor):
    one = editor()
    session = one.open()
    one.prompt(session, "write a")
    assert one.close() == 0
    assert (repo / "written").read_text() == "a\n"
    assert _log(repo)[-1]["note"] == "write a"
