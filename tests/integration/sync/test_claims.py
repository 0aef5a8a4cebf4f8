"""A server claims to have commits that it lacks: no secret passes the scan by that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.clones import results, save
from tests.support.gitrepo import git
from tests.support.inprocess import fails, ok

REF = "refs/gitcp/s/main/main"
TOKEN = b"AWS_SECRET_ACCESS_KEY=k3J9dLq0Xz7YvB1nM5cT8wR2pF6hG4sA9eU0iO3y\n"

pytestmark = pytest.mark.ref_files


def claim(hub: Path, ref: str, commit: str) -> None:
    """Shows a ref to a fetch, and not to a push; the commit is not there."""
    path = hub / ref
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{commit}\n")
    git(hub, "config", "receive.hideRefs", ref)


def has(hub: Path, value: bytes) -> bool:
    names = git(hub, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    return any(
        value in git(hub, "cat-file", "-p", one) for one in names.decode().split()
    )


def unsent(ann: Path) -> str:
    """Pushes a checkpoint, saves one with a secret, and returns its commit."""
    save(ann, a_py=b"one\n")
    ok(ann, "push")
    return save(ann, key_txt=TOKEN)["commit"]


@pytest.mark.parametrize("ref", ["refs/heads/lie", "refs/gitcp/s/main/lie"])
def test_what_a_server_claims_is_scanned(ann, hub, ref):
    claim(hub, ref, unsent(ann))
    assert "secret" in fails(ann, 24, "push")
    save(ann, b_py=b"more\n")
    assert "secret" in fails(ann, 24, "push")
    (hub / ref).unlink()
    assert not has(hub, TOKEN.strip())


@pytest.mark.parametrize("verb", ["pull", "push"])
def test_a_claim_is_not_noted(ann, hub, verb):
    commit = unsent(ann)
    sent = (hub / REF).read_text()
    (hub / REF).write_text(f"{commit}\n")
    assert results(ann, verb)["main/main"] == ("up-to-date", "main")
    (hub / REF).write_text(sent)
    claim(hub, "refs/gitcp/s/main/lie", commit)
    save(ann, b_py=b"more\n")
    assert "secret" in fails(ann, 24, "push")
    (hub / "refs/gitcp/s/main/lie").unlink()
    assert not has(hub, TOKEN.strip())


def test_what_was_sent_before_is_not_scanned_again(ann, hub):
    """Also if the user took the value then, and the remote has less or more by now."""
    unsent(ann)
    git(ann, "config", "gitcp.secrets", "off")
    ok(ann, "push")
    git(ann, "config", "--unset", "gitcp.secrets")
    save(ann, b_py=b"more\n")
    assert results(ann, "push")["main/main"] == ("fast-forward", "main")
    git(hub, "update-ref", REF, f"{REF}~1")
    save(ann, b_py=b"still more\n")
    assert results(ann, "push")["main/main"] == ("fast-forward", "main")
