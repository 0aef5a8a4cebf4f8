"""What a stranger's checkpoint may not bring without asking: beside the list, a general rule."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from gitcp.trust.autoexec import executed, has_dot
from tests.support.clones import save
from tests.support.gitrepo import (
    Entry,
    Executable,
    Symlink,
    commit_all,
    git,
    git_line,
    write_files,
)
from tests.support.inprocess import invoke, ok, partly
from tests.support.odddisk import needs_fuse, odd_disk
from tests.support.terminal import on_screen


def push(repo: Path, files: Mapping[str, Entry]) -> None:
    write_files(repo, files)
    save(repo, "-s", "s")
    ok(repo, "push", "origin", "s")


def reasons(document) -> dict[str, str]:
    return {one["path"]: one["reason"] for one in document["left"]}


def test_git_runs_no_hook_that_a_checkpoint_brought(ann, bob):
    """The folder of hooks is inside the project, and only the configuration says so."""
    for repo in (ann, bob):
        write_files(repo, {"tools/hooks/pre-push": b"#!/bin/sh\n"})
        commit_all(repo, "hooks")
        git(repo, "config", "core.hooksPath", "tools/hooks")
    canary = bob.parent / "canary"
    push(
        ann,
        {
            "tools/hooks/post-commit": Executable(
                f"#!/bin/sh\ntouch {canary}".encode()
            ),
            "tools/other": b"x",
        },
    )
    ok(bob, "pull")
    done = partly(bob, "restore", "s:last", "--yes")
    assert reasons(done) == {"tools/hooks/post-commit": "git's configuration names it"}
    assert (bob / "tools/other").exists()
    git(bob, "commit", "-q", "--allow-empty", "-m", "x")
    assert not canary.exists()
    assert partly(bob, "restore", "s:last", "--to", "../out", "--yes")["plan"]
    assert not (bob.parent / "out/tools/hooks/post-commit").exists()


@pytest.mark.parametrize(
    ("key", "value", "path"),
    [
        ("core.hooksPath", "{top}/Tools", "tools/post-commit"),
        ("core.hooksPath", ".", "post-checkout"),
        ("core.hooksPath", "link", "real/post-commit"),
        ("include.path", "../shared/config", "shared/config"),
        ("includeIf.gitdir:**.path", "{top}/shared/config", "shared/config"),
        ("core.fsmonitor", "tools/monitor", "tools/monitor"),
        ("core.sshCommand", "sh ./tools/ssh -v", "tools/ssh"),
        ("filter.x.clean", "python3 'tools/my clean.py' %f", "tools/my clean.py"),
        ("diff.x.textconv", "tools/conv", "tools/conv"),
        ("diff.x.command", "FOO=1 tools/conv", "tools/conv"),
        ("merge.x.driver", "tools/merge %O %A %B", "tools/merge"),
        ("gpg.ssh.program", "tools/gpg", "tools/gpg"),
        ("credential.https://x.helper", "!tools/cred", "tools/cred"),
        ("alias.go", "!f() { tools/go; }; f", "tools/go"),
        ("core.editor", "tools/edit", "tools/edit"),
        ("pager.log", "tools/page", "tools/page"),
        ("core.pager", "tools/run", "tools"),
        ("sequence.editor", "tools/edit", "tools/edit"),
        ("gpg.ssh.defaultKeyCommand", "tools/key", "tools/key"),
        ("imap.tunnel", "tools/tunnel", "tools/tunnel"),
        ("alias.up", "-c core.sshCommand=tools/ssh fetch", "tools/ssh"),
    ],
)
def test_what_gits_configuration_names_stays_out(ann, bob, key, value, path):
    """A path may also be replaced by one that holds it: a link instead of a folder."""
    for repo in (ann, bob):
        write_files(repo, {"real/x": b"x", "link": Symlink(b"real")})
        commit_all(repo, "x")
    git(bob, "config", key, value.replace("{top}", str(bob)))
    there: bytes | Symlink = Symlink(b"other") if path == "tools" else b"x"
    push(ann, {path: there, "free": b"x"})
    ok(bob, "pull")
    assert reasons(partly(bob, "restore", "s:last", "--yes")) == {
        path: "git's configuration names it"
    }
    assert (bob / "free").exists()
    assert not os.path.lexists(bob / path)
    ok(bob, "restore", "s:last", "--yes", "--trust")
    assert os.path.lexists(bob / path)


def test_dot_paths_and_new_programs_stay_out_without_a_question(ann, bob):
    for repo in (ann, bob):
        write_files(
            repo,
            {
                "a.sh": Executable(b"old"),
                "b.sh": b"old",
                ".toolrc": b"old",
                ".gone": b"old",
            },
        )
        commit_all(repo, "x")
    (ann / ".gone").unlink()
    push(
        ann,
        {
            "a.sh": Executable(b"new"),
            "b.sh": Executable(b"old"),
            "new.sh": Executable(b"new"),
            ".toolrc": b"new",
            "x/.new/y": b"new",
            "x/y": b"new",
        },
    )
    ok(bob, "pull")
    dot = "a dot path that differs in HEAD"
    runs = "it would become executable"
    left = {
        "b.sh": runs,
        "new.sh": runs,
        ".toolrc": dot,
        ".gone": dot,
        "x/.new/y": dot,
    }
    assert reasons(ok(bob, "restore", "s:last", "--dry-run")) == left
    done = invoke(bob, "restore", "s:last", "--yes")
    assert done.returncode == 3
    said = done.stderr.decode()
    assert "5 paths of a checkpoint that was made elsewhere were left out" in said
    assert all(said.count(f"{name}: {why}") == 1 for name, why in left.items())
    assert (bob / "a.sh").read_bytes() == b"new"
    assert (bob / "x/y").exists()
    assert (bob / ".toolrc").read_bytes() == b"old"
    assert not os.access(bob / "b.sh", os.X_OK)
    # What HEAD has is Bob's, also where the file that is there is another.
    (bob / ".toolrc").write_bytes(b"mine")
    git(bob, "rm", "-q", "--cached", ".gone")
    git(ann, "checkout", "-q", "HEAD", "--", ".toolrc")
    push(ann, {"z": b"1"})
    ok(bob, "pull")
    left = reasons(partly(bob, "restore", "s/main:last", "--yes"))
    assert ".toolrc" not in left
    assert (bob / ".toolrc").read_bytes() == b"old"
    assert ok(bob, "restore", "s/main:1", "--yes", "--trust")["left"] == []
    assert (bob / ".toolrc").read_bytes() == b"new"
    assert not (bob / ".gone").exists()


@pytest.mark.parametrize("answer", ["y", "n"])
def test_at_a_terminal_one_question_shows_what_they_hold(ann, bob, answer):
    write_files(bob, {".toolrc": b"first\nsecond\n"})
    commit_all(bob, "x")
    push(
        ann,
        {
            ".toolrc": b"first\nse\x1b[31mcond!\n",
            "go.sh": Executable(b"#!/bin/sh\nrun me\n"),
            ".envrc": b"never asked about",
        },
    )
    ok(bob, "pull")
    status, shown = on_screen(
        bob, "restore", "s:last", answers=f"y\n{answer}\n".encode()
    )
    assert shown.count("Bring these 2 paths, too?") == 1
    assert "+se\\x1b[31mcond!" in shown
    assert "-second" in shown
    assert "+run me" in shown
    assert "never asked about" not in shown
    assert "\x1b[31m" not in shown
    # What is on the list needs trust whatever the answer is.
    assert status == 3
    assert not (bob / ".envrc").exists()
    assert (bob / "go.sh").exists() == (answer == "y")
    assert (b"cond!" in (bob / ".toolrc").read_bytes()) == (answer == "y")


def test_names_are_compared_as_loose_file_systems_do():
    for path in (
        ".claude\u200c/settings.json",
        ".CLAUDE./x",
        "Package.JSON",
        "\u200d.envrc",
        "a/.vSCode/x",
        "sub/.env.local",
        "gradle/wrapper/x.jar",
        "mise/config.toml",
        "hooks/hooks.json",
        "vite.config.ts",
        "docker-compose.prod.yml",
        ".hg/hgrc",
        "node_modules/x/y",
        ".agents/skills/x",
        "tools/bazel",
        "crate/Cargo.toml",
        "lib/x.gemspec",
        "Gems.rb",
        "mix.exs",
        "CLAUDE.team.md",
        "AGENTS.local.md",
        "graphql.config.ts",
        "pylintrc",
        "buildSrc/src/x.kt",
        "app/local.gradle",
        "docs/conf.py",
        "\u212aILO.json",
        "conf\u2060test.py",
        ".env\u00adrc",
        "\uff0evscode/x",
        "CLAUDE\uff0emd",
        "Makefile::$DATA",
        "a\\.vscode\\x",
        "VSCODE~1/tasks.json",
        "x/CLAUDE~2.MD",
    ):
        assert executed(path.encode()), path
    for path in (
        "src/env.py",
        "gradle",
        "config.ts",
        "bazel",
        "a.env",
        "mk",
        "x/hooks",
        "claudette.md",
        "src/conf.py",
        "x.configs.ts",
        "a.py~",
        "a.~1~",
        "longername~1",
        "\u2764\ufe0f.md",
    ):
        assert not executed(path.encode()), path
    assert has_dot("a/\u200c.x/y".encode())
    assert not has_dot(b"a.b/c.d")


@needs_fuse
@pytest.mark.parametrize(
    ("path", "owned"),
    [
        ("conf\u2060test.py", "conftest.py"),
        ("MAKE\u00adFILE", "Makefile"),
        (".vs\ufe0fcode/new.json", ".vscode/tasks.json"),
        ("Claude.MD", "CLAUDE.md"),
    ],
)
def test_a_disk_that_ignores_code_points_shows_no_strangers_file(ann, bob, path, owned):
    write_files(bob, {owned: b"mine"})
    commit_all(bob, "x")
    push(ann, {path: b"theirs", "free": b"x"})
    with odd_disk(bob.parent / "disk", fold=True, ignore=True) as disk:
        copy = disk / "bob"
        shutil.copytree(bob, copy, symlinks=True)
        ok(copy, "pull")
        left = reasons(partly(copy, "restore", "s:last", "--yes"))
        assert left[path] == "tools execute it by themselves"
        assert (copy / "free").exists()
        assert (copy / owned).read_bytes() == b"mine"
        assert os.listdir((copy / owned).parent).count(Path(path).name) == 0


def test_pull_and_show_list_what_a_restore_would_leave_out(ann, bob):
    path = ann.parent / "theirs.jsonl"
    said = b'{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"x"}}'
    path.write_bytes(said + b"\n")
    write_files(ann, {"Makefile": b"x", "\x1b.rc": b"x", ".rc": b"x", "code": b"x"})
    ok(ann, "save", "-s", "s", "--transcript", str(path))
    ok(ann, "push")
    shown = invoke(bob, "pull")
    text = shown.stdout.decode()
    assert "a restore leaves out 2 paths that differ from HEAD" in text
    assert "Makefile (tools execute it by themselves)" in text
    assert "its conversation (claude-code) is not handed to a client" in text
    told = ok(bob, "show", "s:1")["withheld"]
    assert {one["path"] for one in told["paths"]} == {"Makefile", ".rc"}
    assert told["conversation"] == "claude-code"
    assert "withheld" in invoke(bob, "show", "s:1").stdout.decode()
    git(bob, "update-ref", "-d", "refs/gitcp/s/s/main")
    git(bob, "update-ref", "-d", "refs/gitcp/r/origin/s/main")
    (branch,) = ok(bob, "pull")["branches"]
    assert branch["withheld"] == told
    # One's own has nothing to tell.
    assert ok(ann, "show", "s:1")["withheld"] == {"paths": [], "conversation": None}


def test_import_lists_it_as_pull_does(ann, bob):
    path = ann.parent / "theirs.jsonl"
    said = b'{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"x"}}'
    path.write_bytes(said + b"\n")
    write_files(ann, {"Makefile": b"x", ".rc": b"x", "code": b"x"})
    ok(ann, "save", "-s", "s", "--transcript", str(path))
    bundle = ann.parent / "s.bundle"
    ok(ann, "export", "s:last", "-o", str(bundle))
    text = invoke(bob, "import", str(bundle)).stdout.decode()
    assert "a restore leaves out 2 paths that differ from HEAD" in text
    assert "Makefile (tools execute it by themselves)" in text
    assert "its conversation (claude-code) is not handed to a client" in text
    told = ok(bob, "show", "s:1")["withheld"]
    assert {one["path"] for one in told["paths"]} == {"Makefile", ".rc"}
    # What is here already was told when it came.
    (again,) = ok(bob, "import", str(bundle))["branches"]
    assert again["result"] == "up-to-date"
    assert again["withheld"] == {"paths": [], "conversation": None}
    git(bob, "update-ref", "-d", "refs/gitcp/s/s/main")
    (branch,) = ok(bob, "import", str(bundle))["branches"]
    assert branch["withheld"] == told


LINKED = "a link or hook that tools obey leads to it"


@pytest.mark.parametrize(
    ("links", "path"),
    [
        ({"CLAUDE.md": b"docs/ai.md"}, "docs/ai.md"),
        ({".vscode": b"conf/code"}, "conf/code/tasks.json"),
        ({"sub/.husky": b"../conf/hooks"}, "conf/hooks/pre-push"),
        ({".envrc": b"one", "one": b"two/rc"}, "two/rc"),
        ({".envrc": b"dir/rc", "dir": b"real"}, "real/rc"),
        ({".envrc": b"{top}/conf/rc"}, "conf/rc"),
        ({".vscode/tasks.json": b"../Tasks.json"}, "tasks.json"),
    ],
)
@pytest.mark.parametrize("how", ["tracked", "untracked", "deleted"])
def test_what_the_users_own_links_make_tools_obey_stays_out(ann, bob, links, path, how):
    """The name that tools look for is a link; its target has any name."""
    files = {
        name: Symlink(target.replace(b"{top}", os.fsencode(bob)))
        for name, target in links.items()
    }
    write_files(bob, files)
    if how != "untracked":
        commit_all(bob, "links")
    if how == "deleted":
        (bob / next(iter(links))).unlink()
    push(ann, {path: b"theirs", "free": b"x"})
    ok(bob, "pull")
    assert reasons(partly(bob, "restore", "s:last", "--yes"))[path] == LINKED
    assert (bob / "free").exists()
    assert not (bob / path).exists()


@pytest.mark.parametrize(
    ("hook", "path"),
    [
        (Symlink(b"../../tools/check"), "tools/check"),
        (Executable(b'#!/bin/sh\nx; "$(git top)"/tools/check\n'), "tools/check"),
        (Executable(b"#!/bin/sh\n# free\nexec python3 check.py\n"), "check.py"),
    ],
)
def test_what_gits_own_hooks_lead_to_stays_out(ann, bob, hook, path):
    write_files(bob, {path: Executable(b"#!/bin/sh\n")})
    commit_all(bob, "x")
    git(bob, "push", "-q", "origin", "HEAD:refs/heads/main")
    git(ann, "pull", "-q", "origin", "main")
    write_files(bob, {".git/hooks/pre-commit": hook})
    push(ann, {path: Executable(b"#!/bin/sh\nexit 1\n"), "free": b"x"})
    ok(bob, "pull")
    assert reasons(partly(bob, "restore", "s:last", "--yes")) == {path: LINKED}
    assert (bob / "free").exists()
    assert (bob / path).read_bytes() == b"#!/bin/sh\n"


def test_a_dot_link_is_asked_about_and_a_link_to_a_package_is_not(ann, bob):
    write_files(
        bob,
        {
            ".toolrc": Symlink(b"conf/tool"),
            ".all": Symlink(b"."),
            "node_modules/p": Symlink(b"../packages/p"),
            "plain": Symlink(b"code"),
        },
    )
    commit_all(bob, "links")
    push(ann, {"conf/tool": b"x", "packages/p/index.js": b"x", "code/a": b"x"})
    ok(bob, "pull")
    left = reasons(partly(bob, "restore", "s:last", "--yes"))
    assert left["conf/tool"] == "a dot link leads to it"
    assert (bob / "packages/p/index.js").exists()
    assert (bob / "code/a").exists()


def test_a_stranger_does_not_choose_what_counts_as_the_users_own(ann, bob):
    """A fork's worktree has a HEAD; what HEAD has at a path is never withheld."""
    mine = git_line(bob, "rev-parse", "HEAD")
    write_files(ann, {".envrc": b"theirs", "code": b"x"})
    commit_all(ann, "theirs")
    git(ann, "push", "-q", "origin", "HEAD:refs/heads/theirs")
    push(ann, {"code": b"y"})
    git(bob, "fetch", "-q", "origin")
    ok(bob, "pull")
    forked = invoke(bob, "fork", "s:last", "f", "--worktree", "../there")
    assert forked.returncode == 3
    assert b"HEAD is the same there as here" in forked.stderr
    there = bob.parent / "there"
    assert git_line(there, "rev-parse", "HEAD") == mine
    assert ".envrc" in reasons(partly(there, "restore", "s/main:last", "--yes"))
    assert not (there / ".envrc").exists()
    # What a branch of his has is his own.
    git(bob, "branch", "-q", "b", "origin/theirs")
    partly(bob, "fork", "s:last", "g", "--worktree", "../here")
    assert git_line(bob.parent / "here", "rev-parse", "HEAD") != mine
