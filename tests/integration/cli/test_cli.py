"""The command line: documents, exit codes, terminals."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from gitcp.cli import boundary
from gitcp.cli.app import COMMANDS
from gitcp.cli.emit import Output
from gitcp.cli.topics import TOPICS
from gitcp.errors import GitcpError
from gitcp.format import checkpoint as manifests
from tests.support import forked
from tests.support.gitrepo import (
    git,
    git_line,
    gitcp_argv,
    gitcp_environment,
    make_repo,
    run_gitcp,
    write_files,
)
from tests.support.inprocess import fails, invoke, ok

CHECKPOINT = {
    "id", "commit", "session", "branch", "seq", "created", "trigger", "note", "label",
    "base", "files", "conversation", "decisions", "position", "skipped",
    "restored_from", "forked_from",
}  # fmt: skip


def test_help_names_every_command_once_and_cuts_nothing_short(tmp_path):
    done = invoke(tmp_path, "--help", env={"COLUMNS": "80"})
    assert done.returncode == 0
    told = done.stdout.decode().partition("Show this message and exit.")[2]
    told, _, topics = told.partition("Topics, for")
    assert re.findall(r"^  ([a-z-]+) {2,}\S", topics, re.MULTILINE) == list(TOPICS)
    assert "..." not in told
    listed = re.findall(r"^  ([a-z-]+) {2,}\S", told, re.MULTILINE)
    assert sorted(listed) == sorted(COMMANDS)
    assert all(len(line) <= 80 for line in told.splitlines())


def save(repo: Path, *args: str, **given) -> dict:
    return ok(repo, "save", "--allow-empty", *args, **given)["checkpoint"]


# --- documents --------------------------------------------------------------------


def test_the_documents_of_the_interface(repo):
    write_files(repo, {"d/x": b"1"})
    os.mkfifo(repo / "pipe")
    given = ["-m", "note", "--label", "lab", "--decision", "D", "--why", "W"]
    given += ["--position", '{"batch": 1.50}', "--trigger", "interval", "--task", "T"]
    saved = ok(repo, "save", "--append", "-", *given, input=b'{"role":"user"}\n')
    assert set(saved) >= {"schema", "created", "checkpoint"}
    assert (saved["schema"], saved["created"]) == ("gitcp.save/1", True)
    one = saved["checkpoint"]
    assert set(one) >= CHECKPOINT
    assert re.fullmatch(r"[0-9a-f]{12}", one["id"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", one["created"])
    assert one["base"]["commit"] == git_line(repo, "rev-parse", "HEAD")
    assert one["base"]["branch"] == "main"
    assert {k: one["files"][k] for k in ("added", "modified", "deleted")} == {
        "added": 7, "modified": 0, "deleted": 0}  # fmt: skip
    assert {
        "messages": 1,
        "bytes": 16,
        "agent": "messages",
        "agent_session": None,
    }.items() <= (one["conversation"].items())
    assert (one["note"], one["label"], one["trigger"]) == ("note", "lab", "interval")
    assert (one["decisions"], one["position"], one["skipped"]) == (2, {"batch": 1.5}, 1)
    again = ok(repo, "save")
    assert again["created"] is False
    assert again["checkpoint"]["id"] == one["id"]

    write_files(repo, {"d/x": b"2"})
    (repo / "README.md").unlink()
    two = save(repo)
    assert {k: two["files"][k] for k in ("added", "modified", "deleted")} == {
        "added": 0, "modified": 1, "deleted": 1}  # fmt: skip
    log = ok(repo, "log")
    assert log["schema"] == "gitcp.log/1"
    assert [found["id"] for found in log["checkpoints"]] == [two["id"], one["id"]]
    assert len(ok(repo, "log", "-n", "1")["checkpoints"]) == 1

    shown = ok(repo, "show")
    assert shown["schema"] == "gitcp.show/1"
    assert shown["changes"] == [
        {"path": "README.md", "status": "deleted"},
        {"path": "d/x", "status": "modified"},
    ]
    assert shown["skipped"] == [{"path": "pipe", "reason": "special-file"}]
    assert shown["decisions"] == []
    (entry, task) = ok(repo, "show", "1")["decisions"]
    assert {key: entry[key] for key in ("kind", "text", "why", "paths")} == {
        "kind": "decision", "text": "D", "why": "W", "paths": []}  # fmt: skip
    assert (task["kind"], entry["at"]) == ("task", task["at"])

    back = ok(repo, "restore", "-y", "1")
    assert set(back) >= {"schema", "checkpoint", "saved", "plan", "left", "resume"}
    assert back["schema"] == "gitcp.restore/1"
    assert (back["saved"], back["resume"]) == (None, None)
    assert back["checkpoint"]["restored_from"] == one["id"]
    assert sorted((step["path"], step["action"]) for step in back["plan"]) == [
        ("README.md", "write"), ("d/x", "write")]  # fmt: skip
    # A restore brings no decisions of its own.
    assert ok(repo, "show")["decisions"] == []

    forked = ok(repo, "fork", "side")
    assert forked["checkpoint"]["forked_from"] == back["checkpoint"]["id"]
    assert {"schema", "checkpoint"} <= set(ok(repo, "undo", "-y"))
    listed = ok(repo, "sessions")
    assert listed["schema"] == "gitcp.sessions/1"
    (session,) = listed["sessions"]
    assert (session["name"], session["current"]) == ("main", True)
    assert [set(found) >= {"name", "tip", "seq"} for found in session["branches"]]
    assert [found["name"] for found in session["branches"]] == ["main", "side"]


def test_paths_that_are_not_utf8(repo):
    (Path(os.fsdecode(os.fsencode(repo) + b"/caf\xe9"))).write_bytes(b"1")
    save(repo)
    (found,) = [one for one in ok(repo, "show")["changes"] if "path_b64" in one]
    assert (found["path"], found["path_b64"]) == ("caf\\xe9", "Y2Fm6Q==")
    assert invoke(repo, "cat", "1", b"caf\xe9").stdout == b"1"


def test_texts_in_another_encoding_are_refused(repo):
    for option in ("-m", "--decision", "--fact", "--task", "--trigger", "--label"):
        fails(repo, 2, "save", option, b"caf\xe9")
    fails(repo, 2, "decide", b"caf\xe9")
    fails(repo, 2, "save", "-s", b"caf\xe9")
    assert ok(repo, "sessions")["sessions"] == []
    ok(repo, "save", "--active", b"caf\xe9")
    assert ok(repo, "decisions")["decisions"][0]["paths"] == ["caf\\xe9"]


def test_files_in_work_are_given_one_by_one_or_together(repo):
    for number, given in enumerate(
        (
            ["--active", "a.py", "src/b.py", "--note", "c"],
            ["--active", "a.py", "--active", "src/b.py"],
            ["--active=a.py", "src/b.py"],
        ),
        1,
    ):
        ok(repo, "save", "-s", f"s{number}", *given)
        found = ok(repo, "decisions", "--kind", "active")
        assert found["decisions"][-1]["paths"] == ["a.py", "src/b.py"]
    # Nothing else takes what is left over.
    fails(repo, 2, "save", "--active", "a.py", "--note", "c", "src/b.py")
    fails(repo, 2, "save", "src/b.py")


def test_diff(repo):
    save(repo, "--append", "-", "--decision", "a", input=b'{"n":1}\n')
    write_files(repo, {"README.md": b"# B\n", "new\x1b": b"1\n", "bin.x": b"\0\1"})
    before = sorted((repo / ".git/objects").rglob("*")), git(repo, "for-each-ref")
    found = ok(repo, "diff", "1")
    assert found["b"] is None
    changes = {(one["path"], one["status"], one["added"]) for one in found["changes"]}
    assert changes == {
        ("README.md", "modified", 1),
        ("new\x1b", "added", 1),
        ("bin.x", "added", None),
    }
    text = invoke(repo, "diff", "1").stdout
    assert b"-# A project\n+# B\n" in text
    assert b"Binary files" in text
    assert b"\x1b" not in text
    assert (
        sorted((repo / ".git/objects").rglob("*")),
        git(repo, "for-each-ref"),
    ) == before
    save(repo, "--append", "-", "--decision", "b", input=b'{"n":2}\n')
    assert ok(repo, "diff", "1", "2")["changes"] == found["changes"]
    assert ok(repo, "diff", "2")["changes"] == []
    assert len(ok(repo, "diff", "1", "2", "README.md")["changes"]) == 1
    assert len(ok(repo, "diff", "1", "README.md")["changes"]) == 1
    assert "binary" in invoke(repo, "diff", "1", "2", "--stat").stdout.decode()
    said = ok(repo, "diff", "1", "--conversation")
    assert (said["common"], said["added_records"]) == (1, [{"n": 2}])
    assert [one["text"] for one in ok(repo, "diff", "1", "--decisions")["added"]] == [
        "b"
    ]
    fails(repo, 13, "diff", "1", "nowhere")
    fails(repo, 2, "diff", "1", "--files", "--decisions")


# --- exit codes -------------------------------------------------------------------


def test_every_exit_code_has_one_class():
    found: dict[int, set[str]] = {}

    def look(kind: type[GitcpError]) -> None:
        for sub in kind.__subclasses__():
            # A special case of an error has the exit status of the error.
            if "exit_status" in vars(sub):
                found.setdefault(sub.exit_status, set()).add(sub.__name__)
            look(sub)

    look(GitcpError)
    # The last two are what a shell says of a program that it cannot start.
    assert found.keys() == {1, 2, 3, *range(10, 27), 126, 127}
    assert found.pop(20) == {"GitFailedError", "StorageError"}
    assert all(len(names) == 1 for names in found.values())


def fails_alike(repo: Path, status: int, *args: str) -> None:
    """A command that fails tells the same as text and, with --json, as a document."""
    said = fails(repo, status, *args)
    done = invoke(repo, args[0], "--json", *args[1:])
    assert done.returncode == status
    error = json.loads(done.stderr.splitlines()[-1])["error"]
    assert error.keys() >= {"code", "message", "hint", "exit"}
    assert error["exit"] == status
    assert f"gitcp: {error['message']}\n" in said
    assert error["hint"] is None or error["hint"] in said


def test_exit_codes(repo, tmp_path):
    fails_alike(repo, 2, "save", "--nonsense")
    fails_alike(repo, 2, "frobnicate")
    fails_alike(repo, 2, "restore")
    fails_alike(repo, 1, "restore", "--continue")
    fails_alike(repo, 13, "show")
    fails_alike(repo, 13, "fork", "x")
    fails_alike(repo, 2, "save", "--position", "{")
    fails_alike(repo, 2, "save", "--position", "")
    fails_alike(repo, 2, "save", "--why", "x")
    save(repo)
    write_files(repo, {"README.md": b"2"})
    fails_alike(repo, 23, "restore", "1")
    fails_alike(repo, 23, "rollback")
    assert (repo / "README.md").read_bytes() == b"2"
    with (repo / ".git/gitcp/worktree.lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        git(repo, "config", "gitcp.lockTimeout", "50ms")
        fails_alike(repo, 11, "save")
    git(repo, "config", "gitcp.maxFileSize", "huge")
    fails_alike(repo, 2, "save")
    git(repo, "config", "--unset", "gitcp.maxFileSize")
    # A ref that points to no checkpoint.
    git(repo, "update-ref", "refs/gitcp/s/bad/main", "HEAD")
    fails_alike(repo, 15, "show", "bad:last")
    broken = run_gitcp(repo, "save", env={"PATH": str(tmp_path)})
    assert broken.returncode == 20
    assert broken.stderr.startswith(b"gitcp: git could not be started")


def test_a_newer_format_is_refused(repo, monkeypatch):
    real = manifests.encode_manifest
    monkeypatch.setattr(
        manifests,
        "encode_manifest",
        lambda made: real(made).replace(b'"format": 1', b'"format": 9'),
    )
    invoke(repo, "save")
    monkeypatch.undo()
    (repo / "later").write_text("later")
    for command in (["show"], ["restore", "-y", "1"], ["log"], ["messages"], ["save"]):
        fails_alike(repo, 16, *command)
        assert "upgrade gitcp" in fails(repo, 16, *command)


def test_a_closed_pipe_is_silent(repo):
    for number in range(3):
        save(repo, "-m", f"{number}" * 30_000)
    argv = [os.fsdecode(arg) for arg in gitcp_argv("log", "--json")]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(argv, cwd=repo, env=gitcp_environment(), stdout=writer,
                          stderr=subprocess.PIPE, check=False)  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


@pytest.mark.parametrize("kind", [BrokenPipeError, SystemExit])
def test_a_broken_pipe_to_another_program_is_reported(capfd, kind):
    """click ends with SystemExit after any broken pipe."""

    def ask_git() -> None:
        raise BrokenPipeError(errno.EPIPE, "to git")

    def work() -> None:
        try:
            ask_git()
        except BrokenPipeError:
            if kind is BrokenPipeError:
                raise
            sys.exit(1)

    assert boundary.run(Output(), work) == 70
    told = capfd.readouterr().err
    assert "this is a bug in gitcp" in told
    assert "to git" in told


# --- terminals --------------------------------------------------------------------

NASTY = (
    "\x1b[31m\x1b]52;c;aGk=\x07\x1b]8;;http://x\x1b\\ \r\x08\x9b31m\u202eevil\u2066\x7f"
)
CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def at_terminal(
    cwd: Path,
    *args: str,
    answer: bytes = b"",
    env: dict | None = None,
    then: Sequence[bytes] = (),
) -> tuple[int, str]:
    """Runs gitcp on a terminal of its own; returns exit status and all it showed.

    `answer` is for the first question, `then` has those for the next ones.
    """
    answers = [answer, *then] if answer else []
    variables = gitcp_environment({"TERM": "xterm", "NO_COLOR": "1", **(env or {})})
    fd, theirs = pty.openpty()
    pid = forked.start_at(cwd, args, variables, theirs)
    os.close(theirs)
    shown = b""
    while True:
        if not select.select([fd], [], [], 30)[0]:
            os.kill(pid, signal.SIGKILL)
            break
        try:
            chunk = os.read(fd, 65536)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
        asked = len(re.findall(rb"\[y/N[^]]*\]: ", shown))
        if answers and asked > len(then) + 1 - len(answers):
            os.write(fd, answers.pop(0))
    _, status = os.waitpid(pid, 0)
    os.close(fd)
    text = shown.decode("utf-8", "backslashreplace").replace("\r\n", "\n")
    return os.waitstatus_to_exitcode(status), text


@pytest.fixture
def poisoned(repo) -> Path:
    """Everything that a checkpoint can hold, with what steers a terminal in it."""
    import gitcp

    write_files(repo, {f"f{NASTY.replace('/', '')}": f"{NASTY}\n".encode()})
    os.mkfifo(repo / f"p{NASTY.replace('/', '')}")
    entry = gitcp.Decision(NASTY, why=NASTY, kind="fact", paths=(NASTY,))
    session = gitcp.open(repo).session(f"s{NASTY}", f"b{NASTY}")
    with pytest.MonkeyPatch.context() as patched:
        # A program is refused another kind; what others send may have one.
        patched.setattr("gitcp.checkpoints.session.KINDS", ("fact", "task", NASTY))
        session.save(
            messages=[{"role": "user", "content": NASTY}, {"type": NASTY, "x": NASTY}],
            note=NASTY,
            label=f"l{NASTY}",
            trigger=f"t{NASTY}",
            position={"p": NASTY},
            metadata={"m": NASTY},
            decisions=[
                entry,
                gitcp.Decision(NASTY, kind="task"),
                gitcp.Decision("x", kind=NASTY),
            ],
        )
    transcript = repo.parent / "transcript"
    transcript.write_bytes(f"not json {NASTY}\n".encode() + b"\x1b[2J\xff\n")
    ok(repo, "save", "--transcript", transcript, "-m", NASTY)
    return repo


def test_nothing_steers_the_terminal(poisoned):
    (poisoned / "README.md").write_bytes(b"changed")
    name = f"f{NASTY.replace('/', '')}"
    commands = [
        ["log"], ["log", "--all"], ["show"], ["show", "1"], ["files"], ["cat", "1", name],
        ["messages"], ["messages", "1"], ["messages", "1", "--format", "jsonl"],
        ["messages", "--format", "jsonl"], ["messages", "1", "--json"],
        ["messages", "--format", "markdown"], ["context", "1"], ["decisions", "1"],
        ["sessions"], ["branches"], ["diff", "1"], ["diff", "1", "2", "--conversation"],
        ["diff", "1", "--json"], ["show", "1", "--json"], ["log", "--json"],
        ["restore", "--dry-run", "1"], ["restore", "1"], ["show", NASTY],
        ["show", NASTY, "--json"], ["cat", "1", NASTY], ["switch", NASTY], [NASTY],
        ["save", "-s", NASTY], ["save", "--messages", NASTY], ["status"], ["verify"],
        ["decide", NASTY], ["save", "-m", NASTY], ["fork", "-y", "1", "aside"],
    ]  # fmt: skip
    for command in commands:
        status, shown = at_terminal(poisoned, *command, answer=b"n\n")
        assert status != 70, (command, shown)
        assert not CONTROL.search(shown), (command, shown)
        if "--json" in command and status == 0:
            json.loads(shown)


def test_a_path_stays_on_its_line(repo):
    """A name with a newline must not pass for two paths, nor for a line of gitcp's own."""
    write_files(repo, {"evil\n  D README": b"1", "tab\there": b"1", "plain": b"1"})
    os.mkfifo(repo / "pipe\nline")
    save(repo, input=b"")
    shown = ["evil\\n  D README", "tab\\there", "plain"]
    for command in ("show", "files"):
        lines = invoke(repo, command).stdout.decode().splitlines()
        assert all(any(line.endswith(name) for line in lines) for name in shown)
        assert "  D README" not in lines
    write_files(repo, {"evil\n  D README": b"2", "tab\there": b"2", "new\nline": b"2"})
    for command, option in (("diff", "--stat"), ("restore", "--dry-run")):
        lines = invoke(repo, command, "last", option).stdout.decode().splitlines()
        assert any("evil\\n  D README" in line for line in lines), command
        assert any("tab\\there" in line for line in lines), command
        assert any("new\\nline" in line for line in lines), command
        assert "line" not in [line.strip() for line in lines]
    patch = invoke(repo, "diff", "last").stdout.decode().splitlines()
    assert not [line for line in patch if line.strip() == "D README"]
    done = invoke(repo, "restore", "last", "--yes")
    assert b"pipe\\nline" in done.stdout + done.stderr


def test_one_message_is_not_messages(repo):
    save(repo, "--append", "-", input=b'{"role":"user","content":"hi"}\n')
    assert b"Conversation (1 message," in invoke(repo, "show").stdout


def test_a_pipe_gets_every_byte(poisoned):
    name = f"f{NASTY.replace('/', '')}"
    assert invoke(poisoned, "cat", "1", name).stdout == f"{NASTY}\n".encode()
    raw = invoke(poisoned, "messages", "--format", "jsonl").stdout
    assert raw.endswith(b"\x1b[2J\xff\n")


def test_a_terminal_is_asked(repo):
    save(repo)
    write_files(repo, {"README.md": b"2"})
    status, shown = at_terminal(repo, "restore", "1", answer=b"n\n")
    assert status == 1
    assert "README.md" in shown
    assert (repo / "README.md").read_bytes() == b"2"
    status, shown = at_terminal(repo, "restore", "1", answer=b"y\n")
    assert status == 0, shown
    assert (repo / "README.md").read_bytes() == b"# A project\n"


def test_at_the_question_d_shows_what_would_change_and_asks_again(repo):
    save(repo)
    (repo / "README.md").write_bytes(b"2\n")
    (repo / "new").write_bytes(b"\x1b[31mnew\n")
    save(repo)
    status, shown = at_terminal(
        repo,
        *("restore", "1"),
        answer=b"d\n",
        then=[b"what\n", b"d\n", b"n\n"],
        env={"GIT_PAGER": "sed s/^/paged:/"},
    )
    assert status == 1, shown
    assert (repo / "README.md").read_bytes() == b"2\n"
    assert shown.count("[y/N/d=diff]: ") == 4
    assert shown.count("paged:-2\npaged:+# A project\n") == 2
    # The summary is above each question.
    assert shown.count("1 overwritten, 1 deleted") == 3
    assert "deleted file" in shown
    assert "\x1b[31m" not in shown
    assert "Answer y (yes), n (no) or d (show the diff)." in shown
    status, shown = at_terminal(
        repo, "-q", "restore", "1", answer=b"d\n", then=[b"y\n"]
    )
    assert status == 0, shown
    assert "-2\n+# A project\n" in shown
    assert (repo / "README.md").read_bytes() == b"# A project\n"
    assert not (repo / "new").exists()


def test_a_question_about_the_conversation_alone_offers_no_diff(repo):
    save(repo, "--messages", "-", input=b'{"role":"user","content":"hi"}\n')
    save(repo, "--allow-empty")
    _, shown = at_terminal(repo, "restore", "1", "--conversation", answer=b"n\n")
    assert "[y/N]: " in shown


def test_colours(repo):
    save(repo)
    assert "\x1b[" in at_terminal(repo, "log", env={"NO_COLOR": ""})[1]
    assert "\x1b[" not in at_terminal(repo, "log")[1]
    assert b"\x1b[" not in invoke(repo, "log").stdout
    assert b"\x1b[" in invoke(repo, "--color", "always", "log").stdout
    assert "\x1b[" not in at_terminal(repo, "--color", "never", "log")[1]


def test_directory_quiet_and_version(repo, tmp_path):
    assert invoke(tmp_path, "-C", repo, "save").returncode == 0
    make_repo(tmp_path / "other")
    assert invoke(tmp_path, "-q", "-C", tmp_path / "other", "log").stderr == b""
    assert invoke(tmp_path, "--version").stdout.startswith(b"gitcp ")
    for command in ([], ["save"], ["restore"], ["diff"]):
        assert b"Usage: gitcp" in invoke(tmp_path, *command, "-h").stdout


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (("import", b"\xff.bundle"), 2),
        (("sessions", b"\xff"), 2),
        (("-C", b"\xff", "status"), 10),
        (("config", "exclude", b"\xff"), 0),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_json_shows_bytes_that_are_no_text(repo, args, status):
    done = invoke(repo, "--json", *args)
    assert done.returncode == status, done.stderr
    raw = done.stderr or done.stdout
    # Strict readers refuse half of a character.
    assert "\\\\udcff" in str(msgspec.json.decode(raw))
