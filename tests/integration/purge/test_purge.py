"""A secret, or a file, is taken out of all checkpoints."""

import base64
import json
import zlib
from pathlib import Path

import pytest

from gitcp.purge import tracking_refs
from tests.support.gitrepo import commit_all, git_line, make_repo, write_files
from tests.support.gitrepo import git as run_git
from tests.support.inprocess import fails, invoke, ok
from tests.support.sample_secrets import sample_secrets

CANARY = "k3J9dLq0" + "Xz7Yv3Wn5Bt1"


@pytest.fixture
def repo(tmp_path):
    return make_repo(tmp_path / "p", {"a.txt": b"a\n", ".gitignore": b"*.log\n"})


LOUD = "wombat-7351-quokka"


def everything(repo):
    """The inflated bytes of every object that is in the repository in any way."""
    listed = run_git(repo, "cat-file", "--batch-all-objects", "--batch", "--unordered")
    loose = b"".join(
        zlib.decompress(path.read_bytes())
        for path in (repo / ".git/objects").glob("[0-9a-f][0-9a-f]/*")
    )
    return listed + loose


def private(repo):
    """What lies in gitcp's own directories."""
    found = b""
    for path in sorted(Path(repo, ".git/gitcp").rglob("*")):
        if path.is_file():
            found += path.read_bytes()
    return found


def checkpoints(repo, *args):
    return ok(repo, "log", "--all", *args)["checkpoints"]


def sound(repo):
    report = ok(repo, "verify")
    assert report["ok"], report
    run_git(repo, "fsck", "--full", "--strict")
    return report["checked"]


def in_tool(text):
    inner = json.dumps({"stdout": f"$ env\n{text}\n"})
    return (
        json.dumps({"role": "user", "content": [{"content": inner}]}).encode() + b"\n"
    )


def story(repo, value, line):
    """Checkpoints that hold a secret in every place there is; returns ids."""
    write_files(repo, {"conf/app.ini": f"one\n{line}\n".encode(), "b.txt": b"b\n"})
    hello = b'{"role":"user","content":"hello"}\n'
    ok(repo, "save", "--messages", "-", "-m", "first", input=hello + in_tool(line))
    ok(repo, "save", "--append", "-", "--decision", f"use {line}", input=in_tool("x"))
    if "\n" not in value:
        ok(
            repo,
            "save",
            "-m",
            f"with {value}",
            "--label",
            f"l-{value}",
            "--allow-empty",
        )
        ok(repo, "save", "--position", json.dumps({"token": value}), "--task", value)
    ok(repo, "fork", "other")
    write_files(repo, {"b.txt": b"more\n"})
    encoded = base64.b64encode(f"x{line}".encode())
    write_files(
        repo, {"enc.txt": encoded, "wide.txt": f"\ufeff{line}".encode("utf-16")}
    )
    ok(repo, "save", "-m", "on the fork")
    for name in ("conf/app.ini", "enc.txt", "wide.txt"):
        (repo / name).unlink()
    ok(repo, "save", "-m", "gone from the files")


@pytest.mark.parametrize("name", ["github", "db-password", "pem", "django", "db-url"])
def test_a_purged_value_is_nowhere_and_all_else_is_as_it_was(repo, name):
    value, line = sample_secrets()[name]
    story(repo, value, line)
    needle = value.strip().encode()[:40]
    before = checkpoints(repo)
    assert needle in everything(repo)
    done = invoke(repo, "scan", "--json")
    (secret,) = json.loads(done.stdout)["secrets"]
    fingerprint = secret["fingerprint"]
    purged = ok(repo, "purge", fingerprint, "--yes")
    assert purged["left"] == []
    assert {one["id"] for one in purged["checkpoints"]} == {one["id"] for one in before}
    seen = everything(repo)
    assert needle not in seen
    assert base64.b64encode(b"x" + line.encode())[4:40] not in seen
    assert needle not in private(repo)
    assert f"[purged:{fingerprint}]".encode() in seen
    assert sound(repo) == len(before)
    after = checkpoints(repo)
    assert [(one["id"], one["branch"], one["seq"]) for one in after] == [
        (one["id"], one["branch"], one["seq"]) for one in before
    ]
    assert [one["files"]["added"] for one in after] == [
        one["files"]["added"] for one in before
    ]
    assert ok(repo, "scan")["secrets"] == []
    first = before[-1]["id"]
    talk = ok(repo, "messages", first, "--format", "json")
    assert talk[0] == {"role": "user", "content": "hello"}
    assert json.loads(talk[1]["content"][0]["content"])["stdout"].startswith("$ env")
    assert ok(repo, "decisions", "last")["decisions"]
    # And life goes on.
    write_files(repo, {"c.txt": b"c\n"})
    ok(repo, "save", "--append", "-", input=in_tool("y"))
    ok(repo, "gc")
    sound(repo)
    ok(repo, "restore", first, "--yes")
    assert f"[purged:{fingerprint}]" in (repo / "conf/app.ini").read_text()


@pytest.mark.parametrize("option", ["--label", "--trigger"])
def test_what_a_purge_changes_in_a_commits_message_stays_ones_own(repo, option):
    """The message says what the record says, and so it has to afterwards."""
    ok(repo, "save", option, 'the "s3cret-1234" é', "--allow-empty")
    ok(repo, "purge", "--value-from-stdin", "--yes", input=b"s3cret-1234")
    assert b"s3cret-1234" not in everything(repo)
    found = ok(repo, "show", "1")["checkpoint"]
    assert "[purged:" in found[option.removeprefix("--")]
    assert not found["foreign"]


def test_a_value_from_stdin_needs_no_rule_to_know_it(repo):
    phrase = 'correct horse\\battery "staple" é💥'
    write_files(repo, {"x.py": f"P = {json.dumps(phrase)}\n".encode()})
    ok(repo, "save", "--messages", "-", input=in_tool(json.dumps(phrase)))
    (repo / "x.py").unlink()
    assert ok(repo, "scan")["secrets"] == []
    ok(repo, "purge", "--value-from-stdin", "--yes", input=phrase.encode() + b"\n")
    seen = everything(repo)
    for part in (b"horse", b"battery", b"staple"):
        assert part not in seen
    sound(repo)


def test_a_number_is_replaced_by_a_text_and_the_record_stays_json(repo):
    pin = 839174662
    talk = json.dumps({"role": "user", "content": "pin", "pin": pin, "s": f"a {pin}"})
    ok(repo, "save", "--messages", "-", input=talk.encode() + b"\n")
    ok(repo, "purge", "--value-from-stdin", "--yes", input=str(pin).encode())
    (message,) = ok(repo, "messages", "--format", "json")
    assert message["pin"].startswith("[purged:")
    assert message["s"].startswith("a [purged:")
    sound(repo)


@pytest.mark.parametrize(
    "then",
    [
        ["save", "-m", "again"],
        ["status"],
        ["diff", "first"],
        ["restore", "--dry-run", "first"],
        ["restore", "--yes", "first"],
        ["switch", "--restore", "--yes", "main/main"],
        ["fork", "--yes", "first", "other"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_life_goes_on_where_the_work_tree_still_holds_it(repo, then):
    """What the last scan relied on is gone, directories of unchanged files too."""
    write_files(repo, {"d/e/conf": f"is {LOUD}".encode()})
    first = ok(repo, "save")["checkpoint"]["id"]
    write_files(repo, {"b.txt": b"b"})
    ok(repo, "save", "-s", "s")
    ok(repo, "purge", "--value-from-stdin", "--yes", input=LOUD.encode())
    run_git(repo, "gc", "-q", "--prune=now")
    ok(repo, *(first if word == "first" else word for word in then))
    sound(repo)


def test_paths_are_taken_out_and_listed_as_not_captured(repo):
    write_files(repo, {"keys/id": b"k1\n", "keys/b/c": b"k2\n", "d.txt": b"d\n"})
    ok(repo, "save", "-m", "one")
    write_files(repo, {"d.txt": b"dd\n"})
    ok(repo, "save", "-m", "two")
    for name in ("keys/id", "keys/b/c"):
        (repo / name).unlink()
    purged = ok(repo, "purge", "keys", "--yes")
    assert [one["seq"] for one in purged["checkpoints"]] == [1, 2]
    assert b"k1\n" not in everything(repo)
    assert b"k2\n" not in everything(repo)
    shown = ok(repo, "show", "1")
    assert shown["skipped"] == [{"path": "keys", "reason": "purged"}]
    sound(repo)


def test_nothing_is_written_by_a_dry_run_or_without_a_yes(repo):
    value, line = sample_secrets()["github"]
    story(repo, value, line)
    refs = git_line(repo, "for-each-ref")
    (secret,) = json.loads(invoke(repo, "scan", "--json").stdout)["secrets"]
    shown = ok(repo, "purge", secret["fingerprint"], "--dry-run")
    assert len(shown["checkpoints"]) == len(checkpoints(repo))
    assert invoke(repo, "purge", secret["fingerprint"]).returncode == 23
    assert git_line(repo, "for-each-ref") == refs
    done = invoke(repo, "purge", secret["fingerprint"], "--dry-run")
    assert value.encode() not in done.stdout + done.stderr


def test_what_no_checkpoint_holds_is_not_found(repo):
    ok(repo, "save")
    assert invoke(repo, "purge", "0" * 12, "--yes").returncode == 13
    assert invoke(repo, "purge", "nowhere.txt", "--yes").returncode == 13
    short = invoke(repo, "purge", "--value-from-stdin", "--yes", input=b"abc\n")
    assert short.returncode == 2
    assert invoke(repo, "purge", "--yes").returncode == 2


def test_it_says_where_else_the_secret_is(repo, tmp_path):
    value, line = sample_secrets()["github"]
    write_files(repo, {"conf.ini": line.encode()})
    commit_all(repo, "oops")
    run_git(tmp_path, "init", "--quiet", "--bare", "r.git")
    run_git(repo, "remote", "add", "origin", str(tmp_path / "r.git"))
    ok(repo, "save")
    pushed = invoke(repo, "push", env={"GITCP_SECRETS": "off"})
    assert pushed.returncode == 0
    purged = ok(repo, "purge", "--value-from-stdin", "--yes", input=value.encode())
    assert purged["remotes"] == ["origin"]
    said = " ".join(purged["left"])
    assert "the work tree: conf.ini" in said
    assert "git's own branches" in said
    # Not gitcp's to change.
    assert value.encode() in run_git(repo, "show", "HEAD:conf.ini")
    assert git_line(repo, "for-each-ref", "refs/gitcp/r") == ""
    sound(repo)


def test_a_remote_tracking_ref_that_a_push_moves_meanwhile_is_removed(
    repo, tmp_path, monkeypatch
):
    """The push beside it sends an old checkpoint, and notes it."""
    run_git(tmp_path, "init", "--quiet", "--bare", "r.git")
    run_git(repo, "remote", "add", "origin", str(tmp_path / "r.git"))
    write_files(repo, {"a.txt": CANARY.encode()})
    ok(repo, "save")
    ok(repo, "push")
    write_files(repo, {"a.txt": f"more {CANARY}".encode()})
    newer = ok(repo, "save")["checkpoint"]["commit"]
    (tracked,) = git_line(
        repo, "for-each-ref", "--format=%(refname)", "refs/gitcp/r"
    ).split()
    real, moved = tracking_refs.reaching, list[str]()

    def late(workspace, old):
        found = real(workspace, old)
        if not moved:
            moved.append(tracked)
            run_git(repo, "update-ref", tracked, newer)
        return found

    monkeypatch.setattr(tracking_refs, "reaching", late)
    purged = ok(repo, "purge", "--value-from-stdin", "--yes", input=CANARY.encode())
    assert purged["remotes"] == ["origin"]
    assert git_line(repo, "for-each-ref", "refs/gitcp/r") == ""
    assert CANARY.encode() not in everything(repo)
    sound(repo)


def test_a_link_in_the_work_tree_that_names_the_secret_is_named(repo):
    (repo / "link").symlink_to(f"nowhere/{CANARY}")
    ok(repo, "save")
    purged = ok(repo, "purge", "--value-from-stdin", "--yes", input=CANARY.encode())
    assert [one for one in purged["left"] if "work tree: link;" in one]
    assert (repo / "link").readlink().name == CANARY


def test_a_value_in_the_name_of_a_session_is_refused_and_nothing_changes(repo):
    ok(repo, "save", "-m", f"x {CANARY}")
    ok(repo, "save", "-s", f"job-{CANARY}", "--allow-empty")
    before = git_line(repo, "for-each-ref", "refs/gitcp/s/main")
    command = ("purge", "--value-from-stdin", "--yes")
    said = fails(repo, 15, *command, input=CANARY.encode())
    assert "the name of job-[purged:" in said
    assert CANARY not in said
    assert git_line(repo, "for-each-ref", "refs/gitcp/s/main") == before
    assert CANARY.encode() in everything(repo)


def test_a_checkpoint_made_here_is_still_one_made_here(repo):
    value, line = sample_secrets()["npm"]
    write_files(repo, {"conf.ini": line.encode(), "Makefile": b"all:\n"})
    ok(repo, "save")
    ok(repo, "purge", "--value-from-stdin", "--yes", input=value.encode())
    (repo / "Makefile").unlink()
    ok(repo, "restore", "1", "--yes")
    # A stranger's would not be brought back without asking.
    assert (repo / "Makefile").exists()


def test_decisions_that_wait_for_a_save_are_cleared_too(repo):
    ok(repo, "save", "-m", f"x {CANARY}")
    ok(repo, "decide", f"use {CANARY}")
    ok(repo, "purge", "--value-from-stdin", "--yes", input=CANARY.encode())
    assert CANARY.encode() not in private(repo)


def test_what_was_purged_here_is_replaced_there_and_does_not_come_back(repo, tmp_path):
    value, line = sample_secrets()["github"]
    run_git(tmp_path, "init", "--quiet", "--bare", "r.git")
    run_git(repo, "remote", "add", "origin", str(tmp_path / "r.git"))
    write_files(repo, {"conf.ini": line.encode()})
    ok(repo, "save")
    (repo / "conf.ini").unlink()
    ok(repo, "save", "-m", "gone")
    assert invoke(repo, "push", env={"GITCP_SECRETS": "off"}).returncode == 0
    ok(repo, "purge", "--value-from-stdin", "--yes", input=value.encode())
    pulled = ok(repo, "pull")
    (branch,) = pulled["branches"]
    assert (branch["result"], "purged" in branch["reason"]) == ("up-to-date", True)
    assert value.encode() not in everything(repo)
    assert invoke(repo, "push").returncode == 12
    (sent,) = ok(repo, "push", "--pruned")["branches"]
    assert sent["commit"] == git_line(repo, "rev-parse", "refs/gitcp/s/main/main")
    there = tmp_path / "r.git"
    assert git_line(there, "rev-parse", "refs/gitcp/s/main/main") == sent["commit"]
    run_git(there, "gc", "--quiet", "--prune=now")
    assert value.encode() not in run_git(
        there, "cat-file", "--batch-all-objects", "--batch"
    )
    assert ok(repo, "push")["branches"][0]["result"] == "up-to-date"
    sound(repo)


def test_what_was_pruned_before_it_was_purged_is_replaced_there_too(repo, tmp_path):
    value, line = sample_secrets()["github"]
    run_git(tmp_path, "init", "--quiet", "--bare", "r.git")
    run_git(repo, "remote", "add", "origin", str(tmp_path / "r.git"))
    ok(repo, "save", "-m", "old")
    write_files(repo, {"conf.ini": line.encode()})
    ok(repo, "save")
    assert invoke(repo, "push", env={"GITCP_SECRETS": "off"}).returncode == 0
    ok(repo, "prune", "--keep-last", "1", "--yes")
    ok(repo, "purge", "--value-from-stdin", "--yes", input=value.encode())
    assert value.encode() not in everything(repo)
    (branch,) = ok(repo, "pull")["branches"]
    assert (branch["result"], "purged" in branch["reason"]) == ("up-to-date", True)
    assert value.encode() not in everything(repo)
    (sent,) = ok(repo, "push", "--pruned")["branches"]
    there = tmp_path / "r.git"
    assert git_line(there, "rev-parse", "refs/gitcp/s/main/main") == sent["commit"]
    sound(repo)


def test_a_stranger_who_says_that_it_was_purged_replaces_nothing(repo, tmp_path):
    value, line = sample_secrets()["github"]
    run_git(tmp_path, "init", "--quiet", "--bare", "r.git")
    run_git(repo, "remote", "add", "origin", str(tmp_path / "r.git"))
    write_files(repo, {"conf.ini": line.encode()})
    ok(repo, "save")
    assert invoke(repo, "push", env={"GITCP_SECRETS": "off"}).returncode == 0
    other = tmp_path / "other"
    run_git(tmp_path, "clone", "--quiet", str(tmp_path / "r.git"), str(other))
    ok(other, "pull")
    ok(other, "purge", "--value-from-stdin", "--yes", input=value.encode())
    ok(other, "push", "--pruned")
    mine = git_line(repo, "rev-parse", "refs/gitcp/s/main/main")
    (branch,) = ok(repo, "pull")["branches"]
    assert branch["result"] == "forked"
    assert git_line(repo, "rev-parse", "refs/gitcp/s/main/main") == mine


@pytest.mark.parametrize("target", ["x" * 3000, "gone", "a.txt"])
def test_a_link_is_purged_wherever_it_leads(repo, target):
    (repo / "link").symlink_to(target)
    write_files(repo, {"a.txt": b"stays"})
    ok(repo, "save")
    done = invoke(repo, "purge", "-y", "link")
    assert done.returncode == 0, done.stderr
    assert b"still in the work tree: link" in done.stderr
    assert b"a.txt" in invoke(repo, "files", "last").stdout.split()
    assert b"link" not in invoke(repo, "files", "last").stdout.split()
    assert (repo / "link").is_symlink()
