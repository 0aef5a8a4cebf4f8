"""`gitcp mcp` without the SDK of the protocol."""

import importlib.util

from tests.support.gitrepo import run_gitcp


def test_without_the_extra_one_line_says_how_to_get_it(repo, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "mcp" else found(name)
    )
    done = run_gitcp(repo, "mcp")
    assert done.returncode == 2
    assert done.stdout == b""
    assert b"pip install 'gitcp[mcp]'" in done.stderr
