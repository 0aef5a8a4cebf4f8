"""gitcp beside real husky, lefthook and pre-commit: all of them work, in either order."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gitcp.git.discover import discover
from gitcp.githooks import events, scripts
from tests.support import hooks
from tests.support.gitrepo import commit_all, git, git_line, write_files
from tests.support.inprocess import ok

HUSKY = shutil.which("husky")
LEFTHOOK = shutil.which("lefthook")
BESIDE = Path(sys.executable).with_name("pre-commit")
PRE_COMMIT = str(BESIDE) if BESIDE.exists() else shutil.which("pre-commit")

needs_husky = pytest.mark.skipif(HUSKY is None, reason="no husky (npm i husky)")
needs_lefthook = pytest.mark.skipif(
    LEFTHOOK is None, reason="no lefthook (npm i lefthook)"
)
needs_pre_commit = pytest.mark.skipif(
    PRE_COMMIT is None, reason="no pre-commit (pip install pre-commit)"
)

# What the hooks of the three are set up to do: note that they ran, refuse where told to.
CONFIG = """\
repos:
- repo: local
  hooks:
  - {id: a, name: a, language: system, always_run: true, pass_filenames: false,
     stages: [pre-commit], entry: sh scripts/check}
  - {id: b, name: b, language: system, always_run: true, pass_filenames: false,
     stages: [post-commit], entry: sh scripts/after}
"""
LEFTHOOK_YML = """\
output: [execution_out, failure]
pre-commit:
  commands:
    a: {run: sh scripts/check}
post-commit:
  commands:
    b: {run: sh scripts/after}
"""
SCRIPTS = {
    "scripts/check": b"echo check >>ran; test ! -e forbidden\n",
    "scripts/after": b"echo after >>ran\n",
    ".gitignore": b"*.log\n/build/\nran\nforbidden\n",
}


def run(repo, *args, status=0):
    done = subprocess.run(
        args,
        cwd=repo,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=250,
    )
    assert done.returncode == status, done.stdout.decode("utf-8", "replace")
    return done.stdout.decode("utf-8", "replace")


@pytest.fixture
def project(repo, monkeypatch, tmp_path):
    git(repo, "config", "user.name", "Tess Ter")
    git(repo, "config", "user.email", "tess@example.invalid")
    write_files(repo, SCRIPTS)
    commit_all(repo)
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "pre-commit-home"))
    # A hook that runs in CI is as quiet as one at a terminal.
    monkeypatch.delenv("CI", raising=False)
    return repo


def count(repo):
    return len(ok(repo, "log", "--json")["checkpoints"])


def commits(repo, text):
    """A commit as people make it, and that everybody had their part in it."""
    before = count(repo)
    (repo / "ran").unlink(missing_ok=True)
    hooks.change(repo, text)
    run(repo, "git", "add", ".")
    run(repo, "git", "commit", "-q", "-m", text.decode())
    assert (repo / "ran").read_text() == "check\nafter\n"
    assert count(repo) == before + 1, hooks.log(repo)
    assert ok(repo, "show", "HEAD")["checkpoint"]["trigger"] == "commit"


def refuses(repo):
    """The framework still has its say."""
    head = git_line(repo, "rev-parse", "HEAD")
    (repo / "forbidden").touch()
    hooks.change(repo, b"forbidden")
    run(repo, "git", "add", ".")
    run(repo, "git", "commit", "-q", "-m", "forbidden", status=1)
    (repo / "forbidden").unlink()
    assert git_line(repo, "rev-parse", "HEAD") == head


def set_up_husky(repo):
    write_files(
        repo,
        {f".husky/{name}": SCRIPTS[f"scripts/{script}"]
         for name, script in (("pre-commit", "check"), ("post-commit", "after"))},
    )  # fmt: skip
    assert HUSKY
    run(repo, HUSKY)
    commit_all(repo, "husky")
    return lambda: run(repo, HUSKY)


def set_up_lefthook(repo):
    write_files(repo, {"lefthook.yml": LEFTHOOK_YML.encode()})
    commit_all(repo, "lefthook")
    assert LEFTHOOK
    run(repo, LEFTHOOK, "install")
    return lambda: run(repo, LEFTHOOK, "install", "--force")


def set_up_pre_commit(repo):
    write_files(repo, {".pre-commit-config.yaml": CONFIG.encode()})
    commit_all(repo, "pre-commit")
    assert PRE_COMMIT
    install = (PRE_COMMIT, "install", "-t", "pre-commit", "-t", "post-commit")
    run(repo, *install)
    return lambda: run(repo, *install)


FRAMEWORKS = [
    pytest.param(set_up_husky, id="husky", marks=needs_husky),
    pytest.param(set_up_lefthook, id="lefthook", marks=needs_lefthook),
    pytest.param(set_up_pre_commit, id="pre-commit", marks=needs_pre_commit),
]


def where(repo):
    path = git_line(repo, "rev-parse", "--path-format=absolute", "--git-path", "hooks")
    return hooks.contents(Path(path))


@pytest.mark.parametrize("set_up", FRAMEWORKS)
def test_joined_after_the_framework_and_through_its_next_installation(project, set_up):
    again = set_up(project)
    before = where(project)
    config = (project / ".git" / "config").read_bytes()
    hooks.install(project)
    assert git(project, "status", "--porcelain") == b""
    commits(project, b"first")
    refuses(project)
    again()
    commits(project, b"second")
    assert scripts.problems(discover(project)) == []
    commits(project, b"third")
    events.uninstall(discover(project))
    assert where(project) == before
    assert (project / ".git" / "config").read_bytes() == config
    assert git(project, "status", "--porcelain") == b""
    assert not list((project / ".git").rglob("*gitcp-hook*"))


@pytest.mark.parametrize("set_up", FRAMEWORKS[1:])
def test_a_framework_that_comes_later_is_joined_by_itself(project, set_up):
    hooks.install(project)
    again = set_up(project)
    commits(project, b"first")
    refuses(project)
    again()
    commits(project, b"second")
    assert scripts.problems(discover(project)) == []
    events.uninstall(discover(project))
    left = where(project)
    assert not [name for name, (_, raw) in left.items() if b"gitcp-hook" in raw]
    (project / "ran").unlink()
    hooks.change(project, b"third")
    run(project, "git", "commit", "-q", "-a", "-m", "third")
    assert (project / "ran").read_text() == "check\nafter\n"


@needs_husky
def test_husky_that_comes_later_is_told_and_joined_on_demand(project):
    hooks.install(project)
    set_up_husky(project)
    (problem,) = scripts.problems(discover(project))
    assert ".husky/_" in problem
    hooks.install(project)
    commits(project, b"first")
    assert not (project / ".git" / "hooks" / "gitcp-hook").exists()


@needs_pre_commit
def test_gitcp_outlives_pre_commit(project):
    set_up_pre_commit(project)
    hooks.install(project)
    commits(project, b"first")
    assert PRE_COMMIT
    run(project, PRE_COMMIT, "uninstall", "-t", "pre-commit", "-t", "post-commit")
    (project / "ran").unlink()
    before = count(project)
    hooks.change(project, b"second")
    run(project, "git", "commit", "-q", "-a", "-m", "second")
    assert not (project / "ran").exists()
    assert count(project) == before + 1


@needs_pre_commit
@pytest.mark.parametrize("stage", ["post-commit", "post-rewrite", "post-merge"])
def test_the_hooks_offered_to_users_of_pre_commit(project, stage, tmp_path):
    """As `.pre-commit-hooks.yaml` has them, but with the gitcp that is here."""
    offered = (Path(__file__).parents[2] / ".pre-commit-hooks.yaml").read_text()
    assert f"- id: gitcp-{stage}\n" in offered
    assert f"  entry: gitcp git-hook {stage}\n" in offered
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "gitcp").symlink_to(hooks.gitcp_program(tmp_path))
    stages = ["post-commit", "post-rewrite", "post-merge"]
    hook = "language: system, always_run: true, pass_filenames: false"
    config = "repos:\n- repo: local\n  hooks:\n" + "".join(
        f"  - {{id: g-{one}, name: g, {hook}, stages: [{one}], entry: gitcp git-hook {one}}}\n"
        for one in stages
    )
    write_files(project, {".pre-commit-config.yaml": config.encode()})
    commit_all(project, "config")
    assert PRE_COMMIT
    run(project, PRE_COMMIT, "install", *[f"--hook-type={one}" for one in stages])
    env = {"PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}"}
    ok(project, "decide", "why")
    hooks.change(project, b"one")
    git(project, "commit", "-q", "-a", "-m", "one", env=env)
    assert count(project) == 1, hooks.log(project)
    if stage == "post-rewrite":
        old = git_line(project, "rev-parse", "HEAD")
        git(project, "commit", "-q", "--amend", "-m", "two", env=env)
        found = ok(project, "show", "HEAD")
        assert found["behind"]["replaces"] == [old]
        git(project, "checkout", "-q", "-b", "other", "HEAD~1")
        write_files(project, {"other": b"x"})
        commit_all(project, "other")
        git(project, "rebase", "-q", "other", "main", env=env)
        found = ok(project, "show", "HEAD")
        assert [one["text"] for one in found["decisions"]] == ["why"]
    if stage == "post-merge":
        git(project, "checkout", "-q", "-b", "other", "HEAD~1")
        write_files(project, {"other": b"x"})
        commit_all(project, "other")
        git(project, "merge", "-q", "-m", "joined", "main", env=env)
        assert ok(project, "show", "HEAD")["checkpoint"]["trigger"] == "merge"
