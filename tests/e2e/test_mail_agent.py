"""An agent that sends mail to a real SMTP server, restored to before the mail.

As a user would: the agent is a program of its own, the decisions are made at the command
line, and what counts is what arrived.
"""

from __future__ import annotations

import asyncio
import email
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP

from tests.support.gitrepo import gitcp_environment, make_repo, run_gitcp

MAILING = b"""
import os, smtplib
from email.message import EmailMessage

def deliver(to, subject, text, ident):
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "agent@here", to, subject
    message["Message-ID"] = f"<{ident}@agent>"
    message["X-Pid"] = str(os.getpid())
    message.set_content(text)
    with smtplib.SMTP("127.0.0.1", int(os.environ["SMTP_PORT"])) as server:
        server.send_message(message)

def send(to, text, idempotency_key):
    deliver(to, "Offer", text, idempotency_key)
    return {"to": to, "id": idempotency_key}

def retract(result, idempotency_key):
    text = f"Please disregard {result['id']}."
    deliver(result["to"], "Retraction", text, idempotency_key.replace(":", "-"))
"""
AGENT = b"""
import sys
from pathlib import Path
import gitcp, mailing

session = gitcp.open(".").session("agent", *sys.argv[1:2])
if session.last is None:
    session.save(messages=[{"role": "user", "content": "Make Ann an offer."}])

def draft():
    Path("offer.txt").write_text("100 pieces at 5.\\n")
    return "100 pieces at 5."

text = session.step("draft", draft, effect="local")
sent = session.step("send-mail", mailing.send, "ann@there", text, undo=mailing.retract)
session.save(append=[{"role": "assistant", "content": f"Sent {sent['id']}."}])
print(sent["id"])
"""


class Sink:
    """A mailbox behind a real server; may kill who sends, once the mail is taken."""

    def __init__(self) -> None:
        self.mails: list[Any] = []
        self.kill_sender = False

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        mail = email.message_from_bytes(envelope.content)
        self.mails.append(mail)
        if self.kill_sender:
            os.kill(int(mail["X-Pid"]), signal.SIGKILL)
        return "250 taken"

    @property
    def subjects(self) -> list[str]:
        return [mail["Subject"] for mail in self.mails]


class Place:
    """The project of the agent, with its sink."""

    def __init__(self, repo: Path, sink: Sink, port: int) -> None:
        self.repo = repo
        self.sink = sink
        self._env = {"SMTP_PORT": str(port), "PYTHONPATH": None}
        self._path = str(repo)

    def _environment(self) -> dict[str, str]:
        env = gitcp_environment({"SMTP_PORT": self._env["SMTP_PORT"]})
        env["PYTHONPATH"] += os.pathsep + self._path
        return env

    def agent(self, *branch: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "agent.py", *branch],
            cwd=self.repo,
            env=self._environment(),
            capture_output=True,
            check=False,
            timeout=120,
        )

    def gitcp(self, status: int, *words: str) -> Any:
        done = run_gitcp(
            self.repo, words[0], "--json", *words[1:], env=self._environment()
        )
        assert done.returncode == status, (done.stdout, done.stderr)
        return json.loads(done.stdout if status == 0 else done.stderr.splitlines()[-1])


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    repo = make_repo(
        tmp_path / "repo",
        {"agent.py": AGENT, "mailing.py": MAILING, ".gitignore": b"__pycache__\n"},
    )
    sink = Sink()
    with serving(sink) as port:
        yield Place(repo, sink, port)


@contextmanager
def serving(sink: Sink) -> Iterator[int]:
    """Runs a server in a thread of its own, on a port that the system chooses."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def listen() -> asyncio.Server:
        return await loop.create_server(lambda: SMTP(sink), "127.0.0.1", 0)

    async def hang_up(server: asyncio.Server) -> None:
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    server = asyncio.run_coroutine_threadsafe(listen(), loop).result(60)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(hang_up(server), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


def test_restored_to_before_the_mail_asked_and_compensated(place):
    first = place.agent()
    assert first.returncode == 0, first.stderr
    assert place.sink.subjects == ["Offer"]
    assert (place.repo / "offer.txt").exists()

    # Back to before the mail: that is said, and nothing is done without asking.
    plan = place.gitcp(0, "restore", "agent/main:1", "--dry-run")
    assert [one["name"] for one in plan["behind"]] == ["send-mail", "draft"]
    error = place.gitcp(23, "restore", "agent/main:1", "--yes")["error"]
    assert error["code"] == "effects-stand"
    assert error["steps"] == ["send-mail"]
    assert (place.repo / "offer.txt").exists()

    # Taken back: a retraction goes out, the draft goes, and then the restore may be.
    done = place.gitcp(0, "undo", "--effects", "--to", "agent/main:1", "--yes")
    assert len(done["undone"]) == 2
    assert place.sink.subjects == ["Offer", "Retraction"]
    assert first.stdout.decode().strip() in place.sink.mails[1].get_payload()
    assert not (place.repo / "offer.txt").exists()
    place.gitcp(0, "restore", "agent/main:1", "--yes")
    states = {one["name"]: one["state"] for one in place.gitcp(0, "steps")["steps"]}
    assert "done" not in states.values()

    # From here a mail is a new one.
    again = place.agent()
    assert again.returncode == 0, again.stderr
    assert place.sink.subjects == ["Offer", "Retraction", "Offer"]
    assert again.stdout != first.stdout


def test_restored_to_before_the_mail_and_replayed(place):
    first = place.agent()
    place.gitcp(0, "restore", "agent/main:1", "--yes", "--replay")
    assert not (place.repo / "offer.txt").exists()
    again = place.agent()
    # The draft was made again, the mail was not sent again.
    assert (place.repo / "offer.txt").exists()
    assert again.stdout == first.stdout
    assert place.sink.subjects == ["Offer"]


def test_restored_to_before_the_mail_and_forked(place):
    first = place.agent()
    place.gitcp(0, "fork", "agent/main:1", "other", "--yes")
    again = place.agent("other")
    assert again.returncode == 0, again.stderr
    assert again.stdout != first.stdout
    assert place.sink.subjects == ["Offer", "Offer"]
    assert place.agent().stdout == first.stdout


def test_killed_when_the_mail_was_taken_and_nothing_recorded(place):
    place.sink.kill_sender = True
    assert place.agent().returncode == -signal.SIGKILL
    place.sink.kill_sender = False
    for _ in range(2):
        assert b"StepUnknownError" in place.agent().stderr
    assert place.sink.subjects == ["Offer"]
    states = {one["name"]: one["state"] for one in place.gitcp(0, "steps")["steps"]}
    assert states == {"draft": "done", "send-mail": "unknown"}
    # The user looks into the mailbox, and answers.
    ident = place.sink.mails[0]["Message-ID"].strip("<>").partition("@")[0]
    result = json.dumps({"to": "ann@there", "id": ident})
    place.gitcp(0, "steps", "answer", "send-mail", "done", "--result", result)
    done = place.agent()
    assert done.stdout.decode().strip() == ident
    assert place.sink.subjects == ["Offer"]
