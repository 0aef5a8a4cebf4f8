"""Real git with gitcp in its hooks: what it leaves behind, and what it never does."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import time
from pathlib import Path

import pytest

from tests.support import hooks, restores
from tests.support.forms import new_form
from tests.support.gitrepo import (
    IDENTITY,
    commit_all,
    git,
    git_line,
    run_gitcp,
    write_files,
)
from tests.support.inprocess import invoke, ok

# So long a test waits for what must not wait at all.
FOR_EVER = 250


@pytest.fixture
def hooked(repo):
    """A repository with gitcp in its hooks and one checkpoint."""
    git(repo, "config", "user.name", "Tess Ter")
    git(repo, "config", "user.email", "tess@example.invalid")
    hooks.install(repo)
    return repo


def commit(repo, text, *args, env=None, name="README.md"):
    hooks.change(repo, text, name)
    git(repo, "add", "--all")
    git(repo, "commit", "-q", "-m", text.decode(), *args, env=env)
    return git_line(repo, "rev-parse", "HEAD")


def checkpoints(repo):
    return ok(repo, "log", "--json")["checkpoints"]


def shown(repo, commit):
    return ok(repo, "show", commit)


def texts(document):
    return [entry["text"] for entry in document["decisions"]]


def test_a_commit_makes_a_checkpoint_at_it(hooked):
    ok(hooked, "decide", "because", "--why", "reasons")
    head = commit(hooked, b"three")
    (one,) = checkpoints(hooked)
    assert one["trigger"] == "commit"
    assert (one["base"]["commit"], one["base"]["branch"]) == (head, "main")
    assert one["note"] == "three"
    found = shown(hooked, head)
    assert found["checkpoint"]["id"] == one["id"]
    assert texts(found) == ["because"]


def test_a_search_for_a_commit_by_its_text_finds_the_commit(hooked):
    earlier = {"GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z"}
    head = commit(hooked, b"fix the rates", env=earlier)
    ok(hooked, "save", "-m", "fix the rates", "--allow-empty")
    assert len(checkpoints(hooked)) == 2
    assert git_line(hooked, "rev-parse", ":/fix the rates") == head
    git(hooked, "checkout", "-q", ":/fix the rates")
    assert not (hooked / ".gitcp").exists()


def test_all_that_led_to_a_commit_is_behind_it(hooked):
    commit(hooked, b"before")
    for number in range(3):
        hooks.change(hooked, b"%d" % number)
        ok(hooked, "save", "--decision", f"step {number}")
    head = commit(hooked, b"done")
    ok(hooked, "save", "--decision", "afterwards", "--allow-empty")
    found = shown(hooked, head)
    assert texts(found) == ["step 0", "step 1", "step 2"]
    assert len(found["behind"]["checkpoints"]) == 4
    assert [one["path"] for one in found["changes"]] == ["README.md"]
    # In words, as a person asks.
    said = run_gitcp(hooked, "show", head[:9]).stdout.decode()
    assert f"Behind the commit {head[:12]}: 4 checkpoints" in said


def test_an_amended_commit_keeps_what_was_behind_it(hooked):
    ok(hooked, "decide", "first thought")
    old = commit(hooked, b"three")
    ok(hooked, "decide", "second thought")
    new = commit(hooked, b"four", "--amend")
    assert len(checkpoints(hooked)) == 2
    assert texts(shown(hooked, new)) == ["first thought", "second thought"]
    assert shown(hooked, new)["behind"]["replaces"] == [old]
    # A change of the message alone.
    git(hooked, "commit", "-q", "--amend", "-m", "better said")
    newest = git_line(hooked, "rev-parse", "HEAD")
    assert texts(shown(hooked, newest)) == ["first thought", "second thought"]


def branched(repo, count, thoughts=None):
    """`count` commits on main, decisions behind them, and another one on `other`."""
    old = []
    for number in range(count):
        env = {"GITCP_DISABLE": "1"}
        if thoughts is None or number in thoughts:
            ok(repo, "decide", f"thought {number}")
            env = {}
        old.append(commit(repo, b"%d" % number, name=f"file{number}", env=env))
    git(repo, "checkout", "-q", "-b", "other", f"HEAD~{count}")
    commit(repo, b"other", name="other")
    git(repo, "checkout", "-q", "main")
    return old


def test_a_rebase_makes_one_checkpoint_and_keeps_every_link(hooked):
    thoughts = (0, 23, 49)
    branched(hooked, 50, thoughts)
    before = len(checkpoints(hooked))
    done = subprocess.run(
        ["git", "rebase", "-q", "other"],
        cwd=hooked,
        capture_output=True,
        timeout=FOR_EVER,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    made = checkpoints(hooked)[: len(checkpoints(hooked)) - before]
    assert [one["trigger"] for one in made] == ["rebase"]
    new = git_line(hooked, "rev-list", "--reverse", "-n", "50", "main").splitlines()
    for number in thoughts:
        assert texts(shown(hooked, new[number])) == [f"thought {number}"]
    # A pair for each commit, and no trace of it in a checkout.
    tip = git(
        hooked, "show", "refs/gitcp/s/main/main:.gitcp/log/rewrites/main/0000/00.jsonl"
    )
    assert len(tip.splitlines()) == 50
    assert ok(hooked, "verify")["ok"]
    assert git(hooked, "status", "--porcelain") == b""


def test_squashed_commits_are_behind_the_one_they_became(hooked):
    branched(hooked, 4)
    git(
        hooked,
        "rebase",
        "-q",
        "-i",
        "HEAD~3",
        env={
            "GIT_SEQUENCE_EDITOR": "sed -i.bak 2,3s/pick/squash/",
            "GIT_EDITOR": "true",
        },
    )
    assert texts(shown(hooked, "HEAD")) == ["thought 1", "thought 2", "thought 3"]
    git(hooked, "checkout", "-q", "other")
    git(hooked, "merge", "-q", "--squash", "main")
    # A message of one's own, in which git's list of the commits is gone.
    git(hooked, "commit", "-q", "-m", "all in one")
    assert texts(shown(hooked, "HEAD")) == [f"thought {n}" for n in range(4)]


def test_a_cherry_pick_that_names_its_origin_is_followed(hooked):
    old = branched(hooked, 2)
    git(hooked, "checkout", "-q", "other")
    git(hooked, "cherry-pick", "-x", old[1])
    assert "thought 1" in texts(shown(hooked, "HEAD"))


def test_a_merge_makes_a_checkpoint_and_a_fast_forward_none_of_its_own(hooked):
    branched(hooked, 1)
    git(hooked, "merge", "-q", "-m", "joined", "other")
    newest = checkpoints(hooked)[0]
    assert (newest["trigger"], newest["note"]) == ("merge", "joined")
    assert shown(hooked, "HEAD")["checkpoint"]["id"] == newest["id"]
    count = len(checkpoints(hooked))
    git(hooked, "branch", "ahead")
    git(hooked, "merge", "-q", "ahead")
    assert len(checkpoints(hooked)) == count


def test_a_colleague_sees_what_is_behind_rewritten_commits(hooked, tmp_path):
    branched(hooked, 2)
    git(hooked, "rebase", "-q", "other")
    new = git_line(hooked, "rev-parse", "main~1")
    remote = tmp_path / "remote.git"
    git(tmp_path, "init", "-q", "--bare", remote)
    git(hooked, "remote", "add", "origin", remote)
    git(hooked, "push", "-q", "origin", "main")
    ok(hooked, "push", "origin")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "-b", "main", remote, clone)
    ok(clone, "pull", "origin")
    assert texts(shown(clone, new)) == ["thought 0"]


def test_a_restore_does_not_lose_the_links(hooked):
    ok(hooked, "save", "--label", "start")
    ok(hooked, "decide", "why")
    commit(hooked, b"three")
    commit(hooked, b"three", "--amend", "-m", "again")
    new = git_line(hooked, "rev-parse", "HEAD")
    ok(hooked, "restore", "start", "--yes")
    git(hooked, "commit", "-q", "-a", "-m", "back")
    assert texts(shown(hooked, new)) == ["why"]
    assert ok(hooked, "verify")["ok"]


def test_the_trailer_names_the_checkpoint_that_follows(hooked):
    git(hooked, "config", "gitcp.commitTrailer", "true")
    commit(hooked, b"three")
    (one,) = checkpoints(hooked)
    message = git_line(hooked, "log", "-1", "--format=%B")
    assert message == f"three\n\nGitcp-Checkpoint: {one['id']}\n"
    # It stays through an amend, and is not doubled.
    git(hooked, "commit", "-q", "--amend", "--no-edit")
    assert git_line(hooked, "log", "-1", "--format=%B") == message
    # In an editor, where there is no text yet when it opens.
    hooks.change(hooked, b"four")
    editor = {"GIT_EDITOR": "sed -i.bak '1s/^/typed/'"}
    git(hooked, "commit", "-q", "-a", "--verbose", env=editor)
    message = git_line(hooked, "log", "-1", "--format=%B")
    assert message == f"typed\n\nGitcp-Checkpoint: {checkpoints(hooked)[0]['id']}\n"
    # And a message left empty is still one left empty.
    head = git_line(hooked, "rev-parse", "HEAD")
    hooks.change(hooked, b"five")
    git(hooked, "commit", "-q", "-a", env={"GIT_EDITOR": "true"}, check=False)
    assert git_line(hooked, "rev-parse", "HEAD") == head


def test_the_trailer_leads_to_the_checkpoint_where_nothing_else_does(hooked):
    """As after a rebase on a server, which reports no rewritten commits."""
    git(hooked, "config", "gitcp.commitTrailer", "true")
    ok(hooked, "decide", "why")
    commit(hooked, b"three")
    message = git_line(hooked, "log", "-1", "--format=%B")
    tree = git_line(hooked, "rev-parse", "HEAD^{tree}")
    other = git_line(hooked, "commit-tree", "-m", message, tree)
    assert texts(shown(hooked, other)) == ["why"]


def test_without_the_setting_no_message_is_touched(hooked):
    commit(hooked, b"three")
    assert git_line(hooked, "log", "-1", "--format=%B") == "three\n"


@pytest.mark.parametrize("how", ["GITCP_DISABLE", "autoCheckpoint"])
def test_it_can_be_switched_off(hooked, how):
    if how == "GITCP_DISABLE":
        commit(hooked, b"three", env={"GITCP_DISABLE": "1"})
        assert not (hooked / ".git" / "gitcp" / "hooks.log").exists()
    else:
        git(hooked, "config", "gitcp.autoCheckpoint", "false")
        commit(hooked, b"three")
    assert git(hooked, "for-each-ref", "refs/gitcp") == b""


# --- the conversation --------------------------------------------------------------------


def transcript(path: Path, *said: str) -> bytes:
    """A transcript such as Claude Code writes."""
    lines = [
        json.dumps(
            {
                "type": "user",
                "sessionId": "5d0c5a5e-0000-4000-8000-000000000001",
                "uuid": f"0000000{number}-0000-4000-8000-000000000001",
                "cwd": str(path.parent),
                "message": {"role": "user", "content": text},
            }
        )
        for number, text in enumerate(said)
    ]
    raw = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(raw)
    return raw


def agent_turn(repo: Path, path: Path) -> None:
    """The hook of an agent whose user has just typed something."""
    event = {
        "hook_event_name": "UserPromptSubmit",
        "session_id": "5d0c5a5e-0000-4000-8000-000000000001",
        "transcript_path": str(path),
        "cwd": str(repo),
        "prompt": "go",
    }
    run_gitcp(
        repo,
        "hook",
        "claude-code",
        "UserPromptSubmit",
        input=json.dumps(event).encode(),
    )


def test_with_an_agent_at_work_the_live_conversation_goes_in(hooked, tmp_path):
    path = tmp_path / "transcript.jsonl"
    transcript(path, "go")
    hooks.change(hooked, b"by hand")
    ok(hooked, "save", "-s", "mine")
    agent_turn(hooked, path)
    # What was said after the last hook of the agent, which commits by itself now.
    raw = transcript(path, "go", "commit it")
    ok(hooked, "switch", "mine")
    head = commit(hooked, b"by the agent")
    found = shown(hooked, head)["checkpoint"]
    assert found["trigger"] == "commit"
    assert found["session"].startswith("claude-code-")
    assert run_gitcp(hooked, "messages", head, "--format", "jsonl").stdout == raw


def test_an_agent_long_gone_does_not_take_the_commits_of_others(hooked, tmp_path):
    path = tmp_path / "transcript.jsonl"
    transcript(path, "go")
    agent_turn(hooked, path)
    hour = time.time() - 3600
    os.utime(path, (hour, hour))
    hooks.change(hooked, b"by hand")
    ok(hooked, "save", "-s", "mine")
    head = commit(hooked, b"by hand again")
    assert shown(hooked, head)["checkpoint"]["session"] == "mine"


def test_a_checkout_is_told_from_the_agents_work(hooked, tmp_path):
    git(hooked, "branch", "other", "HEAD~1")
    count = len(checkpoints(hooked))
    git(hooked, "checkout", "-q", "other")
    assert len(checkpoints(hooked)) == count
    path = tmp_path / "transcript.jsonl"
    transcript(path, "go")
    agent_turn(hooked, path)
    git(hooked, "checkout", "-q", "main")
    assert checkpoints(hooked)[0]["trigger"] == "checkout"
    git(hooked, "checkout", "-q", "-b", "same")
    git(hooked, "checkout", "-q", "HEAD~1", "--", ".")
    assert checkpoints(hooked)[1]["trigger"] != "checkout"


# --- never in the way --------------------------------------------------------------------

BROKEN = {
    "missing": None,
    "not executable": "",
    "fails": "exit 3",
    "noisy": "echo LOUD; echo LOUD >&2; exit 70",
    "killed": "kill -9 $$",
    "hangs": "exec sleep 300",
    "hangs in a child": "sleep 300; true",
    "hangs and ignores signals": "trap '' TERM INT HUP; sleep 300; sleep 300",
    # What a push left behind goes on, but not for ever: it is a processor less.
    "hangs and is busy": (
        "end=$(($(date +%s) + 40)); while [ $(date +%s) -lt $end ]; do :; done"
    ),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_gitcp_does_not_block_git(repo, tmp_path, how):
    git(repo, "config", "user.name", "Tess Ter")
    git(repo, "config", "user.email", "tess@example.invalid")
    git(repo, "config", "gitcp.hookTimeout", "500ms")
    broken = tmp_path / "broken-gitcp"
    body = BROKEN[how]
    hooks.install(repo, broken)
    if body is not None:
        hooks.program(broken, body)
    if how == "not executable":
        broken.chmod(0o644)
    remote = tmp_path / "remote.git"
    git(tmp_path, "init", "-q", "--bare", remote)
    git(repo, "remote", "add", "origin", remote)
    git(repo, "config", "gitcp.autoPush", "true")
    if "hangs" not in how:
        # Two more hooks, which take as long as the limit.
        git(repo, "config", "gitcp.commitTrailer", "true")
    # Nowhere on PATH is there another one.
    path = tmp_path / "bin"
    path.mkdir()
    for name in ("git", "sh", "sleep", "cat", "cp", "date"):
        found = subprocess.run(["which", name], capture_output=True, check=True)
        (path / name).symlink_to(found.stdout.decode().strip())

    def run(*args):
        done = subprocess.run(
            ["git", *args],
            cwd=repo,
            env={**os.environ, "PATH": str(path)},
            capture_output=True,
            timeout=FOR_EVER,
            check=False,
        )
        assert (done.returncode, b"LOUD" in done.stdout + done.stderr) == (0, False)

    hooks.change(repo, b"three")
    run("commit", "-q", "-a", "-m", "three")
    run("commit", "-q", "--amend", "-m", "again")
    run("push", "-q", "origin", "main")
    run("checkout", "-q", "-b", "other", "HEAD~1")
    run("merge", "-q", "main")
    assert git_line(repo, "log", "-1", "--format=%s") == "again"
    assert git_line(remote, "log", "-1", "--format=%s", "main") == "again"


def test_a_gitcp_that_hangs_costs_a_command_its_limit_once(repo, tmp_path):
    git(repo, "config", "gitcp.hookTimeout", "4s")
    git(repo, "config", "gitcp.commitTrailer", "true")
    # What it has started itself goes with it.
    mark = f"3{secrets.randbelow(10**9)}"
    body = f'echo "$2" >>{tmp_path}/started; sleep {mark}; true'
    hooks.install(repo, hooks.program(tmp_path / "hangs", body))
    hooks.change(repo, b"three")
    # Four hooks run: two for the message, one after the commit, one for the amending.
    git(repo, "commit", "-q", "-a", "--amend", "-m", "again")
    assert (tmp_path / "started").read_text() == "prepare-commit-msg\n"
    left = subprocess.run(
        ["ps", "-A", "-o", "args="], capture_output=True, check=True
    ).stdout.decode("utf-8", "replace")
    assert f"sleep {mark}" not in left
    # The next command asks again.
    git(repo, "config", "gitcp.hookTimeout", "200s")
    git(repo, "config", "gitcp.commitTrailer", "false")
    hooks.start(repo / ".git/hooks/gitcp-hook", hooks.gitcp_program(tmp_path))
    hooks.change(repo, b"four")
    git(repo, "commit", "-q", "-a", "-m", "four")
    assert checkpoints(repo)[0]["trigger"] == "commit"
    assert not (repo / ".git/gitcp/hung").exists()


def test_an_open_restore_is_told_once_for_each_command(hooked):
    commit(hooked, b"three")
    commit(hooked, b"four")
    restores.interrupt(hooked, "1")
    count = len(checkpoints(hooked))

    def said(*args: str) -> str:
        done = subprocess.run(
            ["git", *IDENTITY, *args], cwd=hooked, capture_output=True, check=True
        )
        return done.stderr.decode()

    hooks.change(hooked, b"five")
    told = [
        said("commit", "-q", "-a", "-m", "five"),
        said("commit", "-q", "--amend", "-m", "5"),
    ]
    for text in told:
        assert text.count("a restore is open here") == 1
        assert "`gitcp restore --continue`" in text
        assert "`--abort`" in text
        assert text.count("\n") == 1
    assert len(checkpoints(hooked)) == count
    assert invoke(hooked, "restore", "--continue").returncode == 3
    hooks.change(hooked, b"six")
    assert said("commit", "-q", "-a", "-m", "six") == ""


def test_a_rebase_of_50_commits_with_a_gitcp_that_hangs(repo, tmp_path):
    for number in range(50):
        write_files(repo, {f"file{number}": b"x"})
        commit_all(repo, f"{number}")
    git(repo, "checkout", "-q", "-b", "other", "HEAD~50")
    write_files(repo, {"other": b"x"})
    commit_all(repo)
    git(repo, "config", "gitcp.hookTimeout", "100ms")
    body = f'echo "$*" >>{tmp_path}/started; exec sleep 300'
    hooks.install(repo, hooks.program(tmp_path / "hangs", body))
    git(repo, "rebase", "-q", "other", "main", env={"GIT_EDITOR": "false"})
    # It was waited for once, not for each commit.
    assert (tmp_path / "started").read_text() == "git-hook post-rewrite rebase\n"
    assert git_line(repo, "rev-list", "--count", "other..main") == "50"


@pytest.mark.parametrize(
    "lock",
    [
        "worktree.lock",
        "index.lock",
        # That of a table of refs would stop the commit itself.
        pytest.param("ref", marks=pytest.mark.ref_files),
    ],
)
def test_locks_do_not_block_git(hooked, lock):
    """Another save under way, a lock of git's, a ref that is locked by a dead process."""
    commit(hooked, b"three")
    count = len(checkpoints(hooked))
    holder = None
    if lock == "worktree.lock":
        script = (
            "import fcntl,sys; f=open(sys.argv[1],'a'); fcntl.flock(f, 2)\n"
            "print(1, flush=True); sys.stdin.read()"
        )
        holder = subprocess.Popen(
            ["python3", "-c", script, hooked / ".git/gitcp/worktree.lock"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert holder.stdout
        holder.stdout.readline()
    elif lock == "ref":
        (hooked / ".git/refs/gitcp/s/main/main.lock").touch()
    try:
        if lock == "index.lock":
            # A commit that takes the index itself, from its hooks' point of view.
            other = hooks.program(
                hooked / ".git/hooks/pre-commit", "touch held; exit 0"
            )
            assert other.exists()
        hooks.change(hooked, b"four")
        git(hooked, "commit", "-q", "-a", "-m", "four")
    finally:
        if holder is not None:
            holder.communicate(b"")
        (hooked / ".git/refs/gitcp/s/main/main.lock").unlink(missing_ok=True)
    assert git_line(hooked, "log", "-1", "--format=%s") == "four"
    made = len(checkpoints(hooked)) - count
    assert made == (1 if lock == "index.lock" else 0), hooks.log(hooked)
    if made == 0:
        assert "locked" in hooks.log(hooked) or "in use" in hooks.log(hooked)
        # What was not told then is known afterwards.
        ok(hooked, "save")
        assert shown(hooked, "HEAD")["checkpoint"]["base"]["commit"] == git_line(
            hooked, "rev-parse", "HEAD"
        )


def test_a_save_beside_a_commit_and_a_rebase(hooked):
    """index.lock is held by the git that runs the hook: saving leaves it alone."""
    hooks.program(
        hooked / ".git/hooks/pre-commit",
        f"test -e .git/index.lock && {hooks.gitcp_program(hooked.parent)} save --allow-empty -q",
    )
    hooks.change(hooked, b"three")
    git(hooked, "commit", "-q", "-a", "-m", "three")
    assert [one["trigger"] for one in checkpoints(hooked)] == ["commit", "manual"]
    assert git(hooked, "status", "--porcelain") == b""
    assert git(hooked, "fsck", "--strict") == b""


@pytest.mark.parametrize("where", ["main", "linked"])
@pytest.mark.parametrize("below", [".", "src/pkg"])
def test_the_right_repository_and_index_from_everywhere(hooked, tmp_path, where, below):
    """With all the GIT_ variables that git gives its hooks."""
    top = hooked
    if where == "linked":
        top = tmp_path / "linked"
        git(hooked, "worktree", "add", "-q", "-b", "linked", top)
    elsewhere = tmp_path / "other"
    elsewhere.mkdir()
    git(elsewhere, "init", "-q")
    program = hooks.gitcp_program(hooked.parent)
    hooks.program(
        hooked / ".git/hooks/pre-commit",
        f"env | grep ^GIT_ >{tmp_path}/environment; {program} save -q --allow-empty",
    )
    hooks.change(top, b"staged")
    git(top, "add", "README.md")
    hooks.change(top, b"and changed again")
    write_files(top, {"src/pkg/untracked": b"u"})
    # `commit -- path` gives its hooks an index of its own.
    hooks.change(top, b"only this", "bin/run")
    git(
        top / below,
        "commit",
        "-q",
        "-m",
        "partly",
        "--",
        f"{os.path.relpath(top, top / below)}/bin/run",
    )
    given = (tmp_path / "environment").read_text()
    assert "GIT_INDEX_FILE=" in given
    assert git(top, "show", ":README.md") == b"staged"
    assert git_line(top, "diff", "--name-only", "--cached") == "README.md"
    assert git_line(top, "diff", "--name-only") == "README.md"
    made = ok(top, "log", "--json")["checkpoints"]
    assert [one["trigger"] for one in made] == ["commit", "manual"]
    assert made[0]["base"]["commit"] == git_line(top, "rev-parse", "HEAD")
    assert made[0]["session"] == ("main" if where == "main" else "linked")
    names = git_line(top, "ls-tree", "-r", "--name-only", made[0]["commit"]).split("\n")
    assert "src/pkg/untracked" in names
    assert (
        git(top, "cat-file", "blob", f"{made[0]['commit']}:README.md")
        == b"and changed again"
    )


def test_an_interrupted_restore_does_not_block_a_commit(hooked):
    commit(hooked, b"three")
    (hooked / ".git/gitcp/restore.json").write_bytes(b"{}")
    commit(hooked, b"four")
    assert git_line(hooked, "log", "-1", "--format=%s") == "four"


@pytest.mark.ref_files
def test_a_commit_beside_a_damaged_tip_is_made_and_the_damage_is_logged(hooked):
    commit(hooked, b"three")
    ref = hooked / ".git/refs/gitcp/s/main/main"
    ref.write_text(f"{1:0{new_form().digits}x}\n")
    commit(hooked, b"four")
    assert git_line(hooked, "log", "-1", "--format=%s") == "four"
    assert "newest sound one is" in hooks.log(hooked)


# --- pushing -----------------------------------------------------------------------------


def wait_for(look, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if look():
            return True
        time.sleep(0.05)
    return False


@pytest.fixture
def origin(hooked, tmp_path):
    remote = tmp_path / "remote.git"
    git(tmp_path, "init", "-q", "--bare", remote)
    git(hooked, "remote", "add", "origin", remote)
    return remote


def test_sessions_are_pushed_along_where_that_is_wanted(hooked, origin):
    commit(hooked, b"three")
    git(hooked, "push", "-q", "origin", "main")
    assert git(origin, "for-each-ref", "refs/gitcp") == b""
    git(hooked, "config", "gitcp.autoPush", "true")
    commit(hooked, b"four")
    git(hooked, "push", "-q", "origin", "main")
    tip = git_line(hooked, "rev-parse", "refs/gitcp/s/main/main")
    assert wait_for(
        lambda: tip.encode() in git(origin, "for-each-ref", "refs/gitcp")
    ), hooks.log(hooked)
    assert wait_for(lambda: "git-hook pre-push" in hooks.log(hooked))


def test_what_is_pushed_elsewhere_takes_no_session_along(hooked, origin, tmp_path):
    """A public remote beside the one that sessions are shared by."""
    public = tmp_path / "public.git"
    git(tmp_path, "init", "-q", "--bare", public)
    git(hooked, "remote", "add", "public", public)
    git(hooked, "config", "gitcp.autoPush", "true")
    commit(hooked, b"three")
    git(hooked, "push", "-q", "public", "main")
    git(hooked, "push", "-q", str(public), "main:other")
    git(hooked, "push", "-q", "origin", "main")
    assert wait_for(lambda: b"refs/gitcp" in git(origin, "for-each-ref"))
    assert git(public, "for-each-ref", "refs/gitcp") == b""


def test_a_push_that_fails_is_told_in_the_log_only(hooked, origin):
    git(hooked, "config", "gitcp.autoPush", "true")
    commit(hooked, b"three")
    refuse = "case $1 in refs/gitcp/*) echo 'not here' >&2; exit 1;; esac"
    hooks.program(origin / "hooks" / "update", refuse)
    git(hooked, "push", "-q", "origin", "main")
    assert git(origin, "for-each-ref", "refs/heads/main") != b""
    assert wait_for(lambda: "failed:" in hooks.log(hooked))
    note = hooked / ".git" / "gitcp" / "push-failed.json"
    assert wait_for(note.exists)
    told = invoke(hooked, "status").stderr
    assert b"sessions were not pushed to origin (just now)" in told
    assert b"ask the administrator of" in told
    (origin / "hooks" / "update").unlink()
    commit(hooked, b"four")
    git(hooked, "push", "-q", "origin", "main")
    assert wait_for(lambda: not note.exists())
    assert b"not pushed" not in invoke(hooked, "status").stderr


def test_what_diverged_is_pushed_as_the_fork_that_it_is(hooked, origin, tmp_path):
    git(hooked, "config", "user.name", "Tess")
    git(hooked, "config", "gitcp.autoPush", "true")
    commit(hooked, b"three")
    git(hooked, "push", "-q", "origin", "main")
    assert wait_for(lambda: b"refs/gitcp" in git(origin, "for-each-ref"))
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", origin, other)
    assert invoke(other, "pull").returncode == 0
    (other / "a.py").write_bytes(b"theirs")
    assert invoke(other, "save", "-s", "main").returncode == 0
    assert invoke(other, "push").returncode == 0
    commit(hooked, b"four")
    git(hooked, "push", "-q", "origin", "main")
    assert wait_for(lambda: b"main/main%7etess" in git(origin, "for-each-ref")), (
        hooks.log(hooked)
    )
    assert invoke(other, "pull").returncode == 0
    assert invoke(other, "cat", "main/main~tess:last", "README.md").stdout == b"four"
