"""`gitcp install skill`: what agents are given, and no file of other origin touched."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

from gitcp.agents import front_matter
from gitcp.cli.app import COMMANDS
from gitcp.clients import skill
from tests.support.gitrepo import tree_bytes
from tests.support.inprocess import fails, invoke, ok

IN_PROJECT = {
    ".claude/commands/checkpoint.md",
    ".claude/commands/checkpoints.md",
    ".claude/commands/restore.md",
    ".claude/commands/rollback.md",
    ".claude/commands/undo.md",
    ".claude/commands/prune.md",
    ".claude/skills/gitcp/SKILL.md",
    ".agents/skills/gitcp/SKILL.md",
    ".cursor/rules/gitcp.mdc",
}
OF_USER = {path for path in IN_PROJECT if path.startswith((".claude/", ".agents/"))} | {
    ".cursor/skills/gitcp/SKILL.md"
}


def files(root: Path) -> set[str]:
    return {
        path.decode()
        for path, node in tree_bytes(root).items()
        if node[0] == "file" and path.startswith(b".")
    }


def test_a_project_gets_commands_and_skills_and_gives_them_back(repo):
    before = tree_bytes(repo)
    done = ok(repo, "install", "skill", "--scope", "project")["done"]
    assert [one["changed"] for one in done] == [True]
    assert files(repo) - {".gitignore"} == IN_PROJECT
    installed = tree_bytes(repo)
    again = ok(repo, "install", "skill", "--scope", "project")["done"]
    assert [one["changed"] for one in again] == [False]
    assert tree_bytes(repo) == installed
    ok(repo, "uninstall", "skill")
    assert tree_bytes(repo) == before


def test_a_user_gets_them_everywhere(repo, sealed, tmp_path):
    (sealed / ".claude").mkdir()
    before = tree_bytes(sealed)
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    ok(nowhere, "install", "skill")
    assert files(sealed) == OF_USER
    assert b"skill" in invoke(repo, "-v", "status").stdout
    ok(repo, "uninstall", "skill")
    # The directory was there before, and empty.
    assert tree_bytes(sealed) == before


def test_a_client_that_is_here_gets_slash_commands_and_gives_them_back(repo):
    (repo / ".gemini").mkdir()
    (repo / ".opencode").mkdir()
    before = tree_bytes(repo)
    (done,) = ok(repo, "install", "skill", "--scope", "project")["done"]
    gemini = repo / ".gemini" / "commands" / "gitcp" / "restore.toml"
    read = tomllib.loads(gemini.read_text())
    assert read["description"].startswith("Bring the files")
    assert "if not all: {{args}}\n" in read["prompt"]
    assert "allowed-tools" not in gemini.read_text()
    opencode = repo / ".opencode" / "commands" / "gitcp" / "restore.md"
    assert "if not all: $ARGUMENTS\n" in opencode.read_text()
    notes = "\n".join(done["notes"])
    assert "Gemini CLI: /gitcp:checkpoint, " in notes
    assert "OpenCode: /gitcp/checkpoint, " in notes
    ok(repo, "uninstall", "skill")
    assert tree_bytes(repo) == before


def test_claude_code_may_keep_its_files_elsewhere(repo, tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    ok(repo, "install", "skill")
    assert (tmp_path / "config" / "commands" / "checkpoint.md").exists()


@pytest.mark.parametrize("name", [".claude", ".claude/skills", ".agents"])
def test_no_link_leads_out_of_the_project(repo, tmp_path, name):
    """The link may have come with the project."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = repo / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(elsewhere)
    before = tree_bytes(repo)
    said = fails(repo, 2, "install", "skill", "--scope", "project")
    assert "leads out of the project" in said
    assert list(elsewhere.iterdir()) == []
    assert tree_bytes(repo) == before
    link.unlink()
    (repo / "inside").mkdir()
    link.symlink_to(repo / "inside")
    ok(repo, "install", "skill", "--scope", "project")


def test_files_of_the_users_own_stay(repo):
    own = repo / ".claude" / "commands" / "restore.md"
    own.parent.mkdir(parents=True)
    own.write_text("my own restore\n")
    link = repo / ".claude" / "commands" / "prune.md"
    link.symlink_to("elsewhere.md")
    before = tree_bytes(repo)
    said = fails(repo, 3, "install", "skill", "--scope", "project")
    assert "restore.md is not gitcp's" in said
    assert "prune.md is not gitcp's" in said
    assert own.read_text() == "my own restore\n"
    assert link.is_symlink()
    assert (repo / ".claude" / "commands" / "checkpoint.md").exists()
    ok(repo, "uninstall", "skill")
    assert tree_bytes(repo) == before


def test_a_file_that_was_changed_stays_and_is_told(repo):
    ok(repo, "install", "skill", "--scope", "project")
    changed = repo / ".claude" / "commands" / "restore.md"
    text = changed.read_text().replace("Restore", "Bring back")
    changed.write_text(text)
    assert "was changed since" in fails(
        repo, 3, "install", "skill", "--scope", "project"
    )
    assert "was changed since" in fails(repo, 3, "uninstall", "skill")
    assert files(repo) - {".gitignore"} == {".claude/commands/restore.md"}
    assert changed.read_text() == text


@pytest.mark.parametrize("more", ["mine\n", "\n", ""])
def test_a_file_that_was_added_to_stays_and_is_told(repo, more):
    ok(repo, "install", "skill", "--scope", "project")
    changed = repo / ".claude" / "commands" / "restore.md"
    text = changed.read_text() + more if more else changed.read_text().rstrip()
    changed.write_text(text)
    assert "was changed since" in fails(repo, 3, "uninstall", "skill")
    assert changed.read_text() == text


def test_a_file_of_an_older_gitcp_is_brought_up_to_date(repo):
    old = repo / ".claude" / "skills" / "gitcp" / "SKILL.md"
    ok(repo, "install", "skill", "--scope", "project")
    new = old.read_bytes()
    mark = skill.mark_of(new)
    assert mark is not None
    older = skill.SkillFile(old, b"---\nname: gitcp\n---\nolder\n", "Claude Code")
    old.write_bytes(skill.marked(older, mark.made))
    ok(repo, "install", "skill", "--scope", "project")
    assert old.read_bytes() == new


def test_what_has_no_place_is_refused(repo, tmp_path):
    assert "--scope user" in fails(repo, 2, "install", "skill", "--scope", "local")
    assert "not a git repository" in fails(
        tmp_path, 2, "install", "skill", "--scope", "project"
    )


@pytest.mark.parametrize(
    "one", skill.project_files(Path("/p")), ids=lambda one: str(one.path)
)
def test_front_matter_is_what_the_clients_read(one):
    found = front_matter.split(one.content.decode())
    assert isinstance(found.fields["description"], str)
    # What the client with the least room shows of it.
    assert len(found.fields["description"]) < 160
    if one.path.name == "SKILL.md":
        assert found.fields["name"] == one.path.parent.name == "gitcp"


def test_every_command_that_an_agent_is_told_of_exists():
    """And every option: they are asked for by `--help`."""
    helps: dict[str, str] = {}
    for one in skill.project_files(Path("/p")):
        text = one.content.decode().replace("\\\n", " ")
        for command, rest in re.findall(r"gitcp ([a-z]+)([^`\n)]*)", text):
            if command in {"install", "says", "refuses", "go"}:
                continue
            assert command in {*COMMANDS, "prune"}, command
            if command not in COMMANDS:
                continue
            if command not in helps:
                helps[command] = invoke(Path("/"), command, "--help").stdout.decode()
            for option in re.findall(r"(?<=\s)--?[a-z][a-z-]*", rest):
                assert option in helps[command], (command, option)


def test_a_command_runs_nothing_that_changes_files_without_a_question():
    """What a slash command lets pass begins with its harmless option."""
    allowed = {
        one.path.stem: re.findall(r"Bash\((.*?)\)", one.content.decode())
        for one in skill.project_files(Path("/project"))
        if one.path.stem in {"restore", "rollback", "undo", "prune"}
    }
    assert allowed["restore"] == [
        "gitcp restore --dry-run:*",
        "gitcp log:*",
        "gitcp show:*",
    ]
    for found in allowed.values():
        for one in found:
            assert one.endswith((" --yes", " last", " --dry-run")) or any(
                word in one for word in ("--dry-run:*", "log:*", "show:*", "du:*")
            ), one


@pytest.mark.parametrize("how", ["--continue", "--abort"])
def test_a_dry_run_ends_no_restore(repo, how):
    """The slash command may run everything that begins with `restore --dry-run`."""
    assert "take no other" in fails(repo, 2, "restore", "--dry-run", how)


@pytest.mark.timeout(60)
def test_a_pipe_in_place_of_a_file_is_not_read(repo):
    path = repo / ".claude" / "commands" / "restore.md"
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    reason = fails(repo, 3, "install", "skill", "--scope", "project")
    assert "restore.md is not gitcp's" in reason
    ok(repo, "status")
    ok(repo, "uninstall", "skill")
    assert path.is_fifo()


def test_a_skill_of_an_older_gitcp_is_seen_and_removed(repo, sealed):
    ok(repo, "install", "skill")
    (sealed / ".claude" / "commands" / "undo.md").unlink()
    (found,) = ok(repo, "status")["installed"]
    assert "run `gitcp install skill --scope user` again" in found["notes"][0]
    ok(repo, "install", "skill")
    (found,) = ok(repo, "status")["installed"]
    assert found["notes"] == []
    assert (sealed / ".claude" / "commands" / "undo.md").exists()
