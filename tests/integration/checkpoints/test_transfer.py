"""`gitcp export` and `import`: a session in a file, and nothing unchecked from one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.gitrepo import (
    git,
    git_line,
    make_repo,
    run_gitcp,
    tree_bytes,
    write_files,
)


def save(repo: Path, *args: str) -> dict:
    done = run_gitcp(repo, "save", "--json", *args, input=b'{"role":"user"}\n')
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["checkpoint"]


def take(repo: Path, file: Path) -> list[dict]:
    done = run_gitcp(repo, "import", "--json", file)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["branches"]


def refs(repo: Path) -> bytes:
    return git(repo, "for-each-ref")


@pytest.fixture
def file(repo, tmp_path) -> Path:
    """A session `main` with two branches."""
    write_files(repo, {"one": b"1"})
    save(repo, "--messages", "-", "-m", "first")
    write_files(repo, {"two": b"2\r\n"})
    save(repo, "-m", "second")
    assert run_gitcp(repo, "fork", "1", "other", "--no-switch").returncode == 0
    path = tmp_path / "session.bundle"
    done = run_gitcp(repo, "export", "last", "-o", path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture
def other(tmp_path) -> Path:
    return make_repo(tmp_path / "elsewhere")


def test_a_session_comes_back_in_another_repository(repo, file, other):
    adopted = take(other, file)
    assert [(one["branch"], one["result"]) for one in adopted] == [
        ("main", "created"),
        ("other", "created"),
    ]
    assert (
        run_gitcp(other, "restore", "main/main:2", "--yes", "--trust").returncode == 0
    )
    assert tree_bytes(other) == tree_bytes(repo)
    assert run_gitcp(other, "verify").returncode == 0
    git(other, "gc", "-q", "--prune=now")
    git(other, "fsck", "--strict")
    assert run_gitcp(other, "verify").returncode == 0


def test_a_second_import_changes_nothing(file, other):
    take(other, file)
    before = refs(other)
    assert {one["result"] for one in take(other, file)} == {"up-to-date"}
    assert refs(other) == before


def test_what_grew_there_only_is_fast_forwarded(repo, file, other):
    take(other, file)
    write_files(repo, {"three": b"3"})
    third = save(repo)
    newer = file.with_name("newer.bundle")
    assert run_gitcp(repo, "export", "last", "-o", newer).returncode == 0
    adopted = take(other, newer)
    assert adopted[0]["result"] == "fast-forward"
    assert git_line(other, "rev-parse", "refs/gitcp/s/main/main") == third["commit"]
    assert take(repo, file)[0]["result"] == "up-to-date"


def test_what_grew_on_both_sides_becomes_a_fork_once(repo, file, other):
    take(other, file)
    assert (
        run_gitcp(other, "restore", "main/main:2", "--yes", "--trust").returncode == 0
    )
    write_files(repo, {"three": b"3"})
    save(repo)
    newer = file.with_name("newer.bundle")
    assert run_gitcp(repo, "export", "last", "-o", newer).returncode == 0
    ours = git_line(other, "rev-parse", "refs/gitcp/s/main/main")
    main, _ = take(other, newer)
    assert (main["result"], main["as"]) == ("forked", "main~import")
    assert git_line(other, "rev-parse", "refs/gitcp/s/main/main") == ours
    assert run_gitcp(other, "cat", "main/main~import:last", "three").stdout == b"3"
    assert run_gitcp(other, "verify").returncode == 0
    before = refs(other)
    assert take(other, newer)[0]["result"] == "up-to-date"
    assert refs(other) == before


def test_an_existing_file_is_not_replaced(repo, file):
    raw = file.read_bytes()
    assert run_gitcp(repo, "export", "last", "-o", file).returncode == 18
    assert file.read_bytes() == raw
    assert run_gitcp(repo, "export", "last", "-o", file, "--force").returncode == 0
    left = [path.name for path in file.parent.iterdir() if path.name.startswith(".")]
    assert left == []


def refused(other: Path, path: Path) -> int:
    before = refs(other), tree_bytes(other / ".git" / "objects")
    done = run_gitcp(other, "import", path)
    assert done.returncode != 0
    assert done.stderr.startswith(b"gitcp: ")
    assert b"Traceback" not in done.stderr
    assert (refs(other), tree_bytes(other / ".git" / "objects")) == before
    assert list((other / ".git" / "gitcp").glob("tmp/*")) == []
    return done.returncode


def test_a_damaged_file_is_refused_whole(file, other):
    raw = file.read_bytes()
    for name, data in {
        "cut": raw[:-50],
        "flipped": raw[: len(raw) // 2]
        + bytes([raw[len(raw) // 2] ^ 4])
        + raw[len(raw) // 2 + 1 :],
        "text": b"not a bundle\n",
        "empty": b"",
    }.items():
        path = file.with_name(name)
        path.write_bytes(data)
        assert refused(other, path) == 21, name


def test_a_bundle_without_a_session_is_refused(repo, other, tmp_path):
    path = tmp_path / "plain.bundle"
    git(repo, "bundle", "create", "-q", path, "main")
    assert refused(other, path) == 21


def forge(repo: Path, listing: bytes, path: Path) -> None:
    commit = git(repo, "cat-file", "commit", "refs/gitcp/s/main/main")
    tree = git(repo, "mktree", input=listing).strip()
    raw = commit.replace(commit.split(b"\n")[0], b"tree " + tree, 1)
    oid = git(
        repo, "hash-object", "--literally", "-t", "commit", "-w", "--stdin", input=raw
    )
    git(repo, "update-ref", "refs/gitcp/s/main/main", oid.decode().strip())
    path.unlink()
    git(repo, "bundle", "create", "-q", path, "refs/gitcp/s/main/main")


def test_a_hostile_path_is_refused(repo, file, other):
    blob = git(repo, "hash-object", "-w", "--stdin", input=b"x").strip()
    listing = git(repo, "ls-tree", "refs/gitcp/s/main/main")
    # git's own fsck knows .git; a stream of NTFS it may let pass.
    forge(repo, listing + b"100644 blob " + blob + b"\t.git::$x\n", file)
    assert refused(other, file) in {19, 21}


def test_a_name_too_long_for_any_file_system_is_unsafe(repo, file, other):
    blob = git(repo, "hash-object", "-w", "--stdin", input=b"x").strip()
    listing = git(repo, "ls-tree", "refs/gitcp/s/main/main")
    forge(repo, listing + b"100644 blob " + blob + b"\t" + b"n" * 300 + b"\n", file)
    assert refused(other, file) == 19


def test_a_forged_checkpoint_is_refused(repo, file, other):
    blob = git(repo, "hash-object", "-w", "--stdin", input=b"sneaked in").strip()
    listing = git(repo, "ls-tree", "refs/gitcp/s/main/main")
    forge(repo, listing + b"100644 blob " + blob + b"\tsneaked\n", file)
    assert refused(other, file) == 15


# --- what leaves in a file is scanned, as what is pushed ------------------------

SECRET = "k3J9dLq0" + "Xz7Yv3Wn5Bt1"


@pytest.fixture
def telling(repo) -> Path:
    """A session in which a tool has printed a value of `.env`."""
    write_files(
        repo, {".gitignore": b".env\n", ".env": f"API_TOKEN={SECRET}\n".encode()}
    )
    said = json.dumps({"role": "user", "content": f"it says {SECRET}"}).encode() + b"\n"
    assert run_gitcp(repo, "save", "--messages", "-", input=said).returncode == 0
    return repo


def test_a_file_with_a_secret_is_not_written(telling, tmp_path):
    path = tmp_path / "session.bundle"
    done = run_gitcp(telling, "export", "last", "-o", path, "--json")
    assert done.returncode == 24, done
    assert not list(tmp_path.glob("*session.bundle*"))
    (secret,) = json.loads(done.stderr)["error"]["secrets"]
    assert [place["kind"] for place in secret["places"]] == ["conversation"]
    assert SECRET.encode() not in done.stdout + done.stderr
    # What stands there already stays.
    path.write_bytes(b"mine")
    assert run_gitcp(telling, "export", "last", "-o", path, "--force").returncode == 24
    assert path.read_bytes() == b"mine"
    allow = ("--allow", secret["fingerprint"])
    done = run_gitcp(telling, "export", "last", "-o", path, "--force", "--json", *allow)
    assert done.returncode == 0, done.stderr
    (named,) = json.loads(done.stdout)["secrets"]
    assert named["fingerprint"] == secret["fingerprint"]
    assert path.stat().st_size > 100


@pytest.mark.parametrize("mode", ["warn", "off"])
def test_a_file_with_a_secret_is_written_where_the_setting_says_so(
    telling, tmp_path, mode
):
    git(telling, "config", "gitcp.secrets", mode)
    done = run_gitcp(telling, "export", "last", "-o", tmp_path / "session.bundle")
    assert done.returncode == 0, done.stderr
    assert (b"env-value" in done.stderr) == (mode == "warn")


def test_what_is_written_is_what_was_looked_through(repo, tmp_path, other, monkeypatch):
    """A save between the look and the bundle does not come along unseen."""
    from gitcp.project.workspace import open_workspace
    from gitcp.sync import bundles as transfer

    save(repo, "-m", "first", "--allow-empty")
    workspace = open_workspace(repo)
    bundled = transfer._bundle

    def meanwhile(*given):
        save(repo, "-m", "second", "--allow-empty")
        bundled(*given)

    monkeypatch.setattr(transfer, "_bundle", meanwhile)
    chosen = workspace.store.tip("main", "main")
    assert chosen is not None
    path = tmp_path / "session.bundle"
    transfer.export(workspace, chosen, path)
    (taken,) = take(other, path)
    assert taken["commit"] == chosen.commit
    assert git_line(repo, "rev-parse", "refs/gitcp/s/main/main") != chosen.commit
