"""Each kind of repository, with what git can be told about it, and each feature on SHA-256."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gitcp.maintenance import doctor
from tests.integration.git.test_repositories import round_trip
from tests.support.clones import clone, make_hub
from tests.support.crypt import Key, encrypt_to, holders, reads_with
from tests.support.gitrepo import (
    IDENTITY,
    commit_all,
    git,
    git_line,
    run_gitcp,
    write_files,
)
from tests.support.inprocess import fails, ok
from tests.support.needs import needs_reftable

HOOK = Path(__file__).resolve().parents[3] / "hooks" / "update"
KINDS = ["sha1 reftable", "sha256 files", "sha256 reftable"]
EXTENSIONS = (
    "noop",
    "noop-v1",
    "preciousObjects",
    "relativeWorktrees",
    "submodulePathConfig",
    "worktreeConfig",
)
SECRET = "wombat-7731-is-not-to-be-seen"


@pytest.fixture(params=KINDS)
def top(request, tmp_path) -> Path:
    """A project with two commits."""
    form, storage = request.param.split()
    how = [f"--object-format={form}"]
    if storage != "files":
        needs_reftable()
        how.append(f"--ref-format={storage}")
    top = tmp_path / "r"
    git(tmp_path, "init", "-q", "-b", "main", *how, top)
    for number in range(2):
        write_files(top, {f"{name}/f": b"%d" % number for name in "abc"})
        commit_all(top)
    return top


def test_doctor_says_what_git_s_own_commands_risk_with_tables(top, monkeypatch):
    def tables() -> list[str]:
        checks = ok(top, "doctor")["checks"]
        return [one["detail"] for one in checks if one["name"] == "tables"]

    if not (top / ".git" / "reftable").exists():
        assert tables() == []
        return
    monkeypatch.setattr(doctor, "git_version", lambda _: ((2, 55), "2.55.0"))
    (said,) = tables()
    assert said.startswith("2.55.0 does not sync the end of a table: ")
    monkeypatch.setattr(doctor, "git_version", lambda _: ((3, 1), "3.1.0"))
    (said,) = tables()
    assert said.startswith("whether 3.1.0 syncs the end of a table is not known; 2.55")


def test_a_submodule_that_was_moved_without_git_is_recorded_where_it_is(top):
    """Its configuration leads to where it was: a file lies there now."""
    made = ("-c", "protocol.file.allow=always", "submodule", "-q")
    git(top, *made, "add", str(top), "d/sub")
    head = git_line(top / "d/sub", "rev-parse", "HEAD")
    (top / "d/sub").rename(top / "d/moved")
    write_files(top, {"d/sub": b"a file"})
    saved = ok(top, "save")["checkpoint"]["commit"]
    assert git_line(top, "rev-parse", f"{saved}:d/moved") == head


def test_all_extensions_at_once_and_a_configuration_of_one_work_tree(top, tmp_path):
    git(top, "config", "core.repositoryFormatVersion", "1")
    for name in EXTENSIONS:
        git(top, "config", f"extensions.{name}", "true")
        if not git(top, "rev-parse", "--git-dir", check=False):
            git(top, "config", "-f", ".git/config", "--unset", f"extensions.{name}")
    git(top, "config", "--worktree", "gitcp.maxFileSize", "1k")
    git(top, "worktree", "add", "-q", "--detach", tmp_path / "linked")
    round_trip(top)
    round_trip(tmp_path / "linked")
    write_files(top, {"large": bytes(2048)})
    ok(top, "save")
    assert ok(top, "show", "last")["skipped"] == [
        {"path": "large", "reason": "too-large"}
    ]


def test_git_is_asked_for_two_hashes_and_gitcp_says_no(top):
    form = git_line(top, "rev-parse", "--show-object-format")
    other = "sha1" if form == "sha256" else "sha256"
    git(top, "config", "core.repositoryFormatVersion", "1")
    git(top, "config", "extensions.compatObjectFormat", other)
    before = git(top, "config", "-l", check=False)
    fails(top, 17, "save")
    assert git(top, "config", "-l", check=False) == before


@pytest.mark.parametrize("how", ["sparse", "split", "unhashed"])
def test_indexes_of_every_form(top, how):
    if how == "sparse":
        git(top, "sparse-checkout", "set", "--cone", "--sparse-index", "a")
    elif how == "split":
        git(top, "update-index", "--split-index")
    else:
        git(top, "config", "index.skipHash", "true")
        git(top, "config", "index.version", "4")
    write_files(top, {"a/f": b"staged"})
    git(top, "add", "a/f")
    # Whatever reads a sparse index first writes the trees that it stands for: git does.
    git(top, "ls-files")
    round_trip(top)
    assert (top / "b").exists() == (how != "sparse")


def test_what_is_replaced_or_grafted_is_seen_as_it_is(top):
    head, first = (git_line(top, "rev-parse", name) for name in ("@", "@~1"))
    blob = git_line(top, "rev-parse", "@:a/f")
    git(top, "replace", blob, git_line(top, "rev-parse", "@~1:a/f"))
    git(top, "replace", head, first)
    (top / ".git" / "info").mkdir(exist_ok=True)
    (top / ".git" / "info" / "grafts").write_text(f"{head}\n")
    round_trip(top)
    assert ok(top, "show", "1")["checkpoint"]["base"]["commit"] == head
    assert ok(top, "verify")["problems"] == []


@pytest.mark.parametrize("how", ["--depth=1", "--shared"])
def test_shallow_clones_and_alternates(top, tmp_path, how):
    source = top.as_uri() if how == "--depth=1" else str(top)
    storage = git_line(top, "config", "--default=files", "extensions.refStorage")
    formed = [f"--ref-format={storage}"] if storage != "files" else []
    git(tmp_path, "clone", "-q", how, *formed, source, tmp_path / "clone")
    round_trip(tmp_path / "clone")
    ok(tmp_path / "clone", "export", "1", "-o", str(tmp_path / "file"))


def test_a_commit_is_restored_from_objects_and_nothing_else(top, tmp_path):
    write_files(top, {"a/f": b"saved", "new": b"n"})
    commit = ok(top, "save")["checkpoint"]["commit"]
    git_dir = top / ".git"
    for name in ("HEAD", "config", "packed-refs"):
        (git_dir / name).unlink(missing_ok=True)
    for name in ("refs", "reftable", "gitcp", "logs"):
        shutil.rmtree(git_dir / name, ignore_errors=True)
    out = tmp_path / "out"
    ok(top, "restore", commit, "--to", str(out), "-y", "--trust")
    assert (out / "a" / "f").read_bytes() == b"saved"
    assert (out / "new").read_bytes() == b"n"


@pytest.fixture
def explicit(tmp_path, monkeypatch) -> None:
    """Has git believe no bare repository that is not named, and make SHA-256 ones."""
    place = tmp_path / "gitconfig"
    place.write_text(
        "[safe]\n\tbareRepository = explicit\n[init]\n\tdefaultObjectFormat = sha256\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(place))
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")


def entry(number: int) -> Any:
    uuid = f"00000000-0000-4000-8000-{number:012d}"
    return {"type": "user", "uuid": uuid, "n": number}


@pytest.mark.usefixtures("explicit")
@pytest.mark.parametrize("bare", [True, False])
def test_the_sdks_store_where_bare_repositories_are_not_believed(tmp_path, bare):
    sdk = pytest.importorskip("gitcp.adapters.claude_sdk", reason="gitcp[claude]")
    place = tmp_path / "store"
    if not bare:
        git(tmp_path, "init", "-q", place)
    key: Any = {
        "project_key": "-shop",
        "session_id": "6f0a7a3e-8d5e-4c2b-9b0d-000000000001",
    }
    for number in range(3):
        asyncio.run(sdk.GitcpSessionStore(place).append(key, [entry(number)]))
    store = sdk.GitcpSessionStore(place)
    assert asyncio.run(store.load(key)) == [entry(number) for number in range(3)]
    git_dir = place if bare else place / ".git"
    found = git(place, f"--git-dir={git_dir}", "rev-parse", "--show-object-format")
    assert found == (b"sha256\n" if not bare else found)
    git(place, f"--git-dir={git_dir}", "fsck", "--strict", "--no-dangling")
    asyncio.run(store.delete(key))
    assert asyncio.run(sdk.GitcpSessionStore(place).load(key)) is None


@pytest.mark.usefixtures("explicit")
@pytest.mark.parametrize("bare", [True, False])
def test_langgraphs_store_where_bare_repositories_are_not_believed(tmp_path, bare):
    pytest.importorskip("langgraph.graph", reason="gitcp[langgraph] is not installed")
    from tests.support.graphs import at, chain, everything, opened

    place = tmp_path / "store"
    if not bare:
        git(tmp_path, "init", "-q", place)
    with opened(place) as saver:
        chain(saver, "t", 5)
        chain(saver, "other", 2)
        before = everything(saver)
        saver.compact()
    with opened(place) as saver:
        assert everything(saver) == before
        saver.delete_thread("other")
        assert saver.get_tuple(at("other")) is None
        assert len(saver.get_tuple(at("t")).checkpoint["channel_values"]) > 0
    git_dir = place if bare else place / ".git"
    git(place, f"--git-dir={git_dir}", "fsck", "--strict", "--no-dangling")


@pytest.fixture
def team(tmp_path, monkeypatch) -> tuple[Path, Path, Path]:
    """Two clones of a hub, all with SHA-256, and gitcp's hook at the hub."""
    monkeypatch.setenv("GIT_DEFAULT_HASH", "sha256")
    hub = make_hub(tmp_path)
    shutil.copy(HOOK, hub / "hooks" / "update")
    monkeypatch.delenv("GIT_DEFAULT_HASH")
    return hub, clone(hub, "ann"), clone(hub, "bob")


def test_the_servers_hook_takes_what_grows_and_nothing_else(team):
    hub, ann, bob = team
    write_files(ann, {"a.py": b"1"})
    ok(ann, "save", "-s", "vat")
    how = ("-s", "vat", "--step", "tell", "--effect", "irreversible")
    assert run_gitcp(ann, "run", *how, "--", "true").returncode == 0
    ok(ann, "push")
    ref = "refs/gitcp/s/vat/main"
    there = git(hub, "--git-dir=.", "for-each-ref", ref)
    for refspec in (f":{ref}", f"+HEAD:{ref}"):
        done = subprocess.run(
            ["git", *IDENTITY, "push", "-q", "origin", refspec],
            cwd=ann,
            capture_output=True,
            check=False,
        )
        assert done.returncode != 0, refspec
    assert git(hub, "--git-dir=.", "for-each-ref", ref) == there
    ok(bob, "pull")
    assert [one["state"] for one in ok(bob, "steps", "-s", "vat")["steps"]] == ["done"]


def test_what_is_encrypted_is_opened_at_the_other_side(team, tmp_path):
    pytest.importorskip("pyrage", reason="the extra gitcp[crypt] is not installed")
    hub, ann, bob = team
    keys = Key(tmp_path, "ann-key"), Key(tmp_path, "bob-key")
    for repo, key in zip((ann, bob), keys, strict=True):
        encrypt_to(repo, *keys)
        reads_with(repo, key)
    talk = f'{{"role":"user","content":"{SECRET}"}}\n'.encode()
    ok(ann, "save", "-s", "vat", "--messages", "-", input=talk)
    ok(ann, "push")
    assert holders(ann, SECRET.encode())
    assert not holders(hub, SECRET.encode())
    ok(bob, "pull")
    assert ok(bob, "show", "vat:last")["checkpoint"]["conversation"]["messages"] == 1
    write_files(bob, {"a.py": b"2"})
    ok(bob, "switch", "vat")
    ok(bob, "save")
    ok(bob, "push")
    ok(ann, "pull")
    assert ok(ann, "verify")["problems"] == []


def test_what_is_purged_pruned_and_collected_is_gone(tmp_path):
    top = tmp_path / "r"
    git(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256", top)
    for number in range(6):
        write_files(top, {"f": f"{number} {SECRET}".encode(), "g": b"%d" % number})
        ok(top, "save", "-m", f"{number}")
    ok(top, "purge", "--value-from-stdin", "--yes", input=SECRET.encode() + b"\n")
    assert not holders(top, SECRET.encode())
    assert ok(top, "verify")["problems"] == []
    ok(top, "prune", "--keep-last", "2", "--yes")
    ok(top, "gc")
    git(top, "gc", "-q", "--prune=now")
    assert len(ok(top, "log", "--full")["checkpoints"]) == 2
    assert ok(top, "verify")["problems"] == []
    ok(top, "restore", "-y", "5")
    assert (top / "g").read_bytes() == b"4"
    git(top, "fsck", "--strict", "--no-dangling")
