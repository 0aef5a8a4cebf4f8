"""Pages of sessions that are damaged, pruned, pulled, bare, or have odd files."""

from __future__ import annotations

import os

import pytest

from tests.support.clones import save
from tests.support.damage import empty, explode
from tests.support.gitrepo import git, write_files
from tests.support.inprocess import invoke, ok
from tests.support.pages import Talker, data_in
from tests.support.sample_secrets import sample_secrets


def page(repo, *args, status=0):
    done = invoke(repo, "view", *args, "-o", "-")
    assert done.returncode == status, done.stderr
    return data_in(done.stdout)


def files(row):
    return {one["path"]: one for one in row.get("files", [])}


def test_binary_large_and_oddly_named_files(repo):
    save(repo, "-m", "start")
    names = {b"new\nline": b"1\n", b"bad\xff": b"2\n", b"<b>/f": b"3\n"}
    write_files(
        repo, {"blob": b"a\0b", "large": b"x\n" * 5_000_000, "long": b"y\n" * 300_000}
    )
    for odd, content in names.items():
        path = os.path.join(os.fsencode(repo), odd)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
    (repo / "link").symlink_to("blob")
    save(repo, "-m", "odd")
    found = files(page(repo)["rows"][-1])
    assert {"new\nline", "bad\\xff", "<b>/f"} <= set(found)
    assert found["new\nline"]["patch"].endswith("+1")
    for binary in ("blob", "large"):
        assert found[binary]["why"] == "no text"
        assert "patch" not in found[binary]
    assert found["long"]["why"] == "too long for a page"
    (repo / "link").unlink()
    (repo / "link").write_text("a file now\n")
    (repo / "blob").rename(repo / "moved")
    save(repo, "-m", "changed")
    found = files(page(repo)["rows"][-1])
    assert "-blob" in found["link"]["patch"]
    assert "+a file now" in found["link"]["patch"]
    assert found["moved"]["old"] == "blob"
    assert found["blob"]["why"] == "renamed to moved"


def test_a_file_that_is_missing_or_damaged_leaves_the_others(repo):
    for number in range(3):
        write_files(repo, {"f": b"%d\n" % number, "g": b"%d\n" % number})
        save(repo, "-m", f"n{number}")
    explode(repo)
    (oid,) = git(repo, "hash-object", "f").decode().split()
    empty(repo, oid)
    rows = page(repo, status=3)["rows"]
    assert rows[1]["files"][0]["patch"]
    assert rows[2]["notes"] == [
        "its changes are left out: a file is missing or damaged"
    ]
    done = invoke(repo, "view", "-o", "../page.html")
    assert done.returncode == 3
    assert b"#3" in done.stderr


def test_what_is_left_of_a_pruned_session(repo):
    for number in range(5):
        write_files(repo, {"f": b"%d\n" % number})
        save(repo, "-m", f"n{number}")
    invoke(repo, "prune", "--keep-last", "2", "-y")
    first, last = page(repo)["rows"]
    assert (first["n"], last["n"]) == (4, 5)
    # What was pruned just now can still be compared with; later only the count is known.
    assert first["changed"] == [0, 1, 0]
    assert [*files(first)] == ["f"] or "not known" in first["notes"][0]
    assert files(last)["f"]["patch"].endswith("-3\n+4")
    assert invoke(repo, "view", "1").returncode == 13


def test_what_was_pulled_says_where_from(ann, bob):
    save(ann, "-s", "theirs", "-m", "one", a=b"1\n")
    save(ann, "-s", "theirs", "-m", "two", a=b"2\n")
    invoke(ann, "push")
    invoke(bob, "pull")
    rows = page(bob, "theirs")["rows"]
    assert [row["foreign"] for row in rows] == ["origin", "origin"]
    assert files(rows[1])["a"]["patch"].endswith("-1\n+2")


def test_a_bare_store_has_pages_too(ann, hub):
    save(ann, "-s", "theirs", "-m", "one", a=b"1\n")
    invoke(ann, "push")
    done = invoke(ann, "-C", str(hub), "view", "theirs", "-o", "-")
    assert done.returncode == 0, done.stderr
    rows = data_in(done.stdout)["rows"]
    assert rows[0]["note"] == "one"
    assert "n" not in rows[0]


def test_a_session_of_another_work_tree(repo, tmp_path):
    save(repo, "-m", "here")
    git(repo, "worktree", "add", "-q", str(tmp_path / "side"))
    save(tmp_path / "side", "-m", "there", new=b"1\n")
    assert [row["note"] for row in page(repo, "side")["rows"]] == ["there"]
    assert [row["note"] for row in page(tmp_path / "side")["rows"]] == ["there"]


def test_a_name_that_is_a_secret_is_not_told(repo, tmp_path):
    token = sample_secrets()["github"][0]
    (repo / f"{token}.txt").write_text("x\n")
    save(repo, "-m", "start")
    done = invoke(repo, "view", "--json", "-o", tmp_path / "p.html")
    assert done.returncode == 24
    assert token.encode() not in done.stderr
    made = ok(repo, "view", "--redact", "-o", tmp_path / "p.html")
    assert made["redacted"] == 1
    assert token.encode() not in (tmp_path / "p.html").read_bytes()


@pytest.mark.parametrize("count", [0, 1])
def test_turns_that_were_taken_back_say_so(repo, tmp_path, monkeypatch, count):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    agent = Talker(repo, tmp_path / "claude")
    parent = kept = None
    for text in ("first", "wrong", "right"):
        if text == "right" and count:
            parent = kept
        agent.hook("UserPromptSubmit", prompt=text)
        parent = agent.spoke("user", text, parentUuid=parent)["uuid"]
        parent = agent.spoke("assistant", f"did {text}", parentUuid=parent)["uuid"]
        (repo / text).write_text(text)
        agent.hook("Stop")
        kept = kept or parent
    rows = page(repo)["rows"]
    back = [
        one["prompt"] for row in rows for one in row.get("talk", []) if one.get("back")
    ]
    assert back == ["wrong"][:count]
