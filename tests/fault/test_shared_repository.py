"""Two users of one repository: `core.sharedRepository`, and what belongs to one alone."""

from __future__ import annotations

import json
import os
import shutil
import stat
import struct
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import gitcp
from gitcp.errors import UnsupportedRepositoryError
from gitcp.git.access import Access, parse
from gitcp.project.adapter_store import store_at
from tests.fault.harness import fsck, needs_root
from tests.support.gitrepo import git, git_line
from tests.support.inprocess import invoke
from tests.support.users import GROUP, User

REFS = "refs/gitcp/s/main/main"


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that other users get at: pytest's own is closed to them."""
    where = Path(tempfile.mkdtemp(prefix="gitcp-users-"))
    where.chmod(0o755)
    yield where
    shutil.rmtree(where)


def shared(place: Path, owner: User, setting: str) -> Path:
    repo = place / "repo"
    repo.mkdir()
    os.chown(repo, owner.uid, GROUP)
    repo.chmod(0o2775)
    owner.git(repo, "init", "--quiet", f"--shared={setting}", "-b", "main")
    write(repo, {"a": "a\n", "b": "b\n"})
    owner.git(repo, "add", "--all")
    owner.git(repo, "commit", "--quiet", "-m", "first")
    return repo


def write(repo: Path, files: dict[str, str]) -> None:
    """Files that both may edit; git leaves those of a work tree to the users."""
    for name, text in files.items():
        (repo / name).write_text(text)
    opened(repo)


def opened(repo: Path) -> None:
    for path in repo.iterdir():
        if path.name != ".git":
            os.chown(path, -1, GROUP)
            path.chmod(0o664)


def modes(top: Path, *names: str) -> dict[str, str]:
    return {name: stat.filemode((top / name).stat().st_mode) for name in names}


def checkpoints(repo: Path) -> list[str]:
    out = git_line(repo, "log", "--format=%H", "--committer=gitcp@localhost", REFS)
    return out.split()


@pytest.fixture(autouse=True)
def trusting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests' own git, as root, looks into other users' repositories."""
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "safe.directory")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "*")


# --- git's rules ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, Access()),
        ("", Access()),
        ("umask", Access()),
        ("false", Access()),
        ("0", Access()),
        ("group", Access(0o660)),
        ("true", Access(0o660)),
        ("1", Access(0o660)),
        ("8", Access(0o660)),
        ("all", Access(0o664)),
        ("2", Access(0o664)),
        ("0640", Access(0o640, exact=True)),
        ("0777", Access(0o666, exact=True)),
    ],
)
def test_the_setting_means_what_it_means_to_git(value, expected):
    assert parse(value) == expected


@pytest.mark.parametrize("value", ["0440", "nonsense"])
def test_a_setting_that_git_refuses_is_refused(value):
    with pytest.raises(UnsupportedRepositoryError):
        parse(value)


_SOME = [("group", 0o077), ("all", 0o022), ("0640", 0o002)]
_REST = [
    pytest.param(setting, umask, marks=pytest.mark.slow)
    for setting in ("group", "all", "0660", "0640", "0664", "0600")
    for umask in (0o077, 0o022, 0o002)
    if (setting, umask) not in _SOME
]


@pytest.mark.ref_files
@pytest.mark.parametrize(("setting", "umask"), [*_SOME, *_REST])
def test_refs_and_packs_have_the_modes_that_git_gives(tmp_path, setting, umask):
    """Compared with what git itself makes under the same umask."""
    before = os.umask(umask)
    try:
        repo = tmp_path / "repo"
        git(tmp_path, "init", "-q", "-b", "main", f"--shared={setting}", "repo")
        (repo / "a").write_text("a\n")
        git(repo, "add", "a")
        git(repo, "commit", "-q", "-m", "one")
        git(repo, "update-ref", "refs/by-git/s/main/main", "HEAD")
        git(repo, "repack", "-a", "-d", "-q")
        theirs = next((repo / ".git/objects/pack").glob("*.pack"))
        gitcp.open(repo).session("main").save(note="one")
    finally:
        os.umask(before)
    top = repo / ".git"
    for mine, gits in (("refs/gitcp", "refs/by-git"),):
        for below in ("", "/s", "/s/main", "/s/main/main"):
            pair = [
                stat.S_IMODE((top / (x + below)).stat().st_mode) for x in (mine, gits)
            ]
            assert pair[0] == pair[1], (below, list(map(oct, pair)))
    for path in (top / "objects/pack").iterdir():
        if path.suffix in {".pack", ".idx"}:
            same = theirs.with_suffix(path.suffix)
            assert oct(path.stat().st_mode) == oct(same.stat().st_mode), path
    access = parse(git_line(repo, "config", "core.sharedRepository"))
    for path in (top / "gitcp").rglob("*"):
        if path.is_file() and not path.name.startswith(("key", "seal")):
            granted = path.stat().st_mode & 0o077
            assert granted == access.bits & 0o077, path


# --- two users ------------------------------------------------------------------------


def both_work(place: Path, setting: str, umasks: tuple[int, int]) -> None:
    one, two = (User(place, n, umask=u) for n, u in enumerate(umasks, 1))
    repo = shared(place, one, setting)
    write(repo, {"a": "one\n"})
    one.gitcp(repo, "save", "-m", "by one")
    write(repo, {"a": "two\n", "c": "new\n"})
    two.gitcp(repo, "save", "-m", "by two")
    two.git(repo, "repack", "-a", "-d", "-q")
    one.git(repo, "gc", "-q", "--prune=now")
    opened(repo)
    two.gitcp(repo, "restore", "--yes", "--files", "1")
    opened(repo)
    assert (repo / "a").read_text() == "one\n"
    assert not (repo / "c").exists()
    one.gitcp(repo, "undo", "--yes")
    opened(repo)
    assert (repo / "a").read_text() == "two\n"
    two.gitcp(repo, "decide", "with a reason")
    one.gitcp(repo, "save", "-m", "again")
    held = checkpoints(repo)
    assert len(held) == 5
    two.gitcp(repo, "prune", "--yes", "--keep-last", "2")
    one.gitcp(repo, "gc")
    two.git(repo, "pack-refs", "--all")
    two.git(repo, "gc", "-q", "--prune=now")
    one.git(repo, "repack", "-a", "-d", "-q")
    two.gitcp(repo, "gc")
    for user in (one, two):
        out = user.gitcp(repo, "verify")
        assert "all sound" in out
        user.gitcp(repo, "status")
        assert "again" in user.gitcp(repo, "log")
    fsck(repo)


@needs_root
@pytest.mark.parametrize("umasks", [(0o077, 0o022), (0o022, 0o077)])
def test_both_save_restore_prune_and_collect(place, umasks):
    both_work(place, "group", umasks)


@needs_root
@pytest.mark.slow
@pytest.mark.parametrize("setting", ["all", "0660"])
@pytest.mark.parametrize("umasks", [(0o077, 0o077), (0o022, 0o022), (0o002, 0o077)])
def test_both_work_with_every_setting(place, setting, umasks):
    both_work(place, setting, umasks)


@needs_root
def test_each_has_a_key_of_his_own(place):
    """What the other one sealed counts as made elsewhere (decision 0059)."""
    one, two = (User(place, n, umask=0o077) for n in (1, 2))
    repo = shared(place, one, "group")
    one.gitcp(repo, "save", "-m", "by one")
    write(repo, {"a": "two\n"})
    two.gitcp(repo, "save", "-m", "by two")
    keys = {p.stat().st_uid: p for p in (repo / ".git/gitcp").glob("key*")}
    assert set(keys) == {one.uid, two.uid}
    assert {stat.S_IMODE(p.stat().st_mode) for p in keys.values()} == {0o600}
    foreign = {
        user.uid: json.loads(user.gitcp(repo, "show", "1", "--json"))["checkpoint"][
            "foreign"
        ]
        for user in (one, two)
    }
    assert foreign == {one.uid: False, two.uid: True}


@needs_root
def test_a_key_that_another_member_planted_is_not_believed(place):
    one, two = (User(place, n, umask=0o007) for n in (1, 2))
    repo = shared(place, one, "group")
    one.gitcp(repo, "save", "-m", "by one")
    key = repo / ".git/gitcp" / f"key-{one.uid}"
    key.unlink()
    two.run(repo, "sh", "-c", f"printf %032d 0 > {key}; chmod 644 {key}")
    assert key.read_bytes() == b"0" * 32
    write(repo, {"a": "more\n"})
    one.gitcp(repo, "save", "-m", "more")
    assert key.read_bytes() != b"0" * 32
    assert key.stat().st_uid == one.uid


@needs_root
def test_a_repository_is_shared_afterwards(place):
    """What an earlier gitcp, or one before the setting, wrote is opened by its owner."""
    one, two = (User(place, n, umask=0o077) for n in (1, 2))
    repo = shared(place, one, "group")
    one.git(repo, "config", "core.sharedRepository", "false")
    one.gitcp(repo, "save", "-m", "private")
    one.git(repo, "config", "core.sharedRepository", "group")
    out = two.gitcp(repo, "status", status=17)
    assert "not open to your group" in out
    write(repo, {"a": "more\n"})
    one.gitcp(repo, "save", "-m", "shared")
    two.gitcp(repo, "save", "--allow-empty", "-m", "by two")
    two.git(repo, "repack", "-a", "-d", "-q")
    assert len(checkpoints(repo)) == 3
    one.gitcp(repo, "verify")


@needs_root
def test_without_the_setting_another_users_directory_is_refused_in_words(place):
    one, two = (User(place, n) for n in (1, 2))
    repo = shared(place, one, "umask")
    write(repo, {"a": "a\n"})
    one.gitcp(repo, "save", "-m", "one")
    for command in ("save", "status", "log", "gc", "verify", "restore"):
        out = two.gitcp(repo, command, status=17)
        assert "belongs to another user" in out
        assert "core.sharedRepository" in out


@needs_root
@pytest.mark.parametrize("name", ["key", "numbers.lock", "redo", "scan"])
def test_neither_is_another_users_file_in_ones_own_directory(repo, name):
    gitcp.open(repo).session("main").save(note="one")
    path = repo / ".git/gitcp" / name
    if name == "redo":
        path.mkdir(exist_ok=True)
    os.chown(path, 4_711, -1)
    with pytest.raises(UnsupportedRepositoryError, match=rf"{name} belongs to another"):
        gitcp.open(repo).session("main").save(note="two", allow_empty=True)
    git(repo, "config", "core.sharedRepository", "group")
    gitcp.open(repo).session("main").save(note="two", allow_empty=True)


# --- links and strange places ---------------------------------------------------------


@pytest.mark.parametrize("name", ["", "scan", "redo", "tmp", "packs", "key", "agents"])
def test_a_link_among_gitcps_own_directories_is_refused(tmp_path, repo, name):
    gitcp.open(repo).session("main").save(note="one")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "config").write_text("mine\n")
    link = repo / ".git/gitcp" / name
    if link.is_dir():
        shutil.rmtree(link)
    else:
        link.unlink(missing_ok=True)
    link.symlink_to(elsewhere)
    (repo / "a").write_text("changed\n")
    with pytest.raises(UnsupportedRepositoryError, match="symbolic link"):
        gitcp.open(repo).session("main").save(note="two")
    assert [path.name for path in elsewhere.iterdir()] == ["config"]
    assert (elsewhere / "config").read_text() == "mine\n"


def test_a_link_further_down_is_refused(tmp_path, repo):
    gitcp.open(repo).session("main").save(note="one")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.rmtree(repo / ".git/gitcp/scan/info")
    (repo / ".git/gitcp/scan/info").symlink_to(elsewhere)
    (repo / "a").write_text("changed\n")
    with pytest.raises(UnsupportedRepositoryError, match="symbolic link"):
        gitcp.open(repo).session("main").save(note="two")
    assert not list(elsewhere.iterdir())


def test_a_work_tree_around_the_home_directory_is_refused(repo, monkeypatch):
    home = repo / "users" / "me"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(UnsupportedRepositoryError, match="home directory"):
        gitcp.open(repo)


@pytest.mark.parametrize("work_tree", [None, "..", "../../.."])
def test_a_bare_repository_that_a_project_brings_along_is_not_believed(
    repo, tmp_path, work_tree
):
    tools = repo / "pkg" / "tools"
    git(repo, "init", "--quiet", "--bare", tools)
    if work_tree is not None:
        settings = ("config", "--file", tools / "config")
        git(tmp_path, *settings, "core.bare", "false")
        git(tmp_path, *settings, "core.worktree", work_tree)
    log = tools / "gitcp" / "redo" / "evil.redo"
    log.parent.mkdir(parents=True)
    precious = tmp_path / "precious"
    precious.write_text("mine\n")
    payload = msgspec.msgpack.encode([[[str(precious), None, "41414141"]], []])
    head = struct.pack(">4sII", b"GCR1", len(payload), zlib.crc32(payload))
    log.write_bytes(head + payload)
    for place in (tools, tools / "objects"):
        done = invoke(place, "status")
        assert done.returncode == 17, done
        assert b"bare repository" in done.stderr
    assert precious.read_text() == "mine\n"
    assert log.exists()


def test_a_bare_repository_that_is_named_is_used(tmp_path):
    store = store_at(tmp_path / "store")
    assert store.repository.git("rev-parse", "--is-bare-repository") == b"true\n"
    assert store_at(tmp_path / "store").repository.git_dir == tmp_path / "store"
    assert list(store.refs()) == []


def test_the_inside_of_a_git_directory_is_no_project(repo):
    done = invoke(repo / ".git" / "refs", "status")
    assert done.returncode == 10, done
