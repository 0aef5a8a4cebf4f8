"""`gitcp uninstall --everything`: nothing of gitcp's is left, nothing of others' is touched."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from gitcp.errors import NothingToDoError
from tests.support.agent import Agent
from tests.support.gitrepo import git, git_line, run_gitcp, tree_bytes
from tests.support.inprocess import fails, invoke, ok


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    for name, where in {
        "HOME": "home",
        "CLAUDE_CONFIG_DIR": "home/claude",
        "CODEX_HOME": "home/codex",
        "XDG_CONFIG_HOME": "home/config",
        "XDG_DATA_HOME": "home/data",
        "XDG_STATE_HOME": "home/state",
    }.items():
        monkeypatch.setenv(name, str(tmp_path / where))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def own_hook(repo: Path) -> None:
    (repo / ".git" / "hooks").mkdir(exist_ok=True)
    own = repo / ".git" / "hooks" / "post-commit"
    own.write_text("#!/bin/sh\necho mine\n")
    own.chmod(0o755)


def install(repo: Path) -> None:
    ok(repo, "install", "git-hooks", "claude-code", "codex", "opencode", "skill")
    ok(repo, "install", "claude-code", "--scope", "local")
    ok(repo, "install", "skill", "gemini", "--scope", "project")
    ok(repo, "config", "maxFileSize", "5m")
    ok(repo, "save", "-m", "one")


def beside_objects(top: Path) -> dict[bytes, object]:
    # Git's own: what status and gc learn. And the folder where all programs keep state.
    learnt = (b"/.git/objects", b"/.git/index", b"/.git/packed-refs", b"/reftable/")
    ours = (*learnt, b"/home/state")
    return {
        path: node
        for path, node in tree_bytes(top).items()
        if not any(part in b"/" + path for part in ours)
    }


def test_nothing_of_gitcps_is_left(repo, home, tmp_path):
    own_hook(repo)
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    before = beside_objects(tmp_path)
    install(repo)
    ok(tmp_path / "linked", "save", "-m", "in the linked one")
    (repo / ".git" / "gitcp-numbers").write_text("1\n")
    done = ok(repo, "uninstall", "--everything", "-y")
    assert done["checkpoints"]["removed"] is True
    assert done["settings"] == ["gitcp.maxfilesize"]
    scopes = {(one["what"], one["scope"]) for one in done["done"]}
    assert ("claude-code", "user") in scopes
    assert ("claude-code", "local") in scopes
    after = beside_objects(tmp_path)
    assert {path for path in after if b"gitcp" in path} == set()
    assert after == before
    assert git(repo, "for-each-ref", "refs/gitcp") == b""
    assert b"gitcp" not in git(repo, "config", "--local", "--list")
    assert git(repo, "fsck", "--strict", "--no-dangling") == b""
    assert (
        repo / ".git" / "hooks" / "post-commit"
    ).read_text() == "#!/bin/sh\necho mine\n"
    # There is nothing more to do.
    assert "gitcp has nothing here" in fails(repo, 1, "uninstall", "--everything", "-y")


def test_git_hooks_are_found_without_the_state(repo, home, tmp_path):
    own_hook(repo)
    before = tree_bytes(repo / ".git" / "hooks")
    install(repo)
    shutil.rmtree(repo / ".git" / "gitcp")
    ok(repo, "uninstall", "--everything", "-y")
    assert tree_bytes(repo / ".git" / "hooks") == before
    assert not (repo / ".git" / "gitcp").exists()


def test_a_dry_run_shows_everything_and_changes_nothing(repo, tmp_path):
    install(repo)
    before = tree_bytes(tmp_path)
    shown = invoke(repo, "uninstall", "--everything", "--dry-run").stdout.decode()
    for word in (
        "git-hooks in",
        "claude-code (local) in",
        "skill (project) in",
        "settings gitcp.maxfilesize",
        str(repo / ".git" / "gitcp"),
        "In your own settings, for all projects:",
        "codex in",
        "Checkpoints: 1 branch",
        "Not on any remote that gitcp knows of:",
        "main/main",
        "gitcp export main:last -o ../main.bundle",
    ):
        assert word in shown
    assert tree_bytes(tmp_path) == before


def test_without_a_terminal_nothing_is_removed_without_asking(repo, tmp_path):
    install(repo)
    before = tree_bytes(tmp_path)
    assert "--yes" in fails(repo, 23, "uninstall", "--everything")
    assert tree_bytes(tmp_path) == before


def test_each_part_has_its_own_question(repo, home, monkeypatch):
    install(repo)
    tip = ok(repo, "log")["checkpoints"][0]
    answers = Answers(1, 0, 0)
    monkeypatch.setattr("gitcp.cli.emit.Output.confirm", answers.confirm)
    done = invoke(repo, "uninstall", "--everything")
    assert done.returncode == 0, done.stderr
    assert len(answers.asked) == len(WORDS)
    for word, question in zip(WORDS, answers.asked, strict=True):
        assert word in question
    assert b"Kept the checkpoints" in done.stdout
    # The checkpoints, and what shows that they were made here.
    assert "gitcp" in (home / "claude" / "settings.json").read_text()
    left = ok(repo, "log")["checkpoints"][0]
    assert (left["id"], left["foreign"]) == (tip["id"], False)
    assert not (repo / ".claude" / "settings.local.json").exists()
    assert not list((repo / ".git" / "hooks").glob("*gitcp*"))
    # The one setting that stays: the hooks in the user's own settings go on elsewhere.
    config = git(repo, "config", "--local", "--list").decode().splitlines()
    assert [one for one in config if "gitcp" in one] == ["gitcp.autocheckpoint=false"]
    assert b"gitcp.autoCheckpoint is now false" in done.stderr


WORDS = ("from this project", "your own settings", "all checkpoints")


class Answers:
    """Answers the questions in turn."""

    def __init__(self, *answers: int) -> None:
        self.left = list(answers)
        self.asked: list[str] = []

    def confirm(self, question: str, *, yes: bool) -> None:
        assert not yes
        self.asked.append(question)
        if not self.left.pop(0):
            raise NothingToDoError("no")


def test_the_own_settings_of_the_user_can_be_left(repo, home):
    install(repo)
    ok(repo, "uninstall", "--everything", "--scope", "project", "-y")
    assert "gitcp hook claude-code" in (home / "claude" / "settings.json").read_text()
    assert not (repo / ".claude").exists()
    assert git(repo, "for-each-ref", "refs/gitcp") == b""
    # They do nothing here, and the user is told where that might surprise.
    Agent(repo, home / "claude").turn("one", a="1")
    assert git(repo, "for-each-ref", "refs/gitcp") == b""
    assert not list((repo / ".git").glob("*gitcp*"))
    for said in (
        invoke(repo, "install", "claude-code").stderr,
        invoke(repo, "status").stdout,
    ):
        assert b"gitcp.autoCheckpoint is false" in said
    ok(repo, "uninstall", "--everything", "-y")
    assert b"gitcp" not in git(repo, "config", "--local", "--list")


def everything_stored(repo: Path) -> bytes:
    return git(repo, "cat-file", "--batch-all-objects", "--batch")


def worked(repo: Path, home: Path) -> None:
    """A turn with a file that git never has, in a pack that git relies on afterwards."""
    agent = Agent(repo, home / "claude")
    agent.turn("words of the conversation", draft="only in checkpoints", kept="in git")
    git(repo, "add", "kept")
    git(repo, "commit", "-q", "-m", "kept")
    (repo / "draft").unlink()
    agent.turn("more words", kept="in git and here")


def test_deleted_checkpoints_leave_no_object_in_what_gitcp_wrote(repo, home):
    worked(repo, home)
    # What pruning has removed may wait for git's grace.
    ok(repo, "prune", "--yes", "--keep-last", "1")
    assert b"only in checkpoints" in everything_stored(repo)
    (repo / "kept").write_text("stashed")
    ok(repo, "save")
    git(repo, "stash", "-q")
    stash = git_line(repo, "rev-parse", "stash")
    git(repo, "stash", "drop", "-q")
    own = git_line(repo, "commit-tree", "-m", "dangling", "HEAD^{tree}")
    done = invoke(repo, "uninstall", "--everything", "-y")
    stored = everything_stored(repo)
    assert b"words" not in stored
    assert b"only in checkpoints" not in stored
    assert git(repo, "cat-file", "commit", own)
    assert git(repo, "show", f"{stash}:kept") == b"stashed"
    assert b"because it used their packs" in done.stderr
    assert git(repo, "fsck", "--strict", "--no-dangling") == b""


def test_what_git_has_packed_stays_and_is_counted(repo, home):
    worked(repo, home)
    git(repo, "gc", "-q")
    remains = ok(repo, "uninstall", "--everything", "-y")["checkpoints"]["remains"]
    found = git(repo, "fsck", "--unreachable", "--no-progress").splitlines()
    assert remains["objects"] == len(found) > 0
    git(repo, "gc", "-q", "--prune=now")
    assert b"words" not in everything_stored(repo)


def test_the_number_of_objects_that_stay_is_said(repo, home):
    worked(repo, home)
    git(repo, "gc", "-q")
    told = invoke(repo, "uninstall", "--everything", "-y").stderr.decode()
    assert "still in .git/objects: " in told
    assert "`git gc --prune=now` removes these" in told


def test_objects_go_at_the_next_try_where_git_was_at_work(repo, home):
    worked(repo, home)
    git(repo, "config", "gitcp.lockTimeout", "0")
    (repo / ".git" / "index.lock").touch()
    done = invoke(repo, "uninstall", "--everything", "-y")
    assert b"the objects of the deleted checkpoints are still there" in done.stderr
    (repo / ".git" / "index.lock").unlink()
    done = invoke(repo, "uninstall", "--everything", "-y")
    assert b"Deleted what was left of checkpoints\n" in done.stdout
    assert b"words" not in everything_stored(repo)
    assert not (repo / ".git" / "gitcp").exists()


def test_a_setting_that_stays_is_not_counted_as_removed(repo):
    install(repo)
    ok(repo, "config", "maxFileSize", "--unset")
    git(repo, "config", "gitcp.autoCheckpoint", "false")
    done = invoke(repo, "uninstall", "--everything", "--scope", "project", "-y")
    assert b" setting\n" not in done.stdout
    assert b"gitcp.autoCheckpoint is now false" in done.stderr
    assert git_line(repo, "config", "gitcp.autoCheckpoint") == "false"


def test_what_is_on_a_remote_is_not_only_here(ann):
    ok(ann, "save", "-s", "shared", "-m", "one")
    ok(ann, "push")
    ok(ann, "save", "-s", "own", "-m", "two", "--allow-empty")

    def only_here() -> list[str]:
        found = ok(ann, "uninstall", "--everything", "--dry-run")["checkpoints"]
        return [one["session"] for one in found["only_here"]]

    assert only_here() == ["own"]
    ok(ann, "save", "-s", "shared", "-m", "three", "--allow-empty")
    assert only_here() == ["own", "shared"]


def test_restored_conversations_go_unless_they_were_continued(repo, home):
    agent = Agent(repo, home / "claude")
    agent.turn("one", a="1")
    agent.turn("two", a="2")
    first = agent.line()[1]
    unused = ok(repo, "restore", first.id, "-y")["resume"].split()[-1]
    used = ok(repo, "restore", first.id, "-y", "--conversation")["resume"].split()[-1]
    written = {path.stem: path for path in (home / "claude").rglob("*.jsonl")}
    with written[used].open("ab") as file:
        file.write(b'{"type":"user"}\n')
    done = ok(repo, "uninstall", "--everything", "-y")
    assert done["conversations"] == [str(written[unused])]
    assert done["continued"] == [str(written[used])]
    assert not written[unused].exists()
    assert written[used].exists()
    assert agent.transcript.exists()


@pytest.mark.parametrize("ident", [None, "mine", "-home-me-projects-mine"])
def test_a_copied_repository_does_not_say_what_goes(repo, home, ident):
    agent = Agent(repo, home / "claude")
    agent.turn("one", a="1")
    ok(repo, "restore", agent.line()[-1].id, "-y")
    mine = home / "mine"
    mine.mkdir()
    letter = mine / "letter"
    letter.write_text("dear")
    digest = hashlib.sha256(b"dear").hexdigest()
    record = home / "state" / "gitcp" / "installed" / "x.jsonl"
    record.parent.mkdir(parents=True)
    record.write_text("{}")
    for path in (repo / ".git" / "gitcp" / "agents").rglob("*.json"):
        state = json.loads(path.read_bytes())
        state |= {"copied": [str(mine)], "written": {str(letter): digest}}
        state["transcript"] = str(record)
        if ident is not None:
            state["agent_session"] = ident
        path.write_text(json.dumps(state))
    done = ok(repo, "uninstall", "--everything", "-y")
    assert done["conversations"] == []
    assert letter.exists()
    assert record.exists()


def test_what_was_noted_for_a_client_without_a_file_goes(repo, home):
    spool = home / "state" / "gitcp" / "cursor" / "abc.jsonl"
    payload = {
        "conversation_id": "abc",
        "workspace_roots": [str(repo)],
        "prompt": "hello",
        "hook_event_name": "beforeSubmitPrompt",
    }
    raw = json.dumps(payload).encode()
    run_gitcp(repo, "hook", "cursor", "beforeSubmitPrompt", input=raw)
    assert spool.exists()
    done = ok(repo, "uninstall", "--everything", "-y")
    assert done["conversations"] == [str(spool)]
    assert not spool.parent.parent.exists()


def test_in_a_shared_repository_no_file_goes_on_the_word_of_others(repo, home):
    git(repo, "config", "core.sharedRepository", "group")
    agent = Agent(repo, home / "claude")
    agent.turn("one", a="1")
    ok(repo, "restore", agent.line()[-1].id, "-y")
    # As another member of the group could write it.
    mine = home / "mine"
    mine.mkdir()
    (mine / "letter").write_text("dear")
    for path in (repo / ".git" / "gitcp" / "agents").rglob("*.json"):
        state = json.loads(path.read_bytes())
        path.write_text(json.dumps({**state, "copied": [str(mine)]}))
    done = ok(repo, "uninstall", "--everything", "-y")
    assert done["conversations"] == []
    assert str(mine) in done["continued"]
    assert (mine / "letter").exists()


def test_what_was_changed_by_hand_is_left_and_told(repo):
    install(repo)
    (page,) = (repo / ".claude" / "skills").rglob("SKILL.md")
    page.write_text(page.read_text().replace("gitcp save", "gitcp  save"))
    done = invoke(repo, "uninstall", "--everything", "--json", "-y")
    assert done.returncode == 3
    assert "was changed since" in json.loads(done.stderr)["error"]["left"][0]
    assert page.exists()
    # All else is gone.
    assert not (repo / ".git" / "gitcp").exists()


def test_an_interrupted_restore_comes_first(repo):
    install(repo)
    (repo / ".git" / "gitcp" / "restore.json").write_text("{")
    assert invoke(repo, "uninstall", "--everything", "-y").returncode in {15, 25}
    assert git(repo, "for-each-ref", "refs/gitcp") != b""


@pytest.mark.ref_files
def test_damaged_refs_go_too(repo):
    install(repo)
    damaged = repo / ".git" / "refs" / "gitcp" / "s" / "main" / "broken"
    damaged.write_text("")
    ok(repo, "uninstall", "--everything", "-y")
    assert not (repo / ".git" / "refs" / "gitcp").exists()
    assert git(repo, "fsck", "--strict", "--no-dangling") == b""


def test_names_and_everything_exclude_each_other(repo):
    fails(repo, 2, "uninstall", "--everything", "skill")
    assert "--everything" in fails(repo, 2, "uninstall")
    assert "--everything" in fails(repo, 2, "uninstall", "skill", "--dry-run")
