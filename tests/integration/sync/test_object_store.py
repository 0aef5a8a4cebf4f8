"""Sessions go through an object store, here a directory, as they do through git."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from gitcp.remotes import object_store
from gitcp.remotes.directory import Directory
from tests.support.clones import results, save
from tests.support.crypt import Key, encrypt_to, reads_with
from tests.support.gitrepo import git, make_repo
from tests.support.inprocess import invoke, ok


@pytest.fixture
def store(tmp_path) -> str:
    directory = tmp_path / "store"
    directory.mkdir()
    return f"file://{directory}"


def document_of(store: str, session: str = "main", branch: str = "main") -> Path:
    top = Path(store.removeprefix("file://"))
    return top / "sessions" / session / "branches" / f"{branch}.json"


def packs_of(store: str) -> list[Path]:
    return sorted(Path(store.removeprefix("file://"), "packs").iterdir())


def test_a_session_goes_there_and_comes_back(ann, bob, store):
    saved = save(ann, a_py=b"two")
    assert results(ann, "push", store) == {"main/main": ("created", "main")}
    assert ok(ann, "remote-sessions", store)["sessions"][0]["name"] == "main"
    assert results(bob, "pull", store) == {"main/main": ("created", "main")}
    assert ok(bob, "log")["checkpoints"][0]["id"] == saved["id"]
    # A stranger's: what a tool runs needs trust.
    assert ok(bob, "show", "last")["checkpoint"]["id"] == saved["id"]
    save(ann, a_py=b"three")
    assert results(ann, "push", store)["main/main"][0] == "fast-forward"
    assert results(ann, "push", store)["main/main"][0] == "up-to-date"
    assert results(bob, "pull", store)["main/main"][0] == "fast-forward"
    ok(bob, "restore", "last", "--yes")
    assert (bob / "a.py").read_bytes() == b"three"
    assert ok(bob, "verify")["ok"]


def test_the_url_of_a_git_remote_may_be_one(ann, bob, store):
    for repo in (ann, bob):
        git(repo, "remote", "add", "shelf", store)
        git(repo, "config", "gitcp.remote", "shelf")
    save(ann)
    assert results(ann, "push")["main/main"][0] == "created"
    assert results(bob, "pull")["main/main"][0] == "created"


def test_where_two_grew_one_branch_the_second_becomes_a_fork(ann, bob, store):
    save(ann, a_py=b"two")
    ok(ann, "push", store)
    ok(bob, "pull", store)
    ok(bob, "switch", "main")
    save(bob, a_py=b"bob's")
    ok(bob, "push", store)
    save(ann, a_py=b"ann's")
    before = document_of(store).read_bytes()
    assert invoke(ann, "push", store).returncode == 12
    assert document_of(store).read_bytes() == before
    git(ann, "config", "user.name", "Ann Lee")
    assert results(ann, "push", "--fork", store) == {
        "main/main": ("forked", "main~ann"),
        "main/main~ann": ("created", "main~ann"),
    }
    assert results(bob, "pull", store)["main/main~ann"] == ("created", "main~ann")
    assert document_of(store).read_bytes() == before


def test_a_pack_stands_on_what_a_git_remote_has_and_a_reader_without_it_is_told(
    ann, bob, store, tmp_path
):
    save(ann, a_py=b"two")
    ok(ann, "push", store)
    anchor = git(ann, "rev-parse", "origin/main").decode().strip()
    [pack] = json.loads(document_of(store).read_bytes())["packs"]
    assert pack["anchors"] == [anchor]
    stranger = make_repo(tmp_path / "stranger", {"other": b"1"})
    before = git(stranger, "count-objects", "-v")
    refused = invoke(stranger, "pull", store)
    assert refused.returncode == 21
    assert f"commit {anchor}, which is missing here" in refused.stderr.decode()
    assert git(stranger, "count-objects", "-v") == before


def test_without_a_git_remote_the_pack_is_whole(ann, store, tmp_path):
    git(ann, "remote", "remove", "origin")
    save(ann, a_py=b"two")
    ok(ann, "push", store)
    stranger = make_repo(tmp_path / "stranger", {"other": b"1"})
    assert results(stranger, "pull", store)["main/main"][0] == "created"
    assert ok(stranger, "verify")["ok"]


def test_many_pushes_leave_few_packs_and_a_reader_anywhere_goes_on(ann, bob, store):
    for number in range(12):
        save(ann, a_py=b"%d" % number * 300)
        ok(ann, "push", store)
        if number in {0, 4, 11}:
            assert results(bob, "pull", store)["main/main"][0] in {
                "created",
                "fast-forward",
            }
    assert len(json.loads(document_of(store).read_bytes())["packs"]) < 8
    assert ok(bob, "verify")["ok"]
    assert (
        ok(bob, "log")["checkpoints"][0]["id"]
        == (ok(ann, "log")["checkpoints"][0]["id"])
    )


def test_a_pack_that_is_not_what_its_document_says_is_refused(ann, bob, store):
    save(ann, a_py=b"two")
    ok(ann, "push", store)
    [pack] = packs_of(store)
    raw = pack.read_bytes()
    for damaged in (raw[:-1], raw[:-1] + bytes([raw[-1] ^ 1])):
        pack.chmod(0o600)
        pack.write_bytes(damaged)
        refused = invoke(bob, "pull", store)
        assert refused.returncode == 21, refused
        assert b"does not match its document" in refused.stderr
    pack.unlink()
    assert b"lacks packs" in invoke(bob, "pull", store).stderr


@pytest.mark.parametrize(
    "change",
    [
        b"",
        b"[]",
        b'{"format":1}',
        b'{"format":2}',
        b'{"format":1,"hash":"sha1","tip":"..","packs":[]}',
        b'{"format":1,"x":%b%b}' % (b"[" * 5_000, b"]" * 5_000),
    ],
)
def test_a_document_that_cannot_be_used_is_left_alone(ann, bob, store, change):
    save(ann, "-s", "good")
    ok(ann, "push", store)
    bad = document_of(store, "bad")
    bad.parent.mkdir(parents=True)
    bad.write_bytes(change)
    pulled = invoke(bob, "pull", store)
    assert pulled.returncode == 0
    assert b"refs/gitcp/s/bad/main" in pulled.stderr
    save(ann, "-s", "bad")
    refused = invoke(ann, "push", store, "bad")
    assert refused.returncode == 12
    assert b"cannot be used" in refused.stderr
    assert bad.read_bytes() == change


def test_a_line_of_another_branch_is_not_taken(ann, bob, store):
    save(ann)
    ok(ann, "push", store)
    other = document_of(store, "other")
    other.parent.mkdir(parents=True)
    other.write_bytes(document_of(store).read_bytes())
    refused = invoke(bob, "pull", store, "other")
    assert refused.returncode == 15
    assert b"is a checkpoint of another branch" in refused.stderr


def test_more_than_a_pull_may_bring_is_not_fetched(ann, bob, store):
    save(ann, a_py=b"two")
    ok(ann, "push", store)
    refused = invoke(bob, "pull", store, env={"GITCP_PULL_MAX_SIZE": "100"})
    assert refused.returncode == 21
    assert b"pullMaxSize" in refused.stderr


def test_documents_are_listed_up_to_a_number_of_bytes(ann, bob, store, monkeypatch):
    """Each is small enough to be read, but all of them are kept in memory."""
    save(ann)
    ok(ann, "push", store)
    for number in range(3):
        more = document_of(store, f"s{number}")
        more.parent.mkdir(parents=True)
        more.write_bytes(b"x" * 1_000)
    monkeypatch.setattr(object_store, "_LISTED_BYTES", 3_000)
    refused = invoke(bob, "pull", store)
    assert refused.returncode == 21
    assert b"more than 3,000 bytes of them" in refused.stderr
    monkeypatch.setattr(object_store, "_LISTED_BYTES", 4_000)
    ok(bob, "pull", store)


def test_a_directory_of_other_things_is_refused(ann, hub, tmp_path):
    for directory, hint in (
        (hub, b"git remote add"),
        (ann, b"git remote add"),
        (tmp_path / "none", b"mkdir"),
        (tmp_path, b"an empty directory"),
    ):
        refused = invoke(ann, "push", f"file://{directory}")
        assert refused.returncode == 2
        assert hint in refused.stderr


def test_a_purge_takes_the_packs_away_too(ann, store):
    save(ann, key_txt=b"not for others\n")
    ok(ann, "push", store)
    [before] = packs_of(store)
    (ann / "key.txt").unlink()
    save(ann)
    ok(ann, "purge", "key.txt", "--yes")
    assert results(ann, "push", store, "--pruned")["main/main"][0] == "pruned"
    assert before not in packs_of(store)


def test_packs_that_nothing_names_go_after_a_day_by_the_stores_clock(ann, bob, store):
    save(ann, a_py=b"two")
    ok(ann, "push", store)
    kept = packs_of(store)
    young, old = (kept[0].with_name(f"{digit * 32}.pack") for digit in "ab")
    for orphan in (young, old):
        orphan.write_bytes(b"torn")
    a_day_ago = old.stat().st_mtime - 24 * 3600 - 1
    for pack in (old, *kept):
        os.utime(pack, (a_day_ago, a_day_ago))
    assert ok(ann, "gc", "--remote", store, "--dry-run")["removed"] == 1
    assert old.exists()
    done = ok(ann, "gc", "--remote", store)
    assert (done["removed"], done["bytes"], done["kept"], done["waiting"]) == (
        *(1, 4),
        *(1, 1),
    )
    assert packs_of(store) == sorted([*kept, young])
    assert results(bob, "pull", store)["main/main"][0] == "created"


@pytest.mark.parametrize("data", [b"torn", b'{"format":2}'])
def test_nothing_is_collected_beside_what_cannot_be_read(ann, store, data):
    save(ann)
    ok(ann, "push", store)
    [pack] = packs_of(store)
    os.utime(pack, (0, 0))
    document_of(store).chmod(0o600)
    document_of(store).write_bytes(data)
    assert invoke(ann, "gc", "--remote", store).returncode in {15, 16}
    document_of(store).rename(document_of(store).with_suffix(".txt"))
    assert invoke(ann, "gc", "--remote", store).returncode == 15
    assert pack.exists()


def test_a_git_remote_is_not_collected(ann):
    assert invoke(ann, "gc", "--remote", "origin").returncode == 2
    assert invoke(ann, "gc", "--remote", "origin", "--auto").returncode == 2
    assert invoke(ann, "gc", "--dry-run").returncode == 2


def test_what_is_encrypted_lies_there_encrypted_and_only_its_reader_opens_it(
    ann, bob, store, tmp_path
):
    key = Key(tmp_path, "key")
    encrypt_to(ann, key)
    saved = save(ann, "-m", "the-note-is-private")
    ok(ann, "push", store)
    save(ann, a_py=b"more")
    assert results(ann, "push", store)["main/main"][0] == "fast-forward"
    assert invoke(bob, "pull", store).returncode != 0
    reads_with(bob, key)
    assert results(bob, "pull", store)["main/main"][0] == "created"
    assert ok(bob, "show", "last~1")["checkpoint"]["id"] == saved["id"]
    tip = json.loads(document_of(store).read_bytes())["tip"]
    assert tip != git(bob, "rev-parse", "refs/gitcp/s/main/main").decode().strip()


def test_a_document_is_replaced_only_if_it_is_as_expected(tmp_path):
    place = Directory(tmp_path, patience=5)
    first = place.swap("sessions/a.json", b"1", None)
    assert first is not None
    assert place.swap("sessions/a.json", b"2", None) is None
    second = place.swap("sessions/a.json", b"2", first)
    assert second is not None
    assert place.swap("sessions/a.json", b"3", first) is None
    assert place.read("sessions/a.json", 10) == (b"2", second)
    assert place.swap("sessions/b.json", b"3", first) is None
    assert place.read("sessions/b.json", 10) is None


def test_a_pipe_in_the_store_is_refused_and_not_waited_for(ann, bob, store):
    save(ann)
    ok(ann, "push", store)
    document = document_of(store)
    document.unlink()
    os.mkfifo(document)
    refused = invoke(bob, "pull", store)
    assert refused.returncode == 21
    assert b"main.json is not a regular file" in refused.stderr


def test_a_bucket_without_its_library_says_how_to_get_it(ann, monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore", None)
    save(ann)
    refused = invoke(ann, "push", "s3://shelf/team")
    assert refused.returncode == 21
    assert b"pip install 'gitcp[objectstore]'" in refused.stderr
