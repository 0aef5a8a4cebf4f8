"""A prompt is searched in a repository that has lost its key."""

from __future__ import annotations

import json

from gitcp.checkpoints.message_search import before_message
from gitcp.checkpoints.precedence import Precedence
from gitcp.project.workspace import open_workspace
from tests.support.gitrepo import make_repo
from tests.support.inprocess import ok


def test_without_a_key_no_seal_is_checked(tmp_path, monkeypatch):
    repo = make_repo(tmp_path / "repo", {"a": b"1\n"})
    said = [{"role": "user", "content": "hello", "uuid": "message-1"}]
    first = ok(repo, "save", "--messages", "-", input=b"[]")["checkpoint"]
    ok(repo, "save", "--messages", "-", input=json.dumps(said).encode())
    (repo / ".git" / "gitcp" / "key").unlink()
    store = open_workspace(repo).store
    tip = store.tip("main", "main")
    assert tip is not None
    monkeypatch.setattr(Precedence, "of", None)
    found = before_message(store, tip, "message-1")
    assert found is not None
    assert found.id == first["id"]
