"""What is small on the wire and vast where it is walked, written or read."""

from __future__ import annotations

from pathlib import Path

import pytest

from gitcp.checkpoints.turn_of import new_records
from gitcp.format.chunked import ChunkedName
from gitcp.project.workspace import open_workspace
from tests.support.bombs import LIMIT, long_log, measured, nested
from tests.support.clones import results
from tests.support.forge import Forge
from tests.support.gitrepo import git, git_line, write_files
from tests.support.inprocess import fails, invoke, ok
from tests.support.servers import endless_ssh, endless_web

REF = "refs/gitcp/s/evil/main"


@pytest.fixture
def forge() -> Forge:
    return Forge()


@pytest.fixture
def dropped(forge, bob) -> Path:
    """Bob's repository, into which plain git has brought a tree of 10^10 paths."""
    base = {"commit": git_line(bob, "rev-parse", "HEAD"), "branch": "main"}
    tip = forge.checkpoint(nested(forge), base={**base, "operation": None})
    forge.into(bob / ".git", {REF: tip})
    return bob


def test_a_tree_of_many_paths_is_refused_at_the_pull(forge, hub, bob):
    forge.into(hub, {REF: forge.checkpoint(nested(forge))})
    said = fails(bob, 21, "pull")
    assert "holds 11,111,111,1" in said
    assert "gitcp.pullMaxObjects" in said
    assert results_of_sessions(bob) == []


def test_one_bomb_does_not_keep_the_rest_away(forge, hub, bob):
    forge.into(
        hub,
        {
            REF: forge.checkpoint(nested(forge)),
            "refs/gitcp/s/good/main": forge.checkpoint(session="good"),
        },
    )
    assert invoke(bob, "pull").returncode == 3
    assert results_of_sessions(bob) == ["good"]


def results_of_sessions(repo: Path) -> list[str]:
    return [one["name"] for one in ok(repo, "sessions")["sessions"]]


# Everything that would walk the files of a checkpoint.
WALKS = [
    ("show", "evil:1"),
    ("files", "evil:1"),
    ("diff", "evil:1"),
    ("diff", "evil:1", "--stat"),
    ("restore", "evil:1", "--dry-run"),
    ("restore", "evil:1", "--yes"),
    ("restore", "evil:1", "--yes", "--trust"),
    ("restore", "evil:1", "--to", "out", "--yes"),
    ("switch", "evil/main"),
    ("switch", "evil/main", "--restore", "--yes"),
    ("fork", "evil:1", "mine"),
    ("fork", "evil:1", "mine", "--worktree", "../tree"),
    ("scan", "evil"),
    ("export", "evil:1", "-o", "../evil.bundle"),
    ("push", "origin", "evil"),
    ("fork", "evil:1", "mine", "--no-switch"),
]

pytestmark = pytest.mark.timeout(90)


@pytest.mark.parametrize("args", WALKS, ids=" ".join)
def test_what_plain_git_brought_is_not_walked_either(dropped, args):
    said = fails(dropped, 21, *args)
    assert "gitcp.pullMaxObjects" in said
    assert not (dropped / "out" / "00").exists()


READS = [
    ("log", "--all"),
    ("log", "-s", "evil"),
    ("sessions",),
    ("branches", "-s", "evil"),
    ("status",),
    ("messages", "evil:1"),
    ("context", "evil:1"),
    ("decisions", "evil:1"),
    ("du",),
    ("gc",),
    ("doctor",),
    ("prune", "--keep-last", "1", "--yes"),
    ("steps", "-s", "evil"),
    ("remote-sessions",),
    ("purge", "00", "--yes"),
]


@pytest.mark.parametrize("args", READS, ids=" ".join)
def test_what_walks_no_files_goes_on(dropped, args):
    done = invoke(dropped, *args)
    assert done.returncode in {0, 1}, (done.returncode, done.stderr)


def test_verify_says_so_and_checks_the_rest(dropped):
    ok(dropped, "save", "-m", "mine")
    done = invoke(dropped, "verify")
    assert done.returncode == 15
    assert b"gitcp.pullMaxObjects" in done.stdout
    assert done.stdout.count(b"evil") <= 1


def test_a_session_that_plain_git_replaced_by_one_says_how_to_go_on(dropped):
    ok(dropped, "save", "-m", "mine")
    git(dropped, "update-ref", "refs/gitcp/s/main/main", REF)
    for args in (("status",), ("save",)):
        assert "`gitcp sessions` lists them" in fails(dropped, 21, *args)


def test_what_is_in_head_does_not_count(forge, hub, ann, bob):
    """A project may be as large as it likes; so may one's own checkpoints."""
    write_files(ann, {f"d{n % 7}/f{n}": b"x" * 100 for n in range(60)})
    ok(ann, "save", "-s", "all")
    git(ann, "add", "-A")
    git(ann, "commit", "-q", "-m", "files")
    git(ann, "push", "-q", "origin", "HEAD")
    write_files(ann, {"d1/more": b"x"})
    ok(ann, "save", "-s", "more")
    ok(ann, "push")
    for repo in (ann, bob):
        git(repo, "config", "gitcp.pullMaxObjects", "40")
    # Bob's HEAD does not have them yet.
    said = invoke(bob, "pull", "origin", "more").stderr.decode()
    assert "gitcp.pullMaxObjects" in said
    git(bob, "pull", "-q")
    assert results(bob, "pull", "origin", "more") == {"more/main": ("created", "main")}
    ok(bob, "restore", "more:last", "--yes")
    # One's own is never measured, whatever HEAD is.
    git(ann, "reset", "-q", "--hard", "HEAD~1")
    ok(ann, "show", "more:last")
    ok(ann, "restore", "more:last", "--yes")


def test_a_setting_lets_it_through(forge, hub, bob):
    forge.into(hub, {REF: forge.checkpoint(nested(forge, levels=2))})
    git(bob, "config", "gitcp.pullMaxObjects", "100")
    # A pull counts what gitcp wrote, too.
    assert "holds 112 paths" in fails(bob, 21, "pull")
    git(bob, "config", "gitcp.pullMaxObjects", "112")
    assert results(bob, "pull") == {"evil/main": ("created", "main")}
    ok(bob, "show", "evil:1")
    git(bob, "config", "gitcp.pullMaxObjects", "100")
    assert "holds 110 paths" in fails(bob, 21, "show", "evil:1")


# --- lists of refs ----------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["refs/gitcp/s/x/", "refs/heads/"])
@pytest.mark.parametrize("verb", ["pull", "remote-sessions", "push"])
def test_a_list_of_refs_without_end_is_an_error(bob, tmp_path, verb, prefix):
    ok(bob, "save")
    git(bob, "config", "core.sshCommand", endless_ssh(tmp_path, prefix))
    git(bob, "config", "ssh.variant", "simple")
    git(bob, "remote", "set-url", "origin", "ssh://localhost/x")
    ran = measured(bob, verb, limit=None)
    assert ran.status == 21, ran.err
    assert b"more refs than gitcp reads" in ran.err
    assert ran.peak < LIMIT


def test_a_list_of_refs_without_end_from_the_web_is_an_error(bob):
    with endless_web("refs/heads/") as url:
        git(bob, "remote", "set-url", "origin", url)
        ran = measured(bob, "pull", limit=None)
    assert ran.status == 21, ran.err
    assert ran.peak < LIMIT


@pytest.mark.ref_files
def test_a_remote_of_very_many_sessions_is_an_error(hub, bob):
    """In a directory here, as on a disk that is shared."""
    head = git_line(hub, "rev-parse", "HEAD")
    names = (f"{head} refs/gitcp/s/{n:060d}/main\n" for n in range(200_000))
    (hub / "packed-refs").write_text("".join(names))
    ran = measured(bob, "pull", limit=None)
    assert ran.status == 21, ran.err
    assert b"more refs than gitcp reads" in ran.err
    assert ran.peak < LIMIT


def test_a_bundle_of_very_many_refs_is_an_error(forge, bob, tmp_path):
    tip = forge.checkpoint()
    refs = {f"refs/gitcp/s/{n:060d}/main": tip for n in range(200_000)}
    bundle = forge.bundle(tmp_path / "many.bundle", refs)
    ran = measured(bob, "import", bundle, limit=None)
    assert ran.status == 21, ran.err
    assert ran.peak < LIMIT


# --- logs -------------------------------------------------------------------------------

# All of a log held in memory is more than this, and reading one takes a third of it.
LITTLE = 128 * 1024 * 1024
SAID = b'{"role":"user","content":"%s"}\n'
# Each value takes some twenty times the bytes that it has here.
DENSE = b"[" + b"[]," * 2_600_000 + b"[]]\n"
READS_LOGS = [
    ("messages", "evil:1", "--format", "json"),
    ("messages", "evil:1", "-o", "../said.jsonl"),
    ("restore", "evil:1", "--yes"),
    ("view", "evil:1", "-o", "../page"),
]
# Read in the same way; the slow run looks at these too.
READS_LOGS_ALIKE = [
    ("show", "evil:1"),
    ("messages", "evil:1", "--format", "markdown"),
    ("messages", "evil:1", "--format", "jsonl"),
    ("log", "-s", "evil"),
]


@pytest.fixture
def long(forge, bob) -> Path:
    """Bob's repository with a conversation of 200 MB in a few kilobytes."""
    piece = SAID % (b"x" * 40_000_000) + SAID % b"the end"
    forge.into(bob / ".git", {REF: long_log(forge, piece, 5)})
    return bob


@pytest.mark.parametrize(
    "args",
    [
        *(pytest.param(args, id=" ".join(args)) for args in READS_LOGS),
        *(
            pytest.param(args, id=" ".join(args), marks=pytest.mark.slow)
            for args in READS_LOGS_ALIKE
        ),
    ],
)
def test_a_long_log_takes_little_memory(long, args):
    ran = measured(long, *args, limit=None)
    assert ran.status in {0, 3}, ran.err
    assert ran.peak < LITTLE
    if args[0] in {"messages", "show"} and "jsonl" not in args[-1]:
        assert b"the end" in ran.out
    if args[-1] == "jsonl":
        assert ran.size > 200_000_000


def test_the_end_of_a_long_log_is_read_without_the_rest(forge, bob):
    """What the picker searches of a turn; a segment may be as large as a pull takes."""
    piece = SAID % (b"x" * 1_000_000)
    forge.into(bob / ".git", {REF: long_log(forge, piece, 5)})
    store = open_workspace(bob).store
    tip = store.tip("evil", "main")
    assert tip is not None
    assert new_records(store, tip, tip) == 5 * piece
    assert new_records(store, tip, tip, most=3 * len(piece) + 1) == 3 * piece
    assert new_records(store, tip, tip, most=len(piece) - 1) == b""


def test_long_logs_are_compared_in_little_memory(forge, bob):
    ok(bob, "save", "-s", "main", "--append", "-", input=SAID % b"mine")
    piece = SAID % (b"x" * 40_000_000) + SAID % b"the end"
    forge.into(bob / ".git", {REF: long_log(forge, piece, 5)})
    for args, first, also in (
        (("evil:1", "evil:1", "--json"), b'"common":10', b'"added_records":[]'),
        (("main:last", "evil:1"), b"0 records in common, 1 only in", b"mine"),
    ):
        ran = measured(bob, "diff", "--conversation", *args, limit=None)
        assert ran.status == 0, ran.err
        assert first in ran.out
        assert also in ran.out
        assert ran.peak < LITTLE


def test_a_message_in_a_long_log_is_found_in_little_memory(forge, bob):
    """One id in every line of it, and the one that is asked for in the last."""
    filler = b'{"type":"user","uuid":"0a0a0a0a-common","x":"%s"}\n' % (b"x" * 1_000_000)
    piece = filler * 30
    tip = long_log(forge, piece, 6, kind="claude-code")
    forge.into(bob / ".git", {REF: tip})
    ran = measured(bob, "show", "evil:0a0a0a0a-common", "--json", limit=None)
    assert ran.status == 13, ran.err
    assert ran.peak < LITTLE


def test_a_long_conversation_is_not_handed_to_its_client(forge, bob, sealed):
    """Its files are restored all the same."""
    record = b'{"type":"user","uuid":"u","message":{"role":"user","content":"%s"}}\n'
    tip = long_log(forge, record % (b"x" * 30_000_000), 10, kind="claude-code")
    forge.into(bob / ".git", {REF: tip})
    ran = measured(bob, "restore", "evil:1", "--yes", "--trust", limit=None)
    assert ran.status == 3, ran.err
    assert b"too large for that: it has 300,000," in ran.err
    assert ran.peak < LITTLE
    assert not (sealed / ".claude").exists()
    assert ok(bob, "log")["checkpoints"][0]["trigger"] == "restore"


@pytest.mark.parametrize("agent", ["codex", "gemini"])
def test_a_conversation_for_another_client_takes_little_memory(forge, bob, agent):
    """All its messages are in memory at once, each with many small parts."""
    parts = b",".join([b'{"type":"text","text":"a"}'] * 21)
    record = b'{"type":"user","uuid":"u","message":{"role":"user","content":[%s]}}\n'
    piece = record % parts * 5_000
    args = ("resume", "evil:1", "--with", agent, "--trust")
    forge.into(bob / ".git", {REF: long_log(forge, piece, 5, kind="claude-code")})
    assert measured(bob, *args, limit=None).peak < LIMIT
    tip = long_log(forge, piece, 6, kind="claude-code")
    forge.into(bob / ".git", {REF: tip})
    ran = measured(bob, *args, limit=None)
    assert ran.status == 22, ran.err
    assert b"too large for that: it has 18," in ran.err
    assert ran.peak < LITTLE


def test_a_pull_of_a_long_log_takes_little_memory(forge, hub, bob):
    piece = SAID % (b"x" * 20_000_000)
    forge.into(hub, {REF: long_log(forge, piece, 11)})
    ran = measured(bob, "pull", limit=None)
    assert ran.status == 0, ran.err
    assert ran.peak < LITTLE
    ran = measured(bob, "verify", limit=None)
    assert ran.status == 0, ran.err
    assert ran.peak < LITTLE


@pytest.mark.parametrize(
    "form", ["markdown", pytest.param("json", marks=pytest.mark.slow)]
)
def test_records_of_many_values_take_little_memory(forge, bob, form):
    forge.into(bob / ".git", {REF: long_log(forge, DENSE, 9)})
    ran = measured(bob, "messages", "evil:1", "--format", form, limit=None)
    assert ran.status in {0, 3}, ran.err
    assert ran.peak < LIMIT


def test_a_log_of_one_blob_many_times_is_refused_at_the_pull(forge, hub, bob):
    git(bob, "config", "gitcp.pullMaxSize", "10m")
    forge.into(hub, {REF: long_log(forge, SAID % (b"x" * 1_000_000), 11)})
    assert "gitcp.pullMaxSize" in fails(bob, 21, "pull")


def test_logs_written_again_and_again_are_not_all_read(forge, hub, bob):
    """Each session lists a segment many times: together they come to too much."""
    git(bob, "config", "gitcp.pullMaxSize", "10m")
    for number in range(4):
        piece = SAID % (b"%d" % number * 1_000_000)
        tip = long_log(forge, piece, 4, session=f"s{number}")
        forge.into(hub, {f"refs/gitcp/s/s{number}/main": tip})
    done = invoke(bob, "pull")
    assert done.returncode == 3
    assert b"gitcp.pullMaxSize" in done.stderr
    # Each by itself is no more than it may be.
    assert results_of_sessions(bob) == ["s0", "s1"]


def test_a_list_too_large_to_decode_is_refused_at_the_pull(forge, hub, bob):
    line = b'{"path":"a","reason":"x"}\n'
    blob = forge.blob(line * 700_000)
    tip = forge.checkpoint(own=[(b"100644", b"skipped.jsonl", blob)], skipped=700_000)
    forge.into(hub, {REF: tip})
    assert "skipped.jsonl has 18,200,000 bytes" in fails(bob, 15, "pull")


def test_a_conversation_is_read_from_its_end(forge, bob):
    piece = b"".join(SAID % (b"%d" % n) for n in range(3))
    forge.into(bob / ".git", {REF: long_log(forge, piece, 300)})
    assert len(ok(bob, "messages", "evil:1", "--format", "json")) == 900
    assert invoke(bob, "messages", "evil:1", "--format", "jsonl").stdout == piece * 300


def test_a_pointer_counts_with_the_size_that_its_name_says(forge, hub, bob):
    """A list of one chunk; the content it is said to be is larger than any disk."""
    chunk = forge.blob(b"x")
    name = ChunkedName(bytes(len(chunk)), 10**15)
    group = forge.tree([(b"40000", b"0000", forge.tree([(b"100644", b"000", chunk)]))])
    tip = forge.checkpoint(
        [(b"100644", b"big", forge.blob(name.pointer))],
        own=[(b"40000", b"chunks", forge.tree([(b"40000", name.path, group)]))],
        format=3,
    )
    forge.into(hub, {REF: tip})
    said = fails(bob, 21, "pull")
    assert "1,000,000,000,000," in said
    assert "gitcp.pullMaxSize" in said
    assert results_of_sessions(bob) == []
