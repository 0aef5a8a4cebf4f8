"""`gitcp view`: what is in the page, where it is written, and what it refuses."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import stat
import tempfile

import pytest

from tests.support.inprocess import fails, invoke, ok
from tests.support.pages import Talker, data_in, texts
from tests.support.sample_secrets import sample_secrets

TOKEN = sample_secrets()["github"][0]


@pytest.fixture
def agent(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return Talker(repo, tmp_path / "claude")


def page(repo, *args):
    """The document in the page that a call prints."""
    done = invoke(repo, "view", *args, "-o", "-")
    assert done.returncode == 0, done.stderr
    return data_in(done.stdout)


def test_a_turn_has_its_talk_its_files_and_its_reasons(repo, agent):
    agent.took("start", "fine")
    invoke(repo, "decide", "cents, not floats", "--why", "rounding")
    agent.took(
        "count in cents",
        "Done: cents.",
        ("Bash", "Error: no such file", {"command": "ls src"}),
        files={"src/vat.py": "CENTS = 1\n", "README.md": None},
    )
    found = page(repo)
    row = found["rows"][-1]
    assert row["kind"] == "turn"
    assert row["prompt"] == "count in cents"
    (spoken,) = row["talk"]
    assert spoken["prompt"] == "count in cents"
    tool, answer = spoken["steps"]
    assert (tool["tool"], tool["arg"], tool["failed"]) == ("Bash", "ls src", True)
    assert tool["out"] == "Error: no such file"
    assert answer["text"] == "Done: cents."
    files = {one["path"]: one for one in row["files"]}
    assert files["src/vat.py"]["status"] == "A"
    assert files["src/vat.py"]["add"] == 1
    assert "+CENTS = 1" in files["src/vat.py"]["patch"]
    assert files["README.md"]["status"] == "D"
    (reason,) = row["reasons"]
    assert (reason["text"], reason["why"]) == ("cents, not floats", "rounding")


def test_counts_and_patches_are_those_of_log_and_show(repo, agent):
    for turn in range(4):
        agent.took(
            f"turn {turn}",
            "done",
            files={"a.txt": f"{turn}\nsame\n", f"new{turn}": "x\n" * turn},
        )
    agent.took("rename", "done", files={"new3": None, "moved": "x\n" * 3})
    rows = {row["n"]: row for row in page(repo)["rows"]}
    listed = ok(repo, "log")["checkpoints"]
    assert {one["number"] for one in listed} <= set(rows)
    for one in listed:
        row = rows[one["number"]]
        counts = (
            dict(zip(("added", "modified", "deleted"), row["changed"], strict=True))
            if "changed" in row
            else {"added": 0, "modified": 0, "deleted": 0}
        )
        assert counts == one["changed"]
        if "turn" not in one:
            continue
        shown = ok(repo, "show", str(one["number"]), "--stat", "-p")
        stat_of = {
            file["path"]: (file["added"], file["deleted"]) for file in shown["stat"]
        }
        assert stat_of == {
            file["path"]: (file.get("add"), file.get("sub"))
            for file in row.get("files", [])
        }
        hunks = re.findall(
            r"^[-+@ ].*$",
            re.sub(r"(?m)^(---|\+\+\+) .*\n", "", shown["patch"]),
            re.MULTILINE,
        )
        own = [
            line
            for file in row.get("files", [])
            for line in file.get("patch", "").split("\n")
            if line[:1] in {"-", "+", "@", " "} and line
        ]
        assert hunks == own


@pytest.mark.parametrize("where", ["prompt", "answer", "output", "file", "reason"])
def test_a_secret_anywhere_refuses_the_page(repo, agent, tmp_path, where):
    agent.took("start", "fine")
    said = dict.fromkeys(("prompt", "answer", "output", "file", "reason"), "nothing")
    said[where] = f"use {TOKEN} for it"
    invoke(repo, "decide", said["reason"])
    agent.took(
        said["prompt"],
        said["answer"],
        ("Bash", said["output"], {"command": "env"}),
        files={"notes.txt": said["file"] + "\n"},
    )
    target = tmp_path / "page.html"
    message = fails(repo, 24, "view", "-o", target)
    assert "--redact" in message
    assert TOKEN not in message
    assert not target.exists()
    done = invoke(repo, "view", "--redact", "-o", target)
    assert done.returncode == 0, done.stderr
    found = data_in(target.read_bytes())
    assert found["redacted"] == 1
    assert not [text for text in texts(found) if TOKEN in text]
    assert [text for text in texts(found) if "[purged:" in text]


def test_a_secret_may_be_let_through_by_its_name(repo, agent, tmp_path):
    agent.took("start", f"use {TOKEN}")
    target = tmp_path / "page.html"
    done = invoke(repo, "view", "--json", "-o", target)
    (found,) = json.loads(done.stderr)["error"]["secrets"]
    (place,) = found["places"]
    assert place["kind"] == "conversation"
    let = ok(repo, "view", "-o", target, "--allow", found["fingerprint"])
    assert [one["fingerprint"] for one in let["secrets"]] == [found["fingerprint"]]
    assert any(TOKEN in text for text in texts(data_in(target.read_bytes())))


def test_what_is_not_in_the_page_is_no_reason_to_refuse_it(repo, agent):
    agent.took("start", f"use {TOKEN}", files={"a": f"{TOKEN}\n"})
    assert page(repo, "--prompts-only")["rows"]
    fails(repo, 24, "view", "--no-files")


def test_a_key_in_a_patch_is_found_behind_the_signs(repo, agent, tmp_path):
    value, key = sample_secrets()["pem"]
    agent.took("make a key", "done", files={"key.txt": f"first\n{key}\nlast\n"})
    target = tmp_path / "page.html"
    fails(repo, 24, "view", "-o", target)
    assert invoke(repo, "view", "-o", target, "--redact").returncode == 0
    found = "\n".join(texts(data_in(target.read_bytes())))
    assert not [line for line in value.split("\n") if len(line) > 20 and line in found]


def test_without_a_name_the_page_is_the_users_alone(repo, agent, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    agent.took("start", "fine")
    first, second = (invoke(repo, "view").stdout.decode().strip() for _ in range(2))
    assert first != second
    for name in (first, second):
        assert os.path.dirname(name) == str(tmp_path)
        assert stat.S_IMODE(os.stat(name).st_mode) == 0o600


def test_it_replaces_a_page_and_nothing_else(repo, agent, tmp_path):
    agent.took("start", "fine")
    mine, old = tmp_path / "notes.html", tmp_path / "page.html"
    mine.write_text("<!doctype html>\n<p>mine")
    fails(repo, 18, "view", "-o", mine)
    assert mine.read_text() == "<!doctype html>\n<p>mine"
    for _ in range(2):
        assert invoke(repo, "view", "-o", old).returncode == 0
    assert "directory" in fails(repo, 2, "view", "-o", tmp_path)
    assert "directory" in fails(repo, 2, "view", "-o", tmp_path / "no" / "p.html")


def test_the_policy_names_style_and_script_and_allows_nothing_else(repo, agent):
    agent.took("start", "</script><script>alert(1)</script>")
    raw = invoke(repo, "view", "-o", "-").stdout.decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', raw)
    assert policy is not None
    parts = dict(
        part.strip().split(" ", 1)
        for part in policy[1].replace("&#x27;", "'").split(";")
    )
    assert parts.pop("default-src") == "'none'"
    (style,) = re.findall(r"<style>(.*?)</style>", raw, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", raw, re.DOTALL)
    for name, text in (("style-src", style), ("script-src", script)):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert parts.pop(name) == f"'sha256-{digest}'"
    assert parts == {"base-uri": "'none'", "form-action": "'none'"}
    assert "alert(1)" not in raw


def test_prompts_only_has_neither_answers_nor_files(repo, agent):
    invoke(repo, "decide", "a secret reason")
    agent.took("the prompt", "the answer", files={"a": "the file\n"})
    everything = " ".join(texts(page(repo, "--prompts-only")))
    assert "the prompt" in everything
    for word in ("the answer", "the file", "a secret reason"):
        assert word not in everything
    without = page(repo, "--no-files")
    assert not any("files" in row for row in without["rows"])
    assert "the answer" in " ".join(texts(without))


def test_the_session_may_be_named_in_each_way(repo, agent):
    number = agent.took("first words", "fine")
    session = page(repo)["session"]
    (repo / "by-hand").write_text("x")
    later = agent.took(
        "second", "fine", ("Bash", "", {"command": "x"}), files={"a": ""}
    )
    assert page(repo, session)["session"] == session
    assert page(repo, "first words")["session"] == session
    rows = page(repo, str(number))
    assert rows["rows"][rows["selected"]]["n"] == number
    inner = page(repo, str(later - 1))
    by_hand = inner["rows"][inner["selected"]]
    assert (by_hand["n"], by_hand["kind"]) == (later - 1, "hand")
    fails(repo, 13, "view", "nowhere")


def test_forks_are_lanes_that_join_where_they_began(repo, agent):
    agent.took("one", "fine", files={"a": "1\n"})
    invoke(repo, "save", "-m", "here")
    invoke(repo, "fork", "try", "--no-switch")
    invoke(repo, "switch", "main/try")
    (repo / "b").write_text("2\n")
    invoke(repo, "save", "-m", "there")
    found = page(repo, "main")
    assert [lane["branch"] for lane in found["lanes"]] == ["main", "try"]
    forked = next(row for row in found["rows"] if row["lane"] == 1)
    assert found["rows"][forked["up"]]["lane"] == 0
    assert found["rows"][forked["up"]]["note"] == "here"
