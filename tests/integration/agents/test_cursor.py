"""Cursor's hooks, in the shapes that its documentation gives.

There is no Cursor to run here: the events are made up after the documentation.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.gitrepo import run_gitcp, tree_bytes


@pytest.fixture
def hook(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def call(event: str, turn: int = 1, **payload: Any) -> None:
        document = {
            "conversation_id": "c0ffee00-1111-2222-3333-444444444444",
            "generation_id": f"generation-{turn}",
            "hook_event_name": event,
            "workspace_roots": [str(repo)],
            "user_email": "someone@example.invalid",
            **payload,
        }
        raw = json.dumps(document).encode()
        done = run_gitcp(repo.parent, "hook", "cursor", event, input=raw)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    return call


def test_a_turn_is_a_checkpoint_with_what_the_hooks_showed(repo, hook, tmp_path):
    hook("beforeSubmitPrompt", prompt="break it", attachments=[])
    before = tree_bytes(repo)
    (repo / "README.md").write_bytes(b"broken\n")
    hook("afterShellExecution", command="echo", output="ok", duration=1)
    hook("afterAgentResponse", text="It is broken.")
    hook("stop", status="completed", loop_count=0)
    line = json.loads(run_gitcp(repo, "log", "--json", "--full").stdout)["checkpoints"][
        ::-1
    ]
    assert [one["trigger"] for one in line] == ["turn-start", "turn-end"]
    assert line[1]["note"] == "break it"
    assert line[1]["conversation"]["agent"] == "cursor"
    spoken = run_gitcp(repo, "messages", "--all").stdout.decode()
    assert "### user\n\nbreak it" in spoken
    assert "### assistant\n\nIt is broken." in spoken
    raw = run_gitcp(repo, "messages", "--format", "jsonl").stdout
    assert b"example.invalid" not in raw
    (spool,) = (tmp_path / "state" / "gitcp" / "cursor").iterdir()
    assert spool.stat().st_mode & 0o777 == 0o600
    assert raw == spool.read_bytes()

    hook("beforeSubmitPrompt", turn=2, prompt="and again")
    (repo / "README.md").write_bytes(b"worse\n")
    hook("stop", turn=2, status="completed")
    done = run_gitcp(repo, "restore", "generation-2", "-y", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["resume"] is None
    assert (repo / "README.md").read_bytes() == b"broken\n"
    done = run_gitcp(repo, "restore", "1", "-y", "--files")
    assert tree_bytes(repo) == before


def test_where_checkpoints_are_off_nothing_is_written_down(
    repo, hook, tmp_path, monkeypatch
):
    run_gitcp(repo, "config", "autoCheckpoint", "false")
    hook("beforeSubmitPrompt", prompt="a secret")
    monkeypatch.chdir(tmp_path)
    hook("afterAgentResponse", text="another", workspace_roots=[str(tmp_path)])
    assert not (tmp_path / "state").exists()


def test_its_hooks_file_is_joined_and_left(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / ".cursor" / "hooks.json"
    assert run_gitcp(repo, "install", "cursor").returncode == 0
    made = json.loads(path.read_bytes())
    assert made["version"] == 1
    assert " hook cursor stop " in made["hooks"]["stop"][0]["command"]
    assert run_gitcp(repo, "uninstall", "cursor").returncode == 0
    assert not path.exists()
    own = b'{"version": 1, "hooks": {"stop": [{"command": "./mine.sh"}]}}'
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(own)
    for _ in range(2):
        assert run_gitcp(repo, "install", "cursor").returncode == 0
    assert len(json.loads(path.read_bytes())["hooks"]["stop"]) == 2
    # The user adds a hook in the meantime: only ours goes.
    path.write_bytes(path.read_bytes().replace(b"./mine.sh", b"./other.sh"))
    assert run_gitcp(repo, "uninstall", "cursor").returncode == 0
    assert json.loads(path.read_bytes()) == json.loads(own.replace(b"mine", b"other"))
