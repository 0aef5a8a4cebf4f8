"""The real Claude Code with gitcp's hooks, in a real project, against a stand-in model.

The client has no network (see tests/support/offline.py). What counts is what
it sends to the model: after a restore, message by message what it had sent before.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import threading
from pathlib import Path

import pytest

from tests.e2e import test_docs
from tests.support.claude_code import ClaudeCode, conversation, program, running
from tests.support.gitrepo import git, make_repo, run_gitcp, tree_bytes, write_files
from tests.support.stand_in import say, use

pytestmark = pytest.mark.skipif(
    program() is None, reason="needs Claude Code: `pip install claude-agent-sdk`"
)

FILES = {
    ".gitignore": b"*.log\n",
    "gone.txt": b"to be removed\n",
    "keep.txt": b"alpha\nbeta\n",
    "src/app.py": b"def main():\n    return 1\n",
}


def script(top: Path) -> dict:
    """What the model does when it is asked for these things."""

    def shell(command: str) -> dict:
        return use("Bash", command=command, description="does it")

    return {
        "one": [
            [
                say("Writing."),
                use("Write", file_path=str(top / "a.txt"), content="a\n"),
            ],
            [use("Read", file_path=str(top / "src/app.py"))],
            [
                use(
                    "Edit",
                    file_path=str(top / "src/app.py"),
                    old_string="return 1",
                    new_string="return 2",
                )
            ],
            [say("Done one.")],
        ],
        "two": [
            [shell("sed -i s/alpha/ALPHA/ keep.txt")],
            [shell("rm gone.txt"), shell("mkdir -p empty/inner")],
            [shell("false")],
            [say("Done two.")],
        ],
        "three": [
            [shell("rm -rf src empty; echo broken > keep.txt")],
            [say("Done three.")],
        ],
        "more": [
            [shell("echo more >> more.txt")],
            [say("Done more.")],
        ],
        "die": [
            [shell("echo dying > died.txt")],
            [shell("kill -9 $PPID")],
        ],
        "delegate": [
            [
                use(
                    "Agent",
                    description="a part",
                    prompt="the part",
                    subagent_type="general-purpose",
                    run_in_background=False,
                )
            ],
            [say("Done delegating.")],
        ],
        "the part": [
            [use("Write", file_path=str(top / "part.txt"), content="part\n")],
            [say("The part is done.")],
        ],
    }


@pytest.fixture
def project(tmp_path):
    return make_repo(tmp_path / "my 🙂 prøject", FILES)


@pytest.fixture
def claude(tmp_path, project):
    with running(tmp_path / "home", script(project)) as client:
        client.gitcp(project, "install", "claude-code")
        # How long a hook may take is another test's matter, not one of a busy machine.
        client.gitcp(project, "config", "hookTimeout", "60s")
        yield client
        # Whatever happened: a hook that failed would have said so there.
        log = project / ".git" / "gitcp" / "hooks.log"
        told = log.read_text().splitlines() if log.exists() else []
        assert all("were restored to #" in line for line in told), told


def log_of(claude: ClaudeCode, top: Path, *options: str) -> list[dict]:
    return claude.gitcp(top, "log", "--full", *options)["checkpoints"]


def turns(claude, top, *options):
    """The checkpoints at the ends of turns, oldest first."""
    found = [
        one for one in log_of(claude, top, *options) if one["trigger"] == "turn-end"
    ]
    return found[::-1]


def resumed(document: dict) -> str:
    """The id in a resume command."""
    return document["resume"].split()[-1]


def same_beginning(claude: ClaudeCode, before: str, after: str, answer: str) -> None:
    """Whether what the model got with `after` begins with all it got and said before."""
    earlier = conversation(claude.server.messages(before))
    later = conversation(claude.server.messages(after))
    assert later[: len(earlier)] == earlier
    assert later[len(earlier)] == ("assistant", [{"type": "text", "text": answer}])


def test_a_conversation_made_elsewhere_goes_on_when_it_is_trusted(claude, project):
    """The client's notes among its messages are made again from known fields, too."""
    session = claude.ask("one", cwd=project)
    claude.ask("two", "--resume", session, cwd=project)
    end = turns(claude, project)[-1]["id"]
    kinds = {
        one["attachment"]["type"]
        for one in claude.records(session)
        if one["type"] == "attachment"
    }
    assert len(kinds) > 3
    # What was sealed with a key that is gone was made elsewhere.
    (project / ".git" / "gitcp" / "key").unlink()
    assert claude.gitcp(project, "restore", end, "--yes")["resume"] is None
    done = claude.gitcp(project, "restore", end, "--yes", "--trust")
    new = resumed(done)
    rebuilt = {
        one["attachment"]["type"]
        for one in claude.records(new)
        if one["type"] == "attachment"
    }
    assert kinds - rebuilt <= {"prompt_snapshot"}
    claude.ask("more", "--resume", new, cwd=project)
    same_beginning(claude, "two", "more", "Done two.")


def test_a_turn_that_was_taken_back_is_not_among_the_turns(claude, project):
    session = claude.ask("one", cwd=project)
    answers = [one for one in claude.records(session) if one["type"] == "assistant"]
    claude.ask("two", cwd=project, resume=session)
    back = ("--resume-session-at", answers[-1]["uuid"])
    assert claude.ask("more", *back, cwd=project, resume=session) == session
    done = run_gitcp(project, "messages")
    assert re.sub(r"(?m)^(Turn \d+) · .*$", r"\1", done.stdout.decode()) == (
        "Turn 1\n> one\n  * Write a.txt\n  * Read src/app.py\n"
        "  * Edit src/app.py\n  Done one.\n\n"
        "Turn 2\n> more\n  * Bash echo more >> more.txt\n  Done more.\n"
    )
    assert done.stderr == b"1 turn taken back and hidden; --all shows every record\n"


def test_a_turn_is_undone_and_the_conversation_goes_on_from_there(claude, project):
    session = claude.ask("one", cwd=project)
    after_one = tree_bytes(project)
    claude.ask("two", cwd=project, resume=session)
    after_two = tree_bytes(project)
    claude.ask("three", cwd=project, resume=session)
    assert tree_bytes(project) != after_two

    found = turns(claude, project)
    assert [one["note"] for one in found] == ["one", "two", "three"]
    assert {one["conversation"]["agent_session"] for one in found} == {session}
    (first,) = [
        one for one in log_of(claude, project) if one["trigger"] == "turn-start"
    ]
    assert first["note"] == "before: one"
    assert first["conversation"] is None

    done = claude.gitcp(project, "restore", found[1]["id"], "--yes")
    assert tree_bytes(project) == after_two
    new = resumed(done)
    assert new != session
    assert done["resume"] == f"claude --resume {new}"
    copy = claude.transcript(new)
    original = claude.transcript(session).read_bytes()
    assert original.startswith(copy.read_bytes())
    assert copy.parent == claude.transcript(session).parent
    assert copy.stat().st_mode & 0o777 == 0o600

    assert claude.ask("more", cwd=project, resume=new) == new
    same_beginning(claude, "two", "more", "Done two.")
    tip = log_of(claude, project)[0]
    assert (tip["branch"], tip["trigger"]) == ("main", "turn-end")
    assert tip["session"] == found[0]["session"]
    assert tip["conversation"]["agent_session"] == new
    # What the client wrote into the old file in the meantime is nothing.
    assert claude.transcript(session).read_bytes() == original

    asked = claude.prompt_of(session, "two")
    claude.gitcp(project, "restore", asked["uuid"], "--yes")
    assert tree_bytes(project) == after_one
    claude.gitcp(project, "undo", "--yes")
    assert (project / "more.txt").exists()
    done = claude.gitcp(project, "restore", asked["promptId"], "--yes")
    assert tree_bytes(project) == after_one
    claude.ask("more", cwd=project, resume=resumed(done))
    same_beginning(claude, "one", "more", "Done one.")
    claude.gitcp(project, "verify")


@pytest.mark.sha1  # the client passes no default for new repositories on to gitcp
def test_a_folder_without_git_is_served_and_becomes_a_repository(tmp_path):
    folder = tmp_path / "notes"
    write_files(folder, FILES)
    with running(tmp_path / "home", script(folder)) as claude:
        claude.gitcp(folder, "install", "claude-code")
        claude.ask("one", cwd=folder)
        # No hook makes a store, and none complains.
        assert claude.gitcp(folder, "folders")["folders"] == []
        claude.gitcp(folder, "save", "--init")
        claude.gitcp(folder, "config", "hookTimeout", "60s")
        session = claude.ask("two", cwd=folder)
        after_two = tree_bytes(folder)
        (second,) = turns(claude, folder)
        assert second["conversation"]["agent_session"] == session

        git(folder, "init", "-q")
        assert claude.gitcp(folder, "adopt")["numbers"] == []
        # The conversation grows the same branch in the repository.
        claude.ask("three", cwd=folder, resume=session)
        assert tree_bytes(folder) != after_two
        second_again, third = turns(claude, folder)
        assert second_again["id"] == second["id"]
        assert (third["session"], third["branch"]) == (second["session"], "main")
        done = claude.gitcp(folder, "restore", str(second["number"]), "--yes")
        assert tree_bytes(folder) == after_two
        claude.ask("more", cwd=folder, resume=resumed(done))
        same_beginning(claude, "two", "more", "Done two.")
        assert not (folder / ".git" / "gitcp" / "hooks.log").exists()


@pytest.mark.slow
def test_a_fork_grows_on_its_own(claude, project):
    session = claude.ask("one", cwd=project)
    claude.ask("two", cwd=project, resume=session)
    first, second = turns(claude, project)
    done = claude.gitcp(project, "fork", first["id"], "other-way", "--yes")
    claude.ask("more", cwd=project, resume=resumed(done))
    same_beginning(claude, "one", "more", "Done one.")
    tip = log_of(claude, project)[0]
    assert (tip["branch"], tip["note"]) == ("other-way", "more")
    # The old conversation still grows the old branch.
    where = f"{first['session']}/main"
    assert log_of(claude, project, "-s", where)[0]["id"] == second["id"]
    claude.ask("three", cwd=project, resume=session)
    assert log_of(claude, project, "-s", where)[0]["note"] == "three"
    # A fork of the present state hands the conversation on, too.
    claude.gitcp(project, "switch", where)
    here = claude.gitcp(project, "fork", "here")
    claude.ask("more", cwd=project, resume=resumed(here))
    assert log_of(claude, project)[0]["branch"] == "here"
    same_beginning(claude, "three", "more", "Done three.")


@pytest.mark.slow
def test_a_session_that_lost_its_branch_to_a_restore_gets_a_branch_of_its_own(
    claude, project
):
    session = claude.ask("one", cwd=project)
    claude.ask("two", cwd=project, resume=session)
    first, _ = turns(claude, project)
    done = claude.gitcp(project, "restore", first["id"], "--yes")
    new = resumed(done)
    claude.ask("more", cwd=project, resume=new)
    main = f"{first['session']}/main"
    tip = log_of(claude, project, "-s", main)[0]
    claude.ask("three", cwd=project, resume=session)
    assert log_of(claude, project, "-s", main)[0]["id"] == tip["id"]
    own = log_of(claude, project)
    assert own[0]["branch"] == f"after-restore-{first['number']}"
    assert own[0]["conversation"]["agent_session"] == session
    kept = claude.gitcp(project, "messages", own[0]["id"])
    assert kept == claude.records(session)[: len(kept)]
    claude.ask("more", cwd=project, resume=new)
    # What the other did to the files is what this one found before its turn.
    end, start, before, *_ = log_of(claude, project, "-s", main)
    assert [end["trigger"], start["trigger"]] == ["turn-end", "turn-start"]
    assert before["id"] == tip["id"]


@pytest.mark.slow
def test_a_session_that_the_client_forked_is_a_branch_of_its_own(claude, project):
    session = claude.ask("one", cwd=project)
    claude.ask("two", cwd=project, resume=session)
    after_two = tree_bytes(project)
    fork = claude.ask("three", "--fork-session", cwd=project, resume=session)
    assert fork != session
    _, second = turns(claude, project, "-s", f"claude-code-{session[:8]}/main")
    line = f"{second['session']}/fork-{fork[:8]}"
    found = log_of(claude, project, "-s", line)
    assert log_of(claude, project)[0]["id"] == found[0]["id"]
    assert found[0]["branch"] == f"fork-{fork[:8]}"
    assert found[0]["session"] == second["session"]
    assert found[0]["note"] == "three"
    assert [one["trigger"] for one in found[:2]] == ["turn-end", "fork"]
    assert found[2]["id"] == second["id"]
    # The client gives old prompts of a fork the id of its new one. It means the new one.
    asked = claude.prompt_of(fork, "three")
    done = claude.gitcp(project, "restore", asked["promptId"], "--yes")
    assert tree_bytes(project) == after_two
    again = claude.ask("more", cwd=project, resume=resumed(done))
    same_beginning(claude, "two", "more", "Done two.")
    assert log_of(claude, project)[0]["branch"] == f"fork-{fork[:8]}"
    # And what was copied is where it was said first.
    claude.gitcp(project, "restore", claude.prompt_of(session, "one")["uuid"], "--yes")
    assert (project / "gone.txt").exists()
    assert not (project / "a.txt").exists()
    # A fork of a fork.
    fork = claude.ask("one", "--fork-session", cwd=project, resume=again)
    assert log_of(claude, project)[0]["branch"] == f"fork-{fork[:8]}"


@pytest.mark.slow
def test_a_compacted_conversation_comes_back_as_it_was_before(claude, project):
    session = claude.ask("one", cwd=project)
    claude.ask("two", cwd=project, resume=session)
    claude.ask("/compact", cwd=project, resume=session)
    types = [record.get("subtype") for record in claude.records(session)]
    assert "compact_boundary" in types
    claude.ask("more", cwd=project, resume=session)
    shorter = claude.server.messages("more")
    first, second, *_, last = turns(claude, project)
    assert (first["session"], last["note"]) == (second["session"], "more")
    done = claude.gitcp(project, "restore", second["id"], "--yes")
    claude.ask("more", cwd=project, resume=resumed(done))
    same_beginning(claude, "two", "more", "Done two.")
    assert conversation(claude.server.messages("more")) != conversation(shorter)
    # After the compaction: the summary, not what it stands for.
    done = claude.gitcp(project, "restore", last["id"], "--yes")
    claude.ask("three", cwd=project, resume=resumed(done))
    later = conversation(claude.server.messages("three"))
    assert later[: len(shorter)] == conversation(shorter)


@pytest.mark.slow
def test_what_a_subagent_said_is_kept_with_the_conversation(claude, project):
    session = claude.ask("delegate", cwd=project)
    folder = claude.transcript(session).with_suffix("") / "subagents"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert any(name.endswith(".jsonl") for name in before)
    triggers = [one["trigger"] for one in log_of(claude, project)]
    assert triggers[0] == "turn-end"
    assert "subagent-stop" in triggers
    claude.ask("one", cwd=project, resume=session)
    (delegated, _) = turns(claude, project)
    assert delegated["conversation"]["source"] == f"claude-code-{session}"
    done = claude.gitcp(project, "restore", delegated["id"], "--yes")
    new = claude.transcript(resumed(done)).with_suffix("") / "subagents"
    assert {path.name: path.read_bytes() for path in new.iterdir()} == before
    claude.ask("more", cwd=project, resume=resumed(done))
    same_beginning(claude, "delegate", "more", "Done delegating.")


def test_a_client_that_was_killed_loses_nothing_but_the_turn(claude, project):
    session = claude.ask("one", cwd=project)
    after_one = tree_bytes(project)
    died = claude.run("die", cwd=project, resume=session)
    assert died.status != 0
    assert (project / "died.txt").exists()
    transcript = claude.transcript(session)
    whole = transcript.read_bytes()
    # As if the machine had gone down while it wrote.
    transcript.write_bytes(whole + b'{"type":"assistant","mess')
    # What the turn had written was saved before the command that ended it.
    last, end = (
        one
        for one in log_of(claude, project)
        if one["trigger"] in {"before-command", "turn-end"}
    )
    assert last["trigger"] == "before-command"
    assert last["files"]["added"] == 1
    done = claude.gitcp(project, "restore", end["id"], "--yes")
    assert tree_bytes(project) == after_one
    claude.ask("more", cwd=project, resume=resumed(done))
    same_beginning(claude, "one", "more", "Done one.")
    claude.gitcp(project, "undo", "--yes")
    # And the killed session itself can be resumed, torn line and all.
    claude.ask("two", cwd=project, resume=session)
    tip = log_of(claude, project)[0]
    assert tip["conversation"]["agent_session"] == session
    assert tip["conversation"]["bytes"] >= len(whole)


@pytest.mark.slow
def test_two_clients_in_one_work_tree_do_not_mix(claude, project):
    ids: dict[str, str] = {}

    def work(name: str, *prompts: str) -> None:
        for prompt in prompts:
            ids[name] = claude.ask(prompt, cwd=project, resume=ids.get(name))

    threads = [
        threading.Thread(target=work, args=("a", "one", "more", "more")),
        threading.Thread(target=work, args=("b", "two", "more", "two")),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids.values())) == 2
    for name, prompts in (
        ("a", ["one", "more", "more"]),
        ("b", ["two", "more", "two"]),
    ):
        session = ids[name]
        found = turns(claude, project, "-s", f"claude-code-{session[:8]}/main")
        assert [one["note"] for one in found] == prompts
        for one in found:
            assert one["conversation"]["agent_session"] == session
        kept = claude.gitcp(project, "messages", found[-1]["id"])
        assert kept == claude.records(session)[: len(kept)]
    assert claude.gitcp(project, "verify")["ok"]


@pytest.mark.slow
def test_in_a_linked_worktree_it_works_alike(claude, project, tmp_path):
    main = claude.ask("two", cwd=project)
    other = tmp_path / "other tree"
    git(project, "worktree", "add", "--quiet", "--detach", other)
    session = claude.ask("more", cwd=other)
    before = tree_bytes(other)
    write_files(other, {"by hand.txt": b"edited between the turns\n"})
    claude.ask("two", cwd=other, resume=session)
    asked = claude.prompt_of(session, "two")
    done = claude.gitcp(other, "restore", asked["uuid"], "--yes")
    write_files(other, {})
    assert (other / "by hand.txt").exists()
    os.unlink(other / "by hand.txt")
    assert tree_bytes(other) == before
    claude.ask("three", cwd=other, resume=resumed(done))
    same_beginning(claude, "more", "three", "Done more.")
    assert log_of(claude, other)[0]["session"] == f"claude-code-{session[:8]}"
    assert log_of(claude, project)[0]["session"] == f"claude-code-{main[:8]}"
    # A fork into a new worktree takes the conversation along.
    third = tmp_path / "third"
    first = turns(claude, other)[0]
    done = claude.gitcp(other, "fork", first["id"], "apart", "--worktree", str(third))
    command, _, _ = done["resume"].partition(" && ")
    assert command.startswith("cd ")
    claude.ask("one", cwd=third, resume=resumed(done))
    assert log_of(claude, third)[0]["branch"] == "apart"


@pytest.mark.slow
def test_a_checkpoint_after_each_batch_of_tools(claude, project):
    claude.gitcp(project, "config", "frequency", "tool")
    session = claude.ask("two", cwd=project)
    found = [one for one in log_of(claude, project) if one["trigger"] == "tool"][::-1]
    assert [one["note"] for one in found] == ["Bash: two"] * 3
    done = claude.gitcp(project, "restore", found[0]["id"], "--yes")
    assert (project / "gone.txt").exists()
    assert b"ALPHA" in (project / "keep.txt").read_bytes()
    claude.ask("more", cwd=project, resume=resumed(done))
    later = conversation(claude.server.messages("more"))
    calls = [
        block["type"]
        for _, blocks in later
        for block in blocks
        if block["type"].startswith("tool_")
    ]
    assert calls[:2] == ["tool_use", "tool_result"]
    assert claude.records(session)


@pytest.mark.parametrize("how", ["missing", "broken", "talking", "locked", "too slow"])
def test_a_client_never_notices_that_gitcp_cannot(project, tmp_path, how):
    with running(tmp_path / "plain", script(project)) as plain:
        wanted = plain.run("one", cwd=project)
        sent = [message["role"] for message in plain.server.messages("one")]
    git(project, "reset", "--hard", "--quiet")
    git(project, "clean", "--force", "--quiet")
    with running(tmp_path / "home", script(project)) as claude:
        claude.gitcp(project, "install", "claude-code")
        settings = claude.config / "settings.json"
        stub = tmp_path / "gitcp"
        lock = None
        if how in {"missing", "broken", "talking"}:
            text = settings.read_text()
            own = json.loads(text)["hooks"]["Stop"][0]["hooks"][0]["command"]
            settings.write_text(text.replace(own.split()[0], str(stub)))
        if how == "broken":
            stub.write_text("#!/nowhere/python\n")
            stub.chmod(0o755)
        elif how == "talking":
            # Its stdout is the hook's answer to the client, since it may have to say
            # that a restore is open; stderr and the exit status are not.
            stub.write_text(
                '#!/bin/sh\necho \'{"decision": "block", "continue": false}\' >&2\n'
                "echo no >&2\nexit 2\n"
            )
            stub.chmod(0o755)
        elif how == "locked":
            claude.gitcp(project, "save")
            claude.gitcp(project, "config", "hookTimeout", "1s")
            lock = (project / ".git" / "gitcp" / "worktree.lock").open("r+")
            fcntl.flock(lock, fcntl.LOCK_EX)
        elif how == "too slow":
            claude.gitcp(project, "config", "hookTimeout", "1ms")
        found = claude.run("one", cwd=project)
        if lock is not None:
            lock.close()
        assert (found.status, found.text) == (wanted.status, wanted.text)
        assert found.status == 0
        # With the summary of the hooks the client has nothing more to tell the model.
        assert [one["role"] for one in claude.server.messages("one")] == sent
        assert (project / "a.txt").read_bytes() == b"a\n"
        log = project / ".git" / "gitcp" / "hooks.log"
        assert log.exists() == (how in {"locked", "too slow"})


def test_taken_out_again_nothing_is_left(project, tmp_path):
    with running(tmp_path / "home", script(project)) as claude:
        settings = claude.config / "settings.json"
        mine = b'{\n\t"model": "opus",\n\t"env": {"A": "1"} }'
        settings.write_bytes(mine)
        claude.gitcp(project, "install", "claude-code")
        claude.ask("two", cwd=project)
        shown = claude.gitcp(project, "status")
        assert [one["what"] for one in shown["installed"]] == ["claude-code"]
        assert [one["agent"] for one in shown["agents"]] == ["claude-code"]
        claude.gitcp(project, "uninstall", "claude-code")
        assert settings.read_bytes() == mine
        before = log_of(claude, project)
        claude.ask("one", cwd=project)
        assert log_of(claude, project) == before


# --- the page -------------------------------------------------------------------------

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "claude-code.md"


def story(top: Path) -> dict:
    """What the model does on the page."""
    app = str(top / "app.py")
    shell = "rm notes.txt; sed -i s/name/none/ app.py"
    return {
        "greet the user by name": [
            [use("Write", file_path=app, content='print("hi", input("name? "))\n')],
            [say("It asks for the name now.")],
        ],
        "tidy up": [
            [use("Bash", command=shell, description="tidies up")],
            [say("Tidied up.")],
        ],
        "say goodbye, too": [
            [use("Bash", command="echo 'print(\"bye\")' >> app.py", description="x")],
            [say("It says goodbye.")],
        ],
    }


def play(tmp_path):
    """Yields each command of the page, what it shows and what it says."""
    home = tmp_path / "home"
    top = tmp_path / "work" / "shop"
    (tmp_path / "work").mkdir()
    with running(home, story(top)) as claude:
        (home / ".claude").symlink_to(claude.config)
        allowed = {"defaultMode": "acceptEdits", "allow": ["Bash", "Write", "Read"]}
        settings = claude.config / "settings.json"
        settings.write_text(json.dumps({"permissions": allowed}))
        programs = tmp_path / "bin"
        programs.mkdir()
        client = programs / "claude"
        started = " ".join(f"'{word}'" for word in [*claude.prefix, str(program())])
        client.write_text(f'#!/bin/sh\nexec {started} "$@"\n')
        client.chmod(0o755)
        environment = claude.environment
        environment["PATH"] = f"{programs}:{environment['PATH']}"
        environment |= {
            f"GIT_{who}_{what}": "you"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
        where, here = tmp_path / "work", tmp_path / "here"
        for block in re.findall(
            r"^```console claude\n(.*?)^```$",
            PAGE.read_text(),
            re.MULTILINE | re.DOTALL,
        ):
            for command, shown in test_docs.steps(block):
                done = subprocess.run(
                    ["bash", "-c", f"{command}\nstatus=$?; pwd >{here}; exit $status"],
                    cwd=where,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    check=False,
                    timeout=120,
                )
                where = Path(here.read_text().strip())
                said = done.stdout.replace(str(claude.config), "/home/you/.claude")
                yield command, shown, said.replace(str(top), "/home/you/shop")


@pytest.mark.slow
def test_the_page_shows_what_happens(tmp_path):
    for command, shown, said in play(tmp_path):
        wanted, found = map(test_docs.open_parts, map(no_ids, (shown, said)))
        assert test_docs.fits(wanted, found), f"$ {command}\n{said}"


def no_ids(text: str) -> str:
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uuid>", text)
    # What the client notes for itself varies; an id may be all digits.
    return re.sub(r"\b\d+ (?=msg|message)", "<n> ", text)
