"""A session goes in a file from a repository with one hash to one with the other."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from gitcp.format import tree as trees
from gitcp.format.oid import SHA1, SHA256
from gitcp.format.tree import DIRECTORY, FILE, GITLINK, Entry
from gitcp.git.discover import discover
from gitcp.git.objects import BLOB, COMMIT, TREE
from gitcp.git.transaction import transaction
from gitcp.project.workspace import open_workspace
from tests.support.clones import MESSAGES
from tests.support.gitrepo import Entry as Node
from tests.support.gitrepo import (
    Executable,
    Symlink,
    commit_all,
    git,
    git_line,
    make_repo,
    run_gitcp,
    tree_bytes,
    write_files,
)
from tests.support.inprocess import fails, invoke, ok
from tests.support.templates import once, place_of

COMPAT = Path(__file__).parents[1] / "compat"
FILES: dict[str, Node] = {
    "crlf": b"a\r\n\0",
    "run": Executable(b"#!/bin/sh\n"),
    "link": Symlink(b"crlf"),
    "d/e/f": b"",
    ".env": b"X=1\n",
}


def other_form(top: Path, form: str = "sha256") -> Path:
    git(top.parent, "init", "-q", "-b", "main", f"--object-format={form}", top)
    return top


def step(top: Path, name: str) -> None:
    how = ("-s", "work", "--step", name, "--effect", "irreversible")
    done = run_gitcp(top, "run", *how, "--", "true")
    assert done.returncode == 0, done.stderr


def carried(here: Path, there: Path, session: str = "work") -> list[str]:
    """Carries a session across; returns what became of its ledger and its branches."""
    file = here.parent / "file"
    ok(here, "export", f"{session}:last", "-o", str(file), "--force")
    done = ok(there, "import", str(file))
    assert done["converted_from"] == git_line(here, "rev-parse", "--show-object-format")
    git(there, "fsck", "--strict", "--no-dangling")
    assert ok(there, "verify")["problems"] == []
    return [one["result"] for one in [*done["ledgers"], *done["branches"]]]


def make_here(place: Path, form: str) -> Path:
    """A session of three checkpoints on two branches, with a conversation and a step."""
    top = other_form(place / "here", form)
    write_files(top, {"f": b"0", "crlf": b"before"})
    commit_all(top)
    # Bytes in which the scan for secrets finds nothing to decode.
    write_files(top, {**FILES, "large": bytes(range(0xE0, 0x100)) * 320_000})
    (top / "empty").mkdir()
    chat = place / "chat"
    chat.write_bytes(MESSAGES)
    ok(top, "save", "-s", "work", "--messages", str(chat), "--decision", "a table")
    step(top, "ask")
    write_files(top, {"f": b"1"})
    ok(top, "save", "-m", "second")
    ok(top, "fork", "1", "side", "-y")
    return top


MAKE_HERE = {form: partial(make_here, form=form) for form in ("sha1", "sha256")}


@pytest.fixture(params=MAKE_HERE)
def here(request) -> Path:
    return once(place_of("convert"), MAKE_HERE[request.param])


@pytest.fixture
def there(here, tmp_path) -> Path:
    theirs = git_line(here, "rev-parse", "--show-object-format")
    form = "sha1" if theirs == "sha256" else "sha256"
    return other_form(tmp_path / "there", form)


def test_files_and_conversation_are_the_same_and_new_commits_say_what_they_were(
    here, there
):
    carried(here, there)
    for number in ("1", "2"):
        mine = ok(here, "show", f"work/main:{number}")["checkpoint"]
        theirs = ok(there, "show", f"work/main:{number}")["checkpoint"]
        (way,) = theirs["converted"]
        assert way["commit"] == mine["commit"] != theirs["commit"]
        assert way["base"] == mine["base"]["commit"] == git_line(here, "rev-parse", "@")
        assert theirs["base"]["commit"] is None
        for field in ("id", "seq", "created", "note", "conversation", "decisions"):
            assert theirs[field] == mine[field]
        assert theirs["foreign"]
    ok(here, "restore", "-y", "work/main:2")
    ok(there, "restore", "-y", "--trust", "work/main:2")
    assert tree_bytes(there) == tree_bytes(here)
    talks = [
        invoke(top, "messages", "work:last", "--format", "jsonl").stdout
        for top in (here, there)
    ]
    assert talks == [MESSAGES, MESSAGES]
    # The step counts as done there, too.
    assert [one["state"] for one in ok(there, "steps", "-s", "work")["steps"]] == [
        "done"
    ]


def test_a_second_import_changes_nothing(here, there):
    assert carried(here, there) == ["created"] * 3
    before = git(there, "for-each-ref")
    assert carried(here, there) == ["up-to-date"] * 3
    assert git(there, "for-each-ref") == before


def test_what_went_there_and_back_is_what_it_was(here, there):
    carried(here, there)
    before = git(here, "for-each-ref")
    assert carried(there, here) == ["up-to-date"] * 3
    assert git(here, "for-each-ref") == before
    # What was made there goes on from it, and stays what was made elsewhere.
    ok(there, "switch", "work/main", "--restore", "-y", "--trust")
    write_files(there, {"g": b"theirs"})
    ok(there, "save")
    step(there, "tell")
    ok(there, "save", "--allow-empty")
    assert carried(there, here) == ["fast-forward", "fast-forward", "up-to-date"]
    store = open_workspace(here).store
    tip = store.tip("work", "main")
    assert tip is not None
    foreign = [one.origin.foreign for one in store.line(tip)]
    assert foreign == [True] * (len(foreign) - 2) + [False] * 2
    assert len(foreign) > 3
    ok(here, "switch", "work/main", "--restore", "-y")
    write_files(here, {"h": b"ours again"})
    ok(here, "save")
    assert carried(here, there)[:2] == ["up-to-date", "fast-forward"]
    ok(there, "restore", "-y", "work/main:last", "--trust")
    assert tree_bytes(there) == tree_bytes(here)


def test_where_both_grew_theirs_becomes_a_fork(here, there):
    carried(here, there)
    ok(there, "switch", "work/main", "--restore", "-y", "--trust")
    for top in (here, there):
        ok(top, "switch", "work/main", "--restore", "-y", "--trust")
        write_files(top, {"g": str(top).encode()})
        ok(top, "save")
    assert "forked" in carried(here, there)
    assert ok(there, "show", "work/main~import:last")["checkpoint"]["foreign"]


def forge(top: Path, ref: str) -> None:
    """Gives the tip of a branch other files, and leaves what else it says."""
    repository = discover(top)
    objects = repository.objects
    tip = bytes.fromhex(git_line(top, "rev-parse", ref))
    commit = objects.commit(tip)
    with transaction(repository) as txn:
        files = dict(objects.tree(commit.tree))
        own = dict(objects.tree(files.pop(b".gitcp").oid))
        files[b"f"] = Entry(FILE, txn.add_object(BLOB, b"evil"))
        manifest = json.loads(objects.blob(own[b"checkpoint.json"].oid))
        manifest["files"]["tree"] = objects.form.oid(TREE, trees.encode(files)).hex()
        made = txn.add_object(BLOB, json.dumps(manifest).encode())
        own[b"checkpoint.json"] = Entry(FILE, made)
        files[b".gitcp"] = Entry(DIRECTORY, txn.add_object(TREE, trees.encode(own)))
        root = txn.add_object(TREE, trees.encode(files))
        raw = objects.read(tip, COMMIT)
        new = txn.add_commit(
            raw.replace(commit.tree.hex().encode(), root.hex().encode())
        )
        txn.store()
    git(top, "update-ref", ref, new.hex())


def test_what_says_that_it_is_ours_is_not_believed(here, there, tmp_path):
    """A commit there that names ours, and has other files, is a fork, made elsewhere."""
    carried(here, there)
    ref = "refs/gitcp/s/work/main"
    forge(there, ref)
    assert carried(there, here) == ["up-to-date", "forked", "up-to-date"]
    shown = ok(here, "show", "work/main~import:last")["checkpoint"]
    assert shown["foreign"]
    assert not ok(here, "show", "work/main:last")["checkpoint"]["foreign"]


@pytest.mark.sha1
def test_a_nested_repository_is_left_out_and_listed(tmp_path):
    here = make_repo(tmp_path / "here", {"f": b"1"})
    inner = make_repo(here / "sub", {"g": b"1"})
    head = git_line(inner, "rev-parse", "@")
    # A submodule that is not checked out is in HEAD only, and in no list.
    git(here, "update-index", "--add", "--cacheinfo", f"160000,{head},d/gone")
    git(here, "commit", "-q", "-m", "submodule")
    (here / "d" / "gone").mkdir(parents=True)
    ok(here, "save", "-s", "work")
    assert b"160000" in git(here, "ls-tree", "-r", "refs/gitcp/s/work/main")
    there = other_form(tmp_path / "there")
    carried(here, there)
    assert ok(there, "show", "1")["skipped"] == [
        {"path": "d/gone", "reason": "submodule"},
        {"path": "sub", "reason": "nested-repository"},
    ]
    assert carried(there, here) == ["up-to-date"]


def test_limits_and_rules_for_what_comes_from_elsewhere_hold(here, there):
    git(there, "config", "gitcp.pullMaxFile", "1m")
    file = here.parent / "file"
    ok(here, "export", "work:last", "-o", str(file))
    assert "a file of 10,240,000 bytes" in fails(there, 21, "import", str(file))
    git(there, "config", "gitcp.pullMaxFile", "100m")
    git(there, "config", "gitcp.pullMaxObjects", "10")
    assert "pullMaxObjects" in fails(there, 21, "import", str(file))
    assert git(there, "for-each-ref") == b""
    damaged = file.read_bytes()[:-100]
    file.write_bytes(damaged)
    fails(there, 21, "import", str(file))
    assert git(there, "for-each-ref") == b""


def bundle(top: Path, root: bytes, file: Path) -> None:
    """Exports a checkpoint whose files are this tree."""
    workspace = open_workspace(top)
    tip = workspace.store.tip("work", "main")
    assert tip is not None
    entries = {
        **workspace.repository.objects.tree(root),
        b".gitcp": workspace.repository.objects.tree(tip.raw.tree)[b".gitcp"],
    }
    with transaction(workspace.repository) as txn:
        oid = txn.add_object(TREE, trees.encode(entries))
        raw = workspace.repository.objects.read(tip.oid, COMMIT)
        commit = txn.add_commit(
            raw.replace(tip.raw.tree.hex().encode(), oid.hex().encode())
        )
        txn.store()
    git(top, "update-ref", "refs/gitcp/s/work/main", commit.hex())
    git(top, "bundle", "create", "-q", file, "refs/gitcp/s/work/main")


@pytest.mark.sha1
@pytest.mark.parametrize("kind", ["gitlinks", "paths", "deep", "unsafe"])
def test_a_bomb_of_another_form_is_refused(tmp_path, kind):
    here = make_repo(tmp_path / "here", {"f": b"1"})
    ok(here, "save", "-s", "work")
    with transaction(discover(here)) as txn:
        entry = Entry(FILE, txn.add_object(BLOB, b"x"))
        if kind == "gitlinks":
            entry = Entry(GITLINK, b"\x11" * 20)
        name = b".git" if kind == "unsafe" else b"f"
        oid = txn.add_object(TREE, trees.encode({name: entry}))
        for _ in range(600 if kind == "deep" else 12 if kind != "unsafe" else 0):
            names = [b"d"] if kind == "deep" else [b"%d" % one for one in range(10)]
            below = dict.fromkeys(names, Entry(DIRECTORY, oid))
            oid = txn.add_object(TREE, trees.encode(below))
        txn.store()
    file = tmp_path / "file"
    bundle(here, oid, file)
    there = other_form(tmp_path / "there")
    # Newer gits refuse the name themselves.
    expected = {"gitlinks": {15}, "paths": {21}, "deep": {19}, "unsafe": {19, 21}}
    assert invoke(there, "import", str(file)).returncode in expected[kind]
    assert git(there, "for-each-ref") == b""


@pytest.mark.parametrize("form", [SHA1, SHA256])
def test_conversion_gives_the_commits_that_it_always_gave(tmp_path, form):
    """tests/compat/, never regenerated: else what is imported twice would fork."""
    expected = json.loads((COMPAT / "convert-1.json").read_text())[form.name]
    there = tmp_path / "there"
    other_form(there, "sha256" if form is SHA1 else "sha1")
    ok(there, "import", str(COMPAT / f"convert-{form.name}.bundle"))
    lines = git(there, "for-each-ref", "--format=%(refname) %(objectname)")
    assert dict(line.split() for line in lines.decode().splitlines()) == expected
    ok(there, "restore", "-y", "--trust", "work/main:1")
    assert tree_bytes(there)[b"crlf"] == ("file", 0, b"a\r\n\0")
