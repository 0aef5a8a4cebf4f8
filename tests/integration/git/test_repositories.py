"""Every kind of repository: served with the user's own state untouched, or refused."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gitcp.git import reflog
from gitcp.git.discover import discover
from gitcp.git.reflog import HeadMove
from gitcp.githooks import events
from tests.support.clones import make_hub
from tests.support.gitrepo import (
    Env,
    Executable,
    commit_all,
    git,
    git_line,
    make_repo,
    tree_bytes,
    users_refs,
    write_files,
)
from tests.support.inprocess import invoke, ok
from tests.support.needs import needs_owners, needs_reftable


def refused(cwd: Path, *args: str, exit: int) -> str:  # noqa: A002
    done = invoke(cwd, *args)
    said = done.stderr.decode()
    assert done.returncode == exit, (args, done.stdout, said)
    assert done.stdout == b""
    assert said.startswith("gitcp: ")
    assert "Traceback" not in said
    assert len(said.splitlines()) <= 2
    return said


def users_own(git_dir: Path) -> dict[str, bytes]:
    """All that is in a git directory, except what gitcp may write (I8)."""
    found = {}
    for directory, names, files in os.walk(git_dir):
        where = Path(directory)
        relative = where.relative_to(git_dir)
        if relative.name == "reftable":
            found[relative.as_posix()] = users_refs(where.parent)
            continue
        if relative.name == "gitcp" and relative.parts[:2] != ("refs", "gitcp"):
            names.clear()
            continue
        if relative.as_posix() == "refs" and "gitcp" in names:
            names.remove("gitcp")
        if relative.as_posix() == "objects/pack":
            continue
        for name in files:
            if name == "gitcp-numbers":
                continue
            path = where / name
            found[path.relative_to(git_dir).as_posix()] = path.read_bytes()
    return found


def round_trip(top: Path, env: Env | None = None) -> None:
    """Saves, wrecks, restores, undoes and forks; the user's own state never changes."""
    git_dir = Path(git_line(top, "rev-parse", "--path-format=absolute", "--git-dir"))
    common = Path(
        git_line(top, "rev-parse", "--path-format=absolute", "--git-common-dir")
    )
    write_files(top, {"new/untracked": b"\r\n\0", "run": Executable(b"#!/bin/sh\n")})
    (top / "empty").mkdir(exist_ok=True)
    first = tree_bytes(top)
    state = users_own(common)
    index = git_dir / "index"
    stamp = index.stat() if index.exists() else None
    saved = ok(top, "save", "-m", "one", env=env)["checkpoint"]
    write_files(top, {"new/untracked": b"wrecked", "other": b"x"})
    (top / "run").unlink()
    second = tree_bytes(top)
    restored = ok(top, "restore", "-y", saved["id"], env=env)
    assert tree_bytes(top) == first
    assert restored["checkpoint"]["restored_from"] == saved["id"]
    ok(top, "undo", "-y", env=env)
    assert tree_bytes(top) == second
    ok(top, "fork", "-y", saved["id"], "aside", env=env)
    assert tree_bytes(top) == first
    assert ok(top, "save", env=env)["created"] is False
    assert users_own(common) == state
    if stamp is not None:
        now = index.stat()
        assert (now.st_ino, now.st_mtime_ns) == (stamp.st_ino, stamp.st_mtime_ns)
    git(top, "fsck", "--strict", "--no-dangling")


# --- served -----------------------------------------------------------------------


def test_hands_off_a_repository_in_full_use(repo, git):
    write_files(repo, {"README.md": b"stashed\n"})
    git("stash")
    write_files(repo, {"README.md": b"staged\n", "staged": b"s\n"})
    git("add", "README.md", "staged")
    write_files(repo, {"README.md": b"staged and changed\n"})
    git("tag", "v1")
    git("update-index", "--refresh", check=False)
    before = git("status", "--porcelain=v2", "--branch", "--show-stash")
    round_trip(repo)
    git("clean", "-qfd", "new", "run", "empty")
    assert git("status", "--porcelain=v2", "--branch", "--show-stash") == before
    assert git_line(repo, "show", ":README.md") == "staged"


def test_unborn(tmp_path):
    top = make_repo(tmp_path / "r")
    round_trip(top)
    assert ok(top, "show", "1")["checkpoint"]["base"]["commit"] is None
    assert git_line(top, "symbolic-ref", "HEAD") == "refs/heads/main"


def test_nothing_at_all(tmp_path):
    top = make_repo(tmp_path / "r")
    saved = ok(top, "save")
    assert saved["created"] is True
    assert saved["checkpoint"]["files"]["tree"] is None
    write_files(top, {"a": b"1"})
    ok(top, "restore", "-y", "1")
    assert tree_bytes(top) == {}
    ok(top, "undo", "-y")
    assert list(tree_bytes(top)) == [b"a"]


@pytest.mark.parametrize("commits", [0, 1])
def test_sha256(tmp_path, commits):
    top = tmp_path / "r"
    git(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256", top)
    if commits:
        write_files(top, {"f": b"1", "d/g": b"2", "large": bytes(9 * 1024 * 1024)})
        commit_all(top)
    round_trip(top)
    saved = ok(top, "show", "1")["checkpoint"]
    assert len(saved["commit"]) == len(saved["files"]["tree"]) == 64
    assert ok(top, "show", saved["commit"][:50])["checkpoint"]["id"] == saved["id"]
    assert ok(top, "verify")["problems"] == []


@pytest.mark.parametrize(
    "extension",
    ["noop-v1", "preciousObjects", "relativeWorktrees", "submodulePathConfig",
     "worktreeConfig"],
)  # fmt: skip
def test_extensions(repo, tmp_path, extension):
    configured(repo, f"extensions.{extension}", "true")
    if not git(repo, "rev-parse", "--git-dir", check=False):
        assert "git here does not know the format" in refused(repo, "save", exit=17)
        return
    round_trip(repo)
    git(repo, "worktree", "add", "-q", "--detach", tmp_path / "linked")
    round_trip(tmp_path / "linked")
    ok(repo, "gc")
    assert ok(repo, "verify")["problems"] == []


@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_reftable(tmp_path, form):
    needs_reftable()
    top = tmp_path / "r"
    how = [f"--object-format={form}", "--ref-format=reftable"]
    git(tmp_path, "init", "-q", "-b", "main", *how, top)
    write_files(top, {"f": b"1", "d/g": b"2"})
    commit_all(top)
    round_trip(top)
    ok(top, "save", "--allow-empty")
    ok(top, "prune", "--keep-last", "1", "--yes")
    assert ok(top, "verify")["problems"] == []
    git(tmp_path, "init", "-q", *how, top / "nested")
    write_files(top, {"nested/f": b"1"})
    head = commit_all(top / "nested")
    commit = ok(top, "save")["checkpoint"]["commit"]
    assert git_line(top, "rev-parse", f"{commit}:nested") == head
    git(top, "worktree", "add", "-q", "--detach", tmp_path / "linked")
    round_trip(tmp_path / "linked")


@pytest.mark.parametrize("storage", ["files", "reftable"])
def test_what_the_log_of_head_says_is_the_same_wherever_it_is(tmp_path, storage):
    how = []
    if storage != "files":
        needs_reftable()
        how = [f"--ref-format={storage}"]
    top = tmp_path / "r"
    git(tmp_path, "init", "-q", "-b", "main", *how, top)
    assert reflog.moves(discover(top), 5) == []
    first = commit_all(top, "one")
    git(top, "commit", "-q", "--amend", "--allow-empty", "-m", "two")
    second = git_line(top, "rev-parse", "HEAD")
    expected = [
        HeadMove(first, second, "commit (amend): two"),
        HeadMove(None, first, "commit (initial): one"),
    ]
    assert reflog.moves(discover(top), 5) == expected
    assert reflog.moves(discover(top), 1) == expected[:1]
    assert events._last_move(discover(top)) == expected[0]


def test_detached(repo, git):
    git("checkout", "-q", "--detach", "HEAD~1")
    round_trip(repo)
    base = ok(repo, "show", "1")["checkpoint"]["base"]
    assert base == {"commit": git_line(repo, "rev-parse", "HEAD"), "branch": None,
                    "operation": None}  # fmt: skip


def conflict(repo: Path) -> None:
    git(repo, "checkout", "-q", "-b", "theirs", "HEAD~1")
    write_files(repo, {"src/pkg/main.py": b"print('three')\n"})
    commit_all(repo, "theirs")
    git(repo, "checkout", "-q", "main")


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("merge", ("merge", "theirs")),
        ("rebase", ("rebase", "theirs")),
        ("cherry-pick", ("cherry-pick", "theirs")),
        ("revert", ("revert", "--no-edit", "HEAD~1")),
        ("bisect", ("bisect", "start")),
    ],
)
def test_in_the_middle_of(repo, operation, arguments):
    conflict(repo)
    if operation == "revert":
        write_files(repo, {"src/pkg/main.py": b"print('four')\n"})
        commit_all(repo, "third")
    git(repo, *arguments, check=False)
    dry = invoke(repo, "save")
    assert dry.returncode == 0
    assert ok(repo, "show")["checkpoint"]["base"]["operation"] == operation
    write_files(repo, {"x": b""})
    asked = invoke(repo, "restore", "1", "--dry-run")
    assert f"a {operation} is in progress".encode() in asked.stdout
    (repo / "x").unlink()
    round_trip(repo)


def test_linked_worktree(repo, git, tmp_path):
    ok(repo, "save", "-s", "job/first")
    other = tmp_path / "other"
    git("worktree", "add", "-q", other)
    # Its own current session in the same store.
    assert ok(other, "save")["checkpoint"]["session"] == "other"
    round_trip(other)
    names = {one["name"]: one for one in ok(repo, "sessions")["sessions"]}
    assert set(names) == {"job", "other"}
    assert names["job"]["current"] is True
    assert ok(repo, "show", "last")["checkpoint"]["branch"] == "first"
    assert ok(other, "show", "job/first:1")["checkpoint"]["session"] == "job"
    round_trip(repo)


def test_submodule(repo, git, tmp_path):
    inner = make_repo(tmp_path / "inner", {"f": b"inner\n"})
    git("-c", "protocol.file.allow=always", "submodule", "add", "-q", inner, "sub")
    git("commit", "-qm", "submodule")
    write_files(repo, {"sub/f": b"dirty\n", "sub/g": b"untracked\n"})
    before = tree_bytes(repo / "sub")
    round_trip(repo)
    assert tree_bytes(repo / "sub") == before
    shown = ok(repo, "show", "1")
    assert {"path": "sub", "reason": "submodule"} in shown["skipped"]
    # From inside of it, it is a project of its own.
    round_trip(repo / "sub")


def test_nested_repositories_are_never_entered(repo):
    make_repo(repo / "born", {"f": b"1"})
    make_repo(repo / "unborn")
    write_files(repo, {"unborn/g": b"2"})
    before = [tree_bytes(repo / name) for name in ("born", "unborn")]
    round_trip(repo)
    ok(repo, "restore", "-y", "1", "born")
    assert [tree_bytes(repo / name) for name in ("born", "unborn")] == before
    assert (repo / "born" / ".git" / "HEAD").exists()


@pytest.mark.parametrize("cone", [True, False])
def test_sparse_checkout(tmp_path, cone):
    top = make_repo(tmp_path / "r", {f"{d}/f": b"%c" % d.encode() for d in "abc"})
    git(top, "sparse-checkout", "set", "--cone" if cone else "--no-cone", "a")
    assert not (top / "b").exists()
    saved = ok(top, "save")["checkpoint"]
    listed = [one["path"] for one in ok(top, "files", "1")["files"]]
    assert listed == ["a/f", "b/f", "c/f"]
    round_trip(top)
    assert not (top / "b").exists()
    write_files(top, {"a/f": b"changed"})
    ok(top, "restore", "-y", saved["id"])
    assert not (top / "b").exists()
    assert [one["path"] for one in ok(top, "files")["files"]][-3:] == listed


@pytest.mark.parametrize(
    "how", [["--depth", "1"], ["--shared"], ["--reference-if-able"]]
)
def test_shallow_and_alternates(repo, tmp_path, how):
    top = tmp_path / "clone"
    extra = [repo] if how == ["--reference-if-able"] else []
    git(tmp_path, "clone", "-q", *how, *extra, f"file://{repo}", top)
    round_trip(top)
    # What the remote has is the anchor: nothing of the user's leaves with a checkpoint.
    first = ok(top, "show", "main/main:1")["checkpoint"]["commit"]
    assert git_line(top, "rev-parse", f"{first}^") == git_line(top, "rev-parse", "HEAD")


def test_git_directory_elsewhere(tmp_path):
    top = tmp_path / "work"
    top.mkdir()
    git(top, "init", "-q", "--separate-git-dir", tmp_path / "elsewhere.git")
    round_trip(top)
    assert (tmp_path / "elsewhere.git" / "gitcp").is_dir()


def test_settings_of_the_environment_are_git_settings(repo):
    """As a container of a CI trusts a directory, or says where a proxy is."""
    write_files(repo, {"large": b"12345"})
    given = {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "gitcp.maxFileSize",
        "GIT_CONFIG_VALUE_0": "4",
        "GIT_CONFIG_KEY_1": "core.excludesFile",
        "GIT_CONFIG_VALUE_1": "/dev/null",
    }
    ok(repo, "save", env=given)
    assert {"path": "large", "reason": "too-large"} in ok(repo, "show")["skipped"]
    hub = make_hub(repo.parent)
    git(repo, "remote", "add", "origin", hub)
    assert ok(repo, "push", env=given)["branches"][0]["result"] == "created"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
def test_who_does_not_own_it_is_told_which_directory_to_trust(tmp_path):
    needs_owners()
    top = make_repo(tmp_path / "theirs", {"f": b"1"})
    for path in (top, *top.rglob("*")):
        os.chown(path, 65534, 65534)
    said = refused(top, "save", exit=17)
    assert said.rstrip().endswith(f"git config --global --add safe.directory {top}")
    assert not (top / ".git" / "gitcp").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory away")
@pytest.mark.parametrize("how", ["a link to it", "a linked work tree", "its own"])
def test_a_work_tree_of_another_user_is_not_served(repo, tmp_path, how):
    """Else what lies there is captured here, and a restore writes ours there."""
    needs_owners()
    ok(repo, "save")
    theirs = tmp_path / "theirs"
    if how == "a linked work tree":
        git(repo, "worktree", "add", "-q", "--detach", theirs)
    elif how == "a link to it":
        theirs.mkdir()
        (theirs / ".git").write_text(f"gitdir: {repo / '.git'}\n")
        os.chown(theirs / ".git", 65534, 65534)
    else:
        theirs = repo
    (theirs / "theirs").write_bytes(b"x")
    os.chown(theirs, 65534, 65534)
    before = tree_bytes(theirs), tree_bytes(repo / ".git")
    for args in (("save",), ("restore", "1", "--yes"), ("undo",), ("push",), ("gc",)):
        assert "another user owns it" in refused(theirs, *args, exit=17)
    assert (tree_bytes(theirs), tree_bytes(repo / ".git")) == before


@pytest.mark.parametrize(
    "name",
    [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
    ],
)
def test_git_in_the_environment_leads_nowhere(repo, tmp_path, name):
    other = make_repo(tmp_path / "other", {"f": b"1"})
    before = users_own(other / ".git")
    values = {
        "GIT_DIR": other / ".git",
        "GIT_WORK_TREE": other,
        "GIT_INDEX_FILE": other / ".git" / "index",
        "GIT_OBJECT_DIRECTORY": other / ".git" / "objects",
        "GIT_PREFIX": "nowhere/",
    }
    round_trip(repo, env={name: str(values[name])})
    assert users_own(other / ".git") == before
    assert not (other / ".git" / "gitcp").exists()
    assert os.listdir(other / ".git" / "objects" / "pack") == []


@pytest.mark.parametrize(
    "settings",
    [
        {"core.autocrlf": "true"},
        {"core.autocrlf": "input", "core.safecrlf": "true"},
        {"commit.gpgSign": "true", "gpg.program": "/bin/false"},
        {"core.logAllRefUpdates": "always"},
        {"core.untrackedCache": "true", "index.version": "4"},
        {"core.splitIndex": "true"},
        {"core.fsmonitor": "/bin/false"},
        {"core.quotePath": "false", "core.abbrev": "4", "color.ui": "always"},
        {"filter.bad.clean": "false", "filter.bad.required": "true"},
        {"transfer.fsckObjects": "true", "receive.denyNonFastForwards": "true"},
        {"core.compression": "0", "pack.indexVersion": "1"},
        {"user.useConfigOnly": "true"},
        {"status.showUntrackedFiles": "no"},
    ],
    ids=",".join,
)
def test_odd_settings(repo, settings):
    write_files(repo, {".gitattributes": b"*.x filter=bad\n*.y text eol=crlf ident\n"})
    write_files(repo, {"f.x": b"a\r\nb\n", "f.y": b"$Id$\r\n\n", "mixed": b"\r\n\n"})
    for name, value in settings.items():
        git(repo, "config", name, value)
    round_trip(repo)


def test_no_hook_of_the_user_runs(repo, sealed, tmp_path):
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    canary = tmp_path / "canary"
    for name in ("pre-commit", "post-commit", "reference-transaction", "post-checkout",
                 "post-index-change", "pre-auto-gc", "post-rewrite",
                 "fsmonitor-watchman"):  # fmt: skip
        write_files(
            hooks, {name: Executable(f"#!/bin/sh\ntouch {canary}\nexit 1\n".encode())}
        )
        write_files(
            repo / ".git/hooks",
            {name: Executable(f"#!/bin/sh\ntouch {canary}\nexit 1\n".encode())},
        )
    settings = sealed / ".gitconfig"
    settings.write_text(f"[core]\n\thooksPath = {hooks}\n")
    user = {"GIT_CONFIG_GLOBAL": str(settings)}
    git(repo, "update-index", "--refresh", env=user, check=False)
    canary.unlink(missing_ok=True)
    for env in (user, {}):
        done = invoke(repo, "save", "--allow-empty", env=env)
        assert done.returncode == 0
        write_files(repo, {"g": os.urandom(4)})
        ok(repo, "restore", "-y", "1", env=env)
        ok(repo, "undo", "-y", env=env)
        for name in ("fork", "fork"):
            ok(repo, name, f"f{os.urandom(3).hex()}", "-y", env=env)
    ok(repo, "fork", "--worktree", tmp_path / "tree", "into", env=user)
    assert not canary.exists()


def test_no_identity_and_no_home(repo, tmp_path):
    round_trip(repo, env={"HOME": None, "XDG_CONFIG_HOME": None, "USER": None,
                          "EMAIL": None, "LOGNAME": None})  # fmt: skip
    said = git_line(
        repo, "log", "-1", "--format=%an <%ae> %cn", "refs/gitcp/s/main/main"
    )
    assert said == "gitcp <gitcp@localhost> gitcp"


def test_a_user_name_that_is_not_utf8(repo):
    with (repo / ".git" / "config").open("ab") as file:
        file.write(b"[user]\n\tname = J\xfcrgen\n")
    assert ok(repo, "save")["checkpoint"]["author"] == "J\N{REPLACEMENT CHARACTER}rgen"


def test_a_branch_name_that_is_not_utf8(repo):
    git(repo, "checkout", "-q", "-b", b"caf\xe9")
    base = ok(repo, "save")["checkpoint"]["base"]
    assert base["branch"] == "caf\N{REPLACEMENT CHARACTER}"


def test_an_unreadable_gitconfig(repo, sealed):
    unreadable = sealed / ".gitconfig"
    unreadable.write_text("[user]\n\tname = x\n")
    unreadable.chmod(0)
    if os.access(unreadable, os.R_OK):
        # For root everything is readable; a directory is not, for any user.
        unreadable.unlink()
        unreadable.mkdir()
    env = {"GIT_CONFIG_GLOBAL": None}
    done = invoke(repo, "save", env=env)
    # git itself goes on or gives up; so do we, in one sentence.
    user = {
        name: text for name, text in os.environ.items() if name != "GIT_CONFIG_GLOBAL"
    }
    works = not subprocess.run(["git", "status"], cwd=repo, env=user, check=False,
                               capture_output=True).returncode  # fmt: skip
    said = done.stderr.decode()
    assert done.returncode == 0 or (not works and said.startswith("gitcp: ")), said
    assert "Traceback" not in said


def test_in_a_directory_below(repo):
    ok(repo / "src", "save")
    write_files(repo, {"README.md": b"x", "src/pkg/main.py": b"y"})
    ok(repo / "src", "restore", "-y", "1", "pkg/main.py")
    assert (repo / "src/pkg/main.py").read_bytes() == b"print('two')\n"
    assert (repo / "README.md").read_bytes() == b"x"
    ok(repo / "src", "restore", "-y", "1", "../README.md")
    assert (repo / "README.md").read_bytes() == b"# A project\n"


# --- refused ----------------------------------------------------------------------


def configured(repo: Path, *pairs: str, version: str = "1") -> Path:
    # Not in the repository, which git does not look into once it is another one.
    pairs = ("core.repositoryFormatVersion", version, *pairs)
    for name, value in zip(pairs[::2], pairs[1::2], strict=True):
        git(repo.parent, "config", "--file", repo / ".git" / "config", name, value)
    return repo


def bare(repo: Path, tmp_path: Path) -> Path:
    git(tmp_path, "clone", "-q", "--bare", repo, tmp_path / "bare.git")
    return tmp_path / "bare.git"


def not_a_repository(repo: Path, tmp_path: Path) -> Path:
    (tmp_path / "plain").mkdir()
    return tmp_path / "plain"


def home(repo: Path, tmp_path: Path) -> Path:
    return make_repo(Path(os.environ["HOME"]))


def line_break(repo: Path, tmp_path: Path) -> Path:
    """What git says of such a path cannot be taken apart."""
    return make_repo(tmp_path / "two\nlines")


def below_line_break(repo: Path, tmp_path: Path) -> Path:
    top = make_repo(tmp_path / "two\n" / "lines")
    (top / "sub").mkdir()
    return top / "sub"


Make = Callable[[Path, Path], Path]


# What git says of a form that it does not know differs where the repository has another.
@pytest.mark.sha1
@pytest.mark.ref_files
@pytest.mark.parametrize(
    ("make", "status", "says"),
    [
        (lambda repo, path: bare(repo, path) / "refs", 17, "bare"),
        (lambda repo, _: repo / ".git", 10, "inside the git directory"),
        (
            lambda repo, _: configured(repo, "extensions.refStorage", "tables"),
            17,
            "form",
        ),
        (lambda repo, _: configured(repo, "extensions.frobnicate", "1"), 17, "frob"),
        (
            lambda repo, _: configured(repo, "extensions.frobnicate", "1", version="0"),
            17,
            "frob",
        ),
        (lambda repo, _: configured(repo, version="7"), 17, "form"),
        (home, 17, "home"),
        (line_break, 17, "line break"),
        (below_line_break, 17, "line break"),
        (not_a_repository, 10, "not in a git repository"),
        (lambda repo, _: repo / "nowhere", 10, "not a directory"),
    ],
    ids=[
        "inside-a-bare-one",
        "git-directory",
        "unknown-ref-storage",
        "unknown-extension",
        "unknown-extension-version-0",
        "unknown-version",
        "home",
        "line-break",
        "below-line-break",
        "no-repository",
        "no-directory",
    ],
)
def test_refused_before_anything_is_written(repo, tmp_path, make, status, says):
    where = make(repo, tmp_path)
    before = tree_bytes(tmp_path), tree_bytes(repo / ".git")
    for command in (["save"], ["log"], ["restore", "-y", "1"], ["fork", "x"],
                    ["undo", "-y"], ["decide", "x"], ["sessions"]):  # fmt: skip
        said = refused(tmp_path, "-C", str(where), *command, exit=status)
        assert says in said
    assert (tree_bytes(tmp_path), tree_bytes(repo / ".git")) == before


def test_a_bare_repository_has_no_files_to_work_on(repo, tmp_path):
    where = bare(repo, tmp_path)
    before = tree_bytes(where)
    for command in (["save"], ["restore", "-y", "1"], ["fork", "x"], ["undo", "-y"],
                    ["decide", "x"], ["status"]):  # fmt: skip
        assert "bare" in refused(tmp_path, "-C", str(where), *command, exit=17)
    assert tree_bytes(where) == before


def test_the_root_directory(tmp_path, monkeypatch):
    # `/` itself cannot be a repository of a test; what decides is the path.
    from gitcp.errors import UnsupportedRepositoryError
    from gitcp.git import served

    with pytest.raises(UnsupportedRepositoryError, match="root"):
        served.check_place(Path("/"))
    link = tmp_path / "link"
    link.symlink_to("/")
    with pytest.raises(UnsupportedRepositoryError, match="root"):
        served.check_place(link)


def test_a_list_of_what_git_refuses_is_told_with_what_it_is(repo, tmp_path):
    where = configured(repo, "extensions.objectFormat", "sha1", version="0")
    said = refused(tmp_path, "-C", str(where), "status", exit=17)
    assert re.search(r"v1-only extensions? found: objectformat", said)
