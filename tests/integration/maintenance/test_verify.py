"""`gitcp verify`: damage is found, named, kept to itself, and repaired if it can be."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import gitcp
from tests.support.damage import explode, loose
from tests.support.gitrepo import (
    git,
    git_line,
    gitcp_environment,
    run_gitcp,
    write_files,
)
from tests.support.inprocess import fails, invoke, ok

CORRUPT = 15


def damage_in_pack(repo: Path, oid: str) -> None:
    """Flips a bit in the middle of an object in gitcp's pack."""
    for index in (repo / ".git/objects/pack").glob("*.idx"):
        listed = git(repo, "verify-pack", "-v", str(index)).decode()
        for line in listed.splitlines():
            if line.startswith(oid):
                size, at = int(line.split()[3]), int(line.split()[4])
                flip(index.with_suffix(".pack"), at + size // 2 + 1)
                return
    raise LookupError(oid)


def save(repo: Path, *args: str) -> dict:
    done = run_gitcp(repo, "save", "--json", *args)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["checkpoint"]


def verify(repo: Path, *args: str) -> tuple[int, dict]:
    done = run_gitcp(repo, "verify", "--json", *args)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.chmod(0o644)
    path.write_bytes(data)


def three(repo: Path) -> list[dict]:
    made = []
    for number in (1, 2, 3):
        write_files(
            repo, {"notes.txt": b"turn %d\n" % number, f"only{number}": os.urandom(200)}
        )
        (repo.parent / "chat").write_text(f'{{"n":{number}}}\n')
        made.append(
            save(repo, "-m", f"turn {number}", "--append", "../chat", "--decision", "d")
        )
    return made


def test_a_sound_store_is_sound(repo):
    three(repo)
    assert run_gitcp(repo, "fork", "1", "other", "--no-switch").returncode == 0
    status, found = verify(repo)
    assert status == 0
    assert found == {
        "schema": "gitcp.verify/1",
        "checked": 4,
        "ok": True,
        "problems": [],
        "doubts": {"found": 0, "complete": True},
        "repaired": [],
        "moved": [],
        "set_aside": [],
    }


def test_an_unknown_session_is_not_found(repo):
    three(repo)
    assert run_gitcp(repo, "verify", "nothere").returncode == 13
    assert verify(repo, "main/main")[1]["checked"] == 3


def test_a_flipped_bit_in_a_loose_blob_is_named_and_others_are_checked(repo):
    first, second, third = three(repo)
    explode(repo)
    oid = git_line(repo, "rev-parse", f"{second['commit']}:only2")
    flip(loose(repo, oid), -3)
    os.unlink(repo / "only2")
    status, found = verify(repo)
    assert status == CORRUPT
    assert found["checked"] == 3
    assert {one["checkpoint"] for one in found["problems"]} == {
        second["id"],
        third["id"],  # only2 was still there at the third
    }
    assert {one["path"] for one in found["problems"]} == {"only2"}
    assert all(oid in one["problem"] for one in found["problems"])
    # The sound one can still be restored.
    assert run_gitcp(repo, "restore", first["id"], "--yes").returncode == 0


def test_a_bit_flipped_anywhere_in_a_pack_never_passes_as_content(repo):
    three(repo)
    packs = repo / ".git" / "objects" / "pack"
    git(repo, "repack", "-a", "-d", "-q")
    (pack,) = packs.glob("pack-*.pack")
    sound = pack.read_bytes()
    for at in range(20, len(sound) - 20, max(1, len(sound) // 25)):
        flip(pack, at)
        status, found = verify(repo)
        # Headers of objects no checkpoint needs may be hit: then git fsck agrees.
        if status == 0:
            assert found["ok"]
        else:
            assert status == CORRUPT
            assert found["problems"]
        pack.write_bytes(sound)
    assert verify(repo)[0] == 0


@pytest.mark.parametrize("what", ["blob", "tree", "checkpoint", "segment", "commit"])
def test_each_kind_of_object_lost_is_reported(repo, what):
    _, second, _ = three(repo)
    explode(repo)
    commit = second["commit"]
    spec = {
        "blob": f"{commit}:notes.txt",
        "tree": f"{commit}^{{tree}}",
        "checkpoint": f"{commit}:.gitcp/checkpoint.json",
        "segment": f"{commit}:.gitcp/log/conversation/main/0000/01.jsonl",
        "commit": commit,
    }[what]
    oid = git_line(repo, "rev-parse", spec)
    loose(repo, oid).unlink()
    status, found = verify(repo)
    assert status == CORRUPT
    assert any(oid in one["problem"] for one in found["problems"])
    assert found["checked"] == (2 if what == "commit" else 3)
    # One cause is one problem at each checkpoint that it touches.
    seen = [one["checkpoint"] for one in found["problems"]]
    assert len(seen) == len(set(seen)), json.dumps(found["problems"], indent=1)


@pytest.mark.parametrize("spec", ["", ":.gitcp/checkpoint.json"])
def test_a_damaged_tip_does_not_hide_the_other_branches(repo, spec):
    *_, third = three(repo)
    run_gitcp(repo, "save", "--allow-empty", "-s", "other")
    explode(repo)
    loose(repo, git_line(repo, "rev-parse", f"{third['commit']}{spec}")).unlink()
    for command in (["sessions"], ["log", "--all"], ["branches", "-s", "other"]):
        done = run_gitcp(repo, *command, "--json")
        assert done.returncode == 0, done.stderr
        assert b"the newest checkpoint of main/main is damaged" in done.stderr
        document = json.loads(done.stdout)
        assert "other" in json.dumps(document.get("checkpoints", document))


def test_a_restore_of_a_damaged_checkpoint_is_refused_untouched(repo):
    _, second, _ = three(repo)
    explode(repo)
    oid = git_line(repo, "rev-parse", f"{second['commit']}:notes.txt")
    flip(loose(repo, oid), -3)
    done = run_gitcp(repo, "restore", second["id"], "--yes")
    assert done.returncode == CORRUPT
    assert b"notes.txt" in done.stderr
    assert (repo / "notes.txt").read_bytes() == b"turn 3\n"


def test_repair_takes_the_file_from_the_work_tree(repo):
    *_, third = three(repo)
    explode(repo)
    oid = git_line(repo, "rev-parse", f"{third['commit']}:only3")
    loose(repo, oid).unlink()
    status, found = verify(repo, "--repair")
    assert (status, found["ok"]) == (0, True)
    assert [one["path"] for one in found["repaired"]] == ["only3"]
    assert verify(repo)[0] == 0
    assert git(repo, "cat-file", "blob", oid) == (repo / "only3").read_bytes()


def test_repair_replaces_a_damaged_object(repo):
    *_, third = three(repo)
    explode(repo)
    oid = git_line(repo, "rev-parse", f"{third['commit']}:only3")
    flip(loose(repo, oid), -3)
    assert verify(repo, "--repair")[0] == 0
    assert verify(repo)[0] == 0


@pytest.mark.parametrize("kind", ["blob", "tree", "commit"])
def test_repair_reports_what_the_next_command_finds(repo, kind):
    # The damaged copy stays in its pack, and is the first that libgit2 comes to.
    kept = random.Random(1).randbytes(20_000)
    (repo / "b").write_bytes(kept)
    first = save(repo)
    (repo / "b").write_bytes(b"other")
    save(repo)
    oid = {
        "blob": git_line(repo, "rev-parse", f"{first['commit']}:b"),
        "tree": git_line(repo, "rev-parse", f"{first['commit']}^{{tree}}"),
        "commit": first["commit"],
    }[kind]
    whole = git(repo, "cat-file", kind, oid)
    damage_in_pack(repo, oid)
    assert verify(repo)[0] == CORRUPT
    if kind == "blob":
        (repo / "b").write_bytes(kept)
    else:
        # `git hash-object` writes nothing that a pack seems to have.
        path = loose(repo, oid)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(zlib.compress(f"{kind} {len(whole)}\0".encode() + whole))
    done = invoke(repo, "verify", "--repair", "--json")
    assert (done.returncode, json.loads(done.stdout)["problems"]) == (0, [])
    assert verify(repo)[0] == 0
    assert run_gitcp(repo, "cat", "1", "b").stdout == kept


def test_repair_says_what_it_cannot_do(repo):
    _, second, _ = three(repo)
    explode(repo)
    oid = git_line(repo, "rev-parse", f"{second['commit']}:notes.txt")
    loose(repo, oid).unlink()
    done = run_gitcp(repo, "verify", "--repair")
    assert done.returncode == CORRUPT
    assert b"notes.txt" in done.stdout
    assert b"cannot be repaired" in done.stderr


def rewrite(repo: Path, commit: str, path: str, data: bytes) -> None:
    """Points the branch at a forged commit: `path` of `commit` holds `data`."""
    env = {"GIT_INDEX_FILE": str(repo / ".git" / "forged")}
    git(repo, "read-tree", commit, env=env)
    blob = git(repo, "hash-object", "-w", "--stdin", input=data).decode().strip()
    info = f"100644,{blob},{path}"
    git(repo, "update-index", "--add", "--cacheinfo", info, env=env)
    tree = git_line(repo, "write-tree", env=env)
    raw = git(repo, "cat-file", "commit", commit)
    forged = raw.replace(raw.split(b"\n")[0], b"tree " + tree.encode(), 1)
    oid = git(repo, "hash-object", "-t", "commit", "-w", "--stdin", input=forged)
    git(repo, "update-ref", "refs/gitcp/s/main/main", oid.decode().strip())


@pytest.mark.parametrize(
    ("path", "data", "says"),
    [
        (".gitcp/checkpoint.json", b"{}", "damaged"),
        (".gitcp/log/conversation/main/0000/01.jsonl", b'{"n":7}\n', "digest"),
        (".gitcp/log/conversation/main/0000/07.jsonl", b'{"n":7}\n', "segment"),
        (".gitcp/log/conversation/main/meta.json", b"no\n", "meta.json"),
        (".gitcp/log/decisions/main/0000/02.jsonl", b"no\n", "decision log"),
        (".gitcp/skipped.jsonl", b'{"path":"x","reason":"y"}\n', "lines"),
        ("sneaked", b"in", "another tree"),
    ],
)
def test_what_does_not_belong_together_is_found(repo, path, data, says):
    *_, third = three(repo)
    rewrite(repo, third["commit"], path, data)
    status, found = verify(repo)
    assert status == CORRUPT
    assert {one["checkpoint"] for one in found["problems"]} == {third["id"]}
    assert any(says in one["problem"] for one in found["problems"]), found


def test_an_unsafe_name_in_a_tree_is_found(repo):
    *_, third = three(repo)
    blob = git(repo, "hash-object", "-w", "--stdin", input=b"x").decode().strip()
    inner = f"100644 blob {blob}\tconfig\n".encode()
    sub = git(repo, "mktree", input=inner).decode().strip()
    listing = git(repo, "ls-tree", third["commit"])
    raw = listing + f"040000 tree {sub}\t.GIT\n".encode()
    tree = git(repo, "mktree", input=raw).decode().strip()
    commit = git(repo, "cat-file", "commit", third["commit"])
    forged = commit.replace(commit.split(b"\n")[0], b"tree " + tree.encode(), 1)
    oid = git(repo, "hash-object", "-t", "commit", "-w", "--stdin", input=forged)
    git(repo, "update-ref", "refs/gitcp/s/main/main", oid.decode().strip())
    status, found = verify(repo)
    assert status == CORRUPT
    assert any(".GIT" in one["path"] for one in found["problems"])


def test_a_gap_in_the_numbers_is_found(repo):
    first, _, third = three(repo)
    raw = git(repo, "cat-file", "commit", third["commit"])
    lines = raw.split(b"\n")
    lines[1] = b"parent " + first["commit"].encode()
    oid = git(
        repo, "hash-object", "-t", "commit", "-w", "--stdin", input=b"\n".join(lines)
    )
    git(repo, "update-ref", "refs/gitcp/s/main/main", oid.decode().strip())
    status, found = verify(repo)
    assert status == CORRUPT
    assert any("(I3)" in one["problem"] for one in found["problems"])


def test_damaged_scan_state_is_no_problem_and_repair_removes_it(repo):
    three(repo)
    scan = repo / ".git" / "gitcp" / "scan"
    for path in scan.iterdir():
        if path.is_file():
            path.write_bytes(zlib.compress(b"not it"))
    assert verify(repo, "--repair")[0] == 0
    assert run_gitcp(repo, "save", "-m", "still works").returncode == 0


# What a power cut, or an interrupted copy, leaves of a ref's file.
DAMAGED = pytest.mark.parametrize(
    "left",
    [b"", b"\0" * 41, b"6a1", b"garbage\n"],
    ids=["empty", "zeros", "short", "garbage"],
)


def damage(repo: Path, name: str, left: bytes) -> None:
    (repo / ".git" / name).write_bytes(left)


@pytest.mark.ref_files
@DAMAGED
def test_a_damaged_ref_does_not_read_as_a_branch_that_is_not_there(repo, left):
    """No new branch replaces it, and nothing of it is removed."""
    for number in range(3):
        write_files(repo, {"a.txt": b"%d" % number})
        ok(repo, "save", "-m", str(number))
    ok(repo, "save", "-s", "other", "--allow-empty")
    ok(repo, "switch", "main")
    name = "refs/gitcp/s/main/main"
    tip = git_line(repo, "rev-parse", name)
    damage(repo, name, left)
    write_files(repo, {"a.txt": b"more"})
    for words in (
        ["save"],
        ["log"],
        ["restore", "last", "-y"],
        ["gc"],
    ):
        done = invoke(repo, *words)
        assert done.returncode != 0, words
        assert b"Traceback" not in done.stderr
    assert (repo / ".git" / name).read_bytes() == left
    assert name in fails(repo, 15, "save")
    (problem,) = json.loads(invoke(repo, "verify", "--json").stdout)["problems"]
    assert problem["path"] == name
    assert "--lost" in problem["problem"]
    # Others are served.
    assert ok(repo, "log", "-s", "other")["checkpoints"]
    assert invoke(repo, "verify", "--lost").returncode == 15
    ok(repo, "verify", "--lost", "--repair")
    assert git_line(repo, "rev-parse", name) == tip
    assert ok(repo, "save")["checkpoint"]["seq"] == 4
    assert ok(repo, "verify")["ok"]


@pytest.mark.ref_files
@DAMAGED
def test_a_ledger_whose_ref_is_damaged_is_not_taken_for_none(repo, left):
    """What was done is not done again; and it is found again."""
    did: list[int] = []
    session = gitcp.open(repo).session("job")
    session.step("pay", lambda: did.append(1))
    session.step("mail", lambda: did.append(2))
    session.flush()
    name = "refs/gitcp/fx/job"
    tip = git_line(repo, "rev-parse", name)
    damage(repo, name, left)
    with pytest.raises(gitcp.CorruptError, match=name):
        gitcp.open(repo).session("job").step("pay", lambda: did.append(3))
    assert name in fails(repo, 15, "steps", "-s", "job")
    (found,) = json.loads(invoke(repo, "verify", "--lost", "--json").stdout)["ledgers"]
    assert found == {"session": "job", "commit": tip, "last": 4}
    assert b"job (steps)  4 records" in invoke(repo, "verify", "--lost").stdout
    ok(repo, "verify", "--lost", "--repair")
    assert git_line(repo, "rev-parse", name) == tip
    gitcp.open(repo).session("job").step("pay", lambda: did.append(3))
    assert did == [1, 2]


@pytest.mark.ref_files
def test_the_redo_log_knows_what_a_damaged_ref_held(repo):
    """Both are what a power cut leaves."""
    program = (
        "import gitcp, os\n"
        "session = gitcp.open('.').session('job')\n"
        "session.step('one', lambda: 1)\n"
        "session.flush()\n"
        "session.step('two', lambda: 2)\n"
        "os._exit(0)"
    )
    subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=repo,
        env=gitcp_environment(),
        check=True,
    )
    assert list((repo / ".git" / "gitcp" / "redo").glob("*.redo"))
    damage(repo, "refs/gitcp/fx/job", b"")
    assert [one["name"] for one in ok(repo, "steps", "-s", "job")["steps"]] == [
        "one",
        "two",
    ]
    assert ok(repo, "verify")["ok"]


@pytest.mark.ref_files
def test_a_langgraph_thread_does_not_replace_a_damaged_ref(repo):
    pytest.importorskip("langgraph.checkpoint.base", reason="not installed")
    from tests.support.graphs import at, opened, put

    with opened(repo) as saver:
        put(saver, at("t"), {"n": 1})
    damage(repo, "refs/gitcp/s/langgraph-t/main", b"")
    with opened(repo) as saver:
        for call in (lambda: saver.get_tuple(at("t")), lambda: put(saver, at("t"), {})):
            with pytest.raises(gitcp.CorruptError, match="does not name a commit"):
                call()
    ok(repo, "verify", "--lost", "--repair")
    with opened(repo) as saver:
        assert saver.get_tuple(at("t")).checkpoint["channel_values"] == {"n": 1}
