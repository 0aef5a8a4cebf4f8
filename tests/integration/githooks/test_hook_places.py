"""Joining git's hooks wherever they lie, and leaving them as they were."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from gitcp.errors import UnsupportedRepositoryError
from gitcp.git.discover import discover
from gitcp.githooks import events
from gitcp.githooks import install as installer
from tests.support import hooks
from tests.support.gitrepo import commit_all, git, git_line, make_repo, write_files
from tests.support.inprocess import fails, ok


@pytest.fixture
def saw(repo, tmp_path):
    """A program that notes its arguments and input; returns how to put it in a hook."""
    told = tmp_path / "told"
    hooks.program(
        tmp_path / "gitcp-saw",
        f'if [ "$1" = git-hook ]; then {{ echo "$@"; cat; }} >>{told}; fi',
    )
    return told


def install(repo, tmp_path):
    return hooks.install(repo, tmp_path / "gitcp-saw")


def uninstall(repo):
    return events.uninstall(discover(repo))


def everything(repo):
    """All that installing may touch, except gitcp's own directory."""
    found = hooks.contents(repo)
    return {
        name: value
        for name, value in found.items()
        if not name.startswith((".git/gitcp", ".git/objects", ".git/logs", ".git/refs"))
        and name not in {".git/index", ".git/COMMIT_EDITMSG"}
        and "reftable" not in Path(name).parts
    }


def commit(repo, *args, env=None, check=True):
    return git(
        repo, "commit", "--allow-empty", "-q", "-m", "x", *args, env=env, check=check
    )


def test_hooks_are_made_where_there_are_none_and_taken_away(repo, saw, tmp_path):
    before = everything(repo)
    directory = install(repo, tmp_path)
    assert directory == repo / ".git" / "hooks"
    for name in hooks.NAMES:
        assert os.access(directory / name, os.X_OK)
    commit(repo)
    assert "git-hook post-commit\n" in saw.read_text()
    assert events.install(discover(repo)).changed in ((), ("gitcp-hook",))
    uninstall(repo)
    assert everything(repo) == before
    assert uninstall(repo) is None


def test_without_a_hooks_directory_one_is_made_and_taken_away(tmp_path, saw):
    path = tmp_path / "bare-template"
    path.mkdir()
    git(path, "init", "-q", "--template=", ".")
    before = everything(path)
    install(path, tmp_path)
    commit(path)
    assert saw.exists()
    uninstall(path)
    assert everything(path) == before


def test_hooks_of_a_template_are_joined(tmp_path, repo, saw):
    template = tmp_path / "template"
    mine = hooks.program(template / "hooks" / "post-commit", 'echo "mine $0" >mine')
    path = tmp_path / "made"
    path.mkdir()
    git(path, "init", "-q", f"--template={template}", ".")
    before = everything(path)
    install(path, tmp_path)
    commit(path)
    assert (path / "mine").read_text() == "mine .git/hooks/post-commit\n"
    assert "post-commit" in saw.read_text()
    (path / "mine").unlink()
    git(path, "init", "-q", f"--template={template}", ".")
    uninstall(path)
    assert everything(path) == before
    assert mine.exists()


SHELLS = [
    "/bin/sh",
    "/bin/sh -eu",
    "/usr/bin/env bash",
    "/bin/bash -e",
    "/usr/bin/env sh",
]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("status", [0, 3])
def test_a_shell_hook_keeps_name_input_arguments_and_exit_status(
    repo, saw, tmp_path, shell, status
):
    body = (
        f"#!{shell}\n"
        'printf \'%s|\' "$0" "$@" "$GIT_EDITOR" >got\n'
        f"cat >>got\nexit {status}\n"
    )
    path = repo / ".git" / "hooks" / "pre-push"
    rewrite = path.with_name("post-rewrite")
    for one in (path, rewrite):
        one.write_text(body)
        one.chmod(0o751)
    git(repo, "config", "gitcp.autoPush", "true")
    before = everything(repo)
    install(repo, tmp_path)
    # The bytes of a hook's input, down to its last newline.
    told = b"refs/heads/a b\nrefs/$HOME `x` \\ c\n"
    for name, args in (
        ("pre-push", ["origin", "some where"]),
        ("post-rewrite", ["rebase"]),
    ):
        done = subprocess.run(
            [f".git/hooks/{name}", *args],
            cwd=repo,
            input=told,
            env={**os.environ, "GIT_EDITOR": "kept"},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (status, b"", b"")
        got = (repo / "got").read_bytes()
        first = "|".join([f".git/hooks/{name}", *args, "kept", ""]).encode()
        assert got == first + told
    assert "git-hook post-rewrite rebase\n" + told.decode() in saw.read_text()
    (repo / "got").unlink()
    uninstall(repo)
    assert everything(repo) == before


def test_empty_input_stays_empty(repo, saw, tmp_path):
    hooks.program(repo / ".git/hooks/post-rewrite", "cat >got")
    install(repo, tmp_path)
    subprocess.run([".git/hooks/post-rewrite"], cwd=repo, input=b"", check=True)
    assert (repo / "got").read_bytes() == b""


def test_hooks_in_other_languages_and_links_run_after_ours(repo, saw, tmp_path):
    there = repo / ".git" / "hooks"
    python = there / "post-rewrite"
    python.write_text(
        "#!/usr/bin/env python3\nimport os, sys\n"
        "open('got','w').write(os.path.basename(sys.argv[0]) + sys.stdin.read())\n"
        "sys.exit(4)\n"
    )
    python.chmod(0o755)
    # Relative, as people link to a script that the project keeps.
    hooks.program(repo / "scripts" / "check", 'echo linked "$@" >linked; exit 5')
    (there / "pre-push").symlink_to("../../scripts/check")
    hooks.program(repo / "scripts" / "x", "true")
    (there / "post-merge").symlink_to(repo / "scripts" / "x")
    # Not executable: git leaves it alone, and so must we.
    (there / "post-commit").write_text("#!/bin/sh\ntouch disabled\n")
    (there / "post-commit").chmod(0o644)
    before = everything(repo)
    install(repo, tmp_path)
    done = subprocess.run(
        [".git/hooks/post-rewrite", "amend"], cwd=repo, input=b"a b\n", check=False
    )
    assert done.returncode == 4
    assert (repo / "got").read_text() == "post-rewritea b\n"
    assert "git-hook post-rewrite amend\na b\n" in saw.read_text()
    done = subprocess.run([".git/hooks/pre-push", "o", "u"], cwd=repo, check=False)
    assert done.returncode == 5
    assert (repo / "linked").read_text() == "linked o u\n"
    commit(repo)
    assert not (repo / "disabled").exists()
    assert "git-hook post-commit\n" in saw.read_text()
    for name in ("got", "linked"):
        (repo / name).unlink()
    uninstall(repo)
    assert everything(repo) == before


def test_edits_made_meanwhile_survive(repo, saw, tmp_path):
    path = hooks.program(repo / ".git/hooks/post-commit", "echo one >one")
    install(repo, tmp_path)
    path.write_bytes(path.read_bytes() + b"echo two >two\n")
    commit(repo)
    assert (repo / "one").exists()
    assert (repo / "two").exists()
    uninstall(repo)
    assert path.read_bytes() == b"#!/bin/sh\necho one >one\necho two >two\n"


def test_tracked_hooks_are_not_touched(repo, saw, tmp_path):
    """`core.hooksPath` inside the project: a changed file would stop the next pull."""
    hooks.program(repo / ".githooks" / "post-commit", 'echo "tracked $0" >>ran')
    hooks.program(repo / ".githooks" / "pre-commit", "test ! -e forbidden")
    write_files(repo, {".gitignore": b"*.log\n/build/\nran\nforbidden\n"})
    commit_all(repo)
    git(repo, "config", "core.hooksPath", ".githooks")
    before = everything(repo)
    config = (repo / ".git" / "config").read_bytes()
    install(repo, tmp_path)
    assert git(repo, "status", "--porcelain") == b""
    commit(repo)
    assert (repo / "ran").read_text() == "tracked .githooks/post-commit\n"
    assert "git-hook post-commit\n" in saw.read_text()
    (repo / "forbidden").touch()
    assert commit(repo, check=False) == b""
    assert (repo / "ran").read_text().count("tracked") == 1
    (repo / "forbidden").unlink()
    # From a linked worktree the project's hooks are that worktree's.
    other = tmp_path / "other"
    git(repo, "worktree", "add", "-q", other)
    commit(other)
    assert (other / "ran").exists()
    git(repo, "worktree", "remove", "--force", other)
    (repo / "ran").unlink()
    uninstall(repo)
    assert (repo / ".git" / "config").read_bytes() == config
    assert {k: v for k, v in everything(repo).items() if "heads" not in k} == before


def test_a_directory_that_all_repositories_share_is_not_touched(
    repo, saw, tmp_path, sealed, monkeypatch
):
    shared = tmp_path / "all hooks"
    hooks.program(shared / "post-commit", 'echo "$0" >>shared')
    settings = sealed / ".gitconfig"
    settings.write_text(f'[core]\n\thooksPath = "{shared}"\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    before, theirs = everything(repo), hooks.contents(shared)
    install(repo, tmp_path)
    commit(repo)
    assert (repo / "shared").read_text() == f"{shared}/post-commit\n"
    assert "post-commit" in saw.read_text()
    assert hooks.contents(shared) == theirs
    (repo / "shared").unlink()
    # The user has set something else meanwhile: only our setting goes.
    git(repo, "config", "user.name", "Someone")
    uninstall(repo)
    assert git_line(repo, "config", "--get", "core.hooksPath") == str(shared)
    git(repo, "config", "--unset", "user.name")
    git(repo, "config", "--remove-section", "user", check=False)
    assert everything(repo).keys() == before.keys()
    commit(repo)
    assert (repo / "shared").exists()


def test_hooks_added_to_the_project_later_run_too(repo, saw, tmp_path):
    git(repo, "config", "core.hooksPath", ".githooks")
    install(repo, tmp_path)
    hooks.program(repo / ".githooks" / "commit-msg", "exit 1")
    assert commit(repo, check=False) == b""
    assert git_line(repo, "log", "-1", "--format=%s") == "second"
    hooks.program(repo / ".githooks" / "reference-transaction", "touch transaction")
    events.mend(discover(repo))
    git(repo, "tag", "x")
    assert (repo / "transaction").exists()


def test_where_hooks_are_switched_off_it_refuses(repo):
    git(repo, "config", "core.hooksPath", "/dev/null")
    before = everything(repo)
    with pytest.raises(UnsupportedRepositoryError, match="switched off"):
        events.install(discover(repo))
    assert everything(repo) == before


def test_a_path_of_one_worktree_is_refused(repo):
    git(repo, "config", "extensions.worktreeConfig", "true")
    git(repo, "config", "--worktree", "core.hooksPath", "mine")
    with pytest.raises(UnsupportedRepositoryError, match="worktree alone"):
        events.install(discover(repo))


def test_a_path_set_after_the_installation_is_told_and_can_be_joined(
    repo, saw, tmp_path
):
    from gitcp.githooks import scripts as join

    before = hooks.contents(repo / ".git" / "hooks")
    install(repo, tmp_path)
    assert join.problems(discover(repo)) == []
    git(repo, "config", "core.hooksPath", ".githooks")
    (problem,) = join.problems(discover(repo))
    assert ".githooks" in problem
    install(repo, tmp_path)
    assert hooks.contents(repo / ".git" / "hooks") == before
    assert join.problems(discover(repo)) == []
    uninstall(repo)
    assert git_line(repo, "config", "core.hooksPath") == ".githooks"


def test_linked_worktrees_share_the_hooks(repo, saw, tmp_path):
    other = tmp_path / "other"
    git(repo, "worktree", "add", "-q", other)
    before = everything(repo)
    assert install(other, tmp_path) == repo / ".git" / "hooks"
    commit(repo)
    commit(other)
    assert saw.read_text().count("git-hook post-commit") == 2
    uninstall(other)
    (repo / ".git/worktrees/other/COMMIT_EDITMSG").unlink()
    assert everything(repo).keys() == before.keys()


def test_what_keeps_them_from_working_is_told(repo, tmp_path, saw):
    from gitcp.githooks import scripts as join

    directory = install(repo, tmp_path)
    (directory / "post-merge").unlink()
    (directory / "post-commit").write_text("#!/bin/sh\n")
    (directory / "post-checkout").chmod(0o644)
    (tmp_path / "gitcp-saw").unlink()
    told = "\n".join(join.problems(discover(repo)))
    assert "post-merge is gone" in told
    assert "post-commit was overwritten" in told
    assert "post-checkout is not executable" in told
    assert "gitcp is not at" in told
    events.mend(discover(repo))
    assert "post" not in "\n".join(join.problems(discover(repo)))


def test_a_killed_installation_can_be_taken_back(repo, saw, tmp_path, monkeypatch):
    """The note of what was there is written before anything else."""
    from gitcp.githooks import hook_file

    hooks.program(repo / ".git/hooks/post-rewrite", "exit 0").write_text(
        "#!/usr/bin/env python3\n"
    )
    before = everything(repo)
    real = hook_file.write
    for stop in range(8):
        calls = iter(range(100))

        def put(path, content, calls=calls, stop=stop):
            if next(calls) == stop:
                raise KeyboardInterrupt
            return real(path, content)

        monkeypatch.setattr(hook_file, "write", put)
        with pytest.raises(KeyboardInterrupt):
            events.install(discover(repo))
        monkeypatch.setattr(hook_file, "write", real)
        # Whenever it ends, the user's hook is where git finds it.
        assert (repo / ".git/hooks/post-rewrite").exists()
        uninstall(repo)
        assert everything(repo) == before


def test_the_note_of_an_installation_is_private(repo, saw, tmp_path):
    install(repo, tmp_path)
    note = repo / ".git" / "gitcp" / "git-hooks.json"
    assert json.loads(note.read_bytes())["directory"] == str(repo / ".git" / "hooks")
    assert stat.S_IMODE(note.parent.stat().st_mode) == 0o700


def test_another_repositorys_hooks_are_left_alone(tmp_path, repo, saw):
    """`git --git-dir` runs the hooks of one repository in the files of another."""
    install(repo, tmp_path)
    hooks.start(repo / ".git/hooks/gitcp-hook", hooks.gitcp_program(tmp_path))
    other = make_repo(tmp_path / "other", {"a": b"1"})
    git(other, f"--git-dir={repo / '.git'}", f"--work-tree={other}", "commit", "-q",
        "--allow-empty", "-m", "x")  # fmt: skip
    assert git(other, "for-each-ref", "refs/gitcp") == b""
    assert git(repo, "for-each-ref", "refs/gitcp") == b""


def test_installing_keeps_checkpoints_out_of_the_users_own_fetches(repo, monkeypatch):
    # The setting exists from git 2.55 on; which git runs here does not matter to it.
    monkeypatch.setattr(installer, "git_version", lambda _: ((2, 55), "2.55.0"))
    git(repo, "remote", "add", "origin", "../hub.git")
    git(repo, "remote", "add", "own", "../own.git")
    key = "remote.{}.negotiationRestrict"
    git(repo, "config", key.format("own"), "refs/heads/main")
    before = (repo / ".git" / "config").read_bytes()
    done = ok(repo, "install", "git-hooks")["done"][0]
    assert any("git fetch` from origin offers" in note for note in done["notes"])
    assert git(repo, "config", "--get-all", key.format("origin")).split() == [
        b"refs/heads/*",
        b"refs/remotes/origin/*",
    ]
    assert git_line(repo, "config", key.format("own")) == "refs/heads/main"
    assert not ok(repo, "install", "git-hooks")["done"][0]["changed"]
    ok(repo, "uninstall", "git-hooks")
    assert (repo / ".git" / "config").read_bytes() == before


@pytest.mark.parametrize("again", [False, True])
def test_the_patterns_of_an_earlier_gitcp_are_replaced_and_removed(
    repo, monkeypatch, again
):
    """git warned at each fetch in a repository without tags."""
    monkeypatch.setattr(installer, "git_version", lambda _: ((2, 55), "2.55.0"))
    git(repo, "remote", "add", "origin", "../hub.git")
    ok(repo, "install", "git-hooks")
    key = "remote.origin.negotiationRestrict"
    now = git(repo, "config", "--get-all", key).split()
    git(repo, "config", "--unset-all", key)
    for pattern in ("refs/heads/*", "refs/tags/*", "refs/remotes/origin/*"):
        git(repo, "config", "--add", key, pattern)
    if again:
        assert ok(repo, "install", "git-hooks")["done"][0]["changed"]
        assert git(repo, "config", "--get-all", key).split() == now
    ok(repo, "uninstall", "git-hooks")
    assert git(repo, "config", "--get-all", key, check=False) == b""


def test_an_older_git_gets_no_setting_that_it_does_not_know(repo, monkeypatch):
    monkeypatch.setattr(installer, "git_version", lambda _: ((2, 54), "2.54.0"))
    git(repo, "remote", "add", "origin", "../hub.git")
    before = (repo / ".git" / "config").read_bytes()
    ok(repo, "install", "git-hooks")
    assert (repo / ".git" / "config").read_bytes() == before


# --- where gitcp's own notes have gone -----------------------------------------------------


@pytest.mark.parametrize("kind", ["none", "shell", "program", "link"])
def test_uninstall_finds_its_lines_though_its_notes_were_deleted(tmp_path, repo, kind):
    path = repo / ".git/hooks/post-commit"
    if kind == "shell":
        hooks.program(path, "echo mine")
    elif kind == "program":
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"#!/usr/bin/env python3\nprint(1)\n")
        path.chmod(0o755)
    elif kind == "link":
        hooks.program(repo / "mine.sh", "echo mine")
        path.symlink_to("../../mine.sh")
    before = hooks.contents(repo / ".git/hooks")
    install(repo, tmp_path)
    shutil.rmtree(repo / ".git/gitcp")
    assert [one["what"] for one in ok(repo, "status")["installed"]] == ["git-hooks"]
    ok(repo, "uninstall", "git-hooks")
    assert hooks.contents(repo / ".git/hooks") == before
    assert uninstall(repo) is None


@pytest.mark.parametrize("scope", ["global", "local"])
def test_uninstall_gives_a_hooks_path_back_though_its_notes_were_deleted(
    tmp_path, repo, scope, monkeypatch
):
    shared = tmp_path / "shared"
    hooks.program(shared / "post-commit", "touch mine")
    # Never the global configuration itself: for tests that is a device.
    own = tmp_path / "gitconfig"
    own.write_text(f"[core]\n\thooksPath = {shared}\n" if scope == "global" else "")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own))
    if scope == "local":
        git(repo, "config", "--local", "core.hooksPath", str(shared))
    install(repo, tmp_path)
    shutil.rmtree(repo / ".git/gitcp")
    ok(repo, "uninstall", "git-hooks")
    assert git_line(repo, "config", "core.hooksPath") == str(shared)
    assert b"gitcp" not in (repo / ".git/config").read_bytes()
    commit(repo)
    assert (repo / "mine").exists()
    # Installed again, and left as it was.
    install(repo, tmp_path)
    assert events.install(discover(repo)).original == str(shared)
    uninstall(repo)
    assert git_line(repo, "config", "core.hooksPath") == str(shared)


@pytest.mark.parametrize("shared", [False, True])
def test_a_copied_repository_leaves_the_hooks_of_the_original_alone(
    tmp_path, repo, shared, monkeypatch
):
    if shared:
        own = tmp_path / "gitconfig"
        own.write_text(f"[core]\n\thooksPath = {tmp_path / 'shared'}\n")
        monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own))
    install(repo, tmp_path)
    before = hooks.contents(repo / ".git")
    copy = tmp_path / "copy"
    shutil.copytree(repo, copy, symlinks=True)
    assert uninstall(copy) is not None
    assert hooks.contents(repo / ".git") == before
    if shared:
        assert git_line(copy, "config", "core.hooksPath") == str(tmp_path / "shared")
        assert not (copy / ".git/gitcp/hooks").exists()
    else:
        assert not (copy / ".git/hooks/post-commit").exists()
    assert uninstall(repo) is not None


@pytest.mark.timeout(60)
def test_a_pipe_in_place_of_a_hook_is_not_read(repo):
    path = repo / ".git" / "hooks" / "post-commit"
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    assert "is neither a file nor a link" in fails(repo, 2, "install", "git-hooks")
    ok(repo, "status")
    ok(repo, "uninstall", "git-hooks")
    assert stat.S_ISFIFO(path.lstat().st_mode)


@pytest.mark.parametrize("how", ["install", "uninstall"])
def test_no_hook_is_moved_through_a_link(repo, tmp_path, how):
    """An unpacked project may bring the link: it leads to another project's hooks."""
    hook = hooks.program(repo / ".git" / "hooks" / "post-commit", "echo brought")
    hook.write_text("#!/usr/bin/env python3\n")
    other = hooks.program(tmp_path / "other" / "post-commit", "echo mine")
    before = other.read_bytes()
    if how == "uninstall":
        hook.unlink()
        ok(repo, "install", "git-hooks")
    (hook.parent / "gitcp-chained").symlink_to(other.parent)
    assert "is a link" in fails(repo, 2, how, "git-hooks")
    assert other.read_bytes() == before
