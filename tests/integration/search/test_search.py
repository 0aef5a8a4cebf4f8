"""`gitcp search` finds what is stored, and shows only what git has."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from gitcp.search import build, database, find, read_back
from tests.support.damage import explode, loose
from tests.support.gitrepo import git, make_repo, run_gitcp, write_files
from tests.support.inprocess import fails, invoke, ok


def message(role, text, **more):
    return json.dumps({"role": role, "content": text, **more})


def talk(*texts):
    """Records as Claude Code writes them: a prompt, a call, its output, an answer."""
    asked, command, output, answer = texts
    call = {
        "type": "tool_use",
        "id": "t",
        "name": "Bash",
        "input": {"command": command},
    }
    result = {"type": "tool_result", "tool_use_id": "t", "content": output}
    lines = [("user", asked), ("assistant", [call]), ("user", [result])]
    lines.append(("assistant", [{"type": "text", "text": answer}]))
    return [
        json.dumps(
            {
                "type": role,
                "uuid": f"{asked}-{at}",
                "timestamp": f"2026-11-20T10:00:0{at}.000Z",
                "message": {"role": role, "content": content},
            }
        )
        for at, (role, content) in enumerate(lines)
    ]


def transcript(path: Path, *lines: str) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


@pytest.fixture
def repo(tmp_path):
    top = make_repo(tmp_path / "repo", {"src/vat.py": b"rate = 2  # hovercraft\n"})
    first = talk("fix the race", "grep cormorant", "zeppelin: 1", "it was an albatross")
    file = transcript(tmp_path / "talk.jsonl", *first)
    ok(
        top,
        "save",
        "--transcript",
        file,
        "--agent",
        "claude-code",
        "--decision",
        "JWT",
        "--why",
        "two yaks",
    )
    write_files(top, {"src/new_marmot.py": b"x = 1\n"})
    second = talk("now the tests", "ls", "ok", "the race is over")
    transcript(file, *first, *second)
    ok(
        top,
        "save",
        "--transcript",
        file,
        "--agent",
        "claude-code",
        "-m",
        "a quokka",
        "--label",
        "wombat",
    )
    return top


def hits(top, *words):
    return ok(top, "search", *words)["hits"]


def where(top, *words):
    return [(hit["number"], hit["where"]) for hit in hits(top, *words)]


def index_of(top) -> Path:
    return top / ".git" / "gitcp" / "search" / "index.db"


def whole(top) -> list[object]:
    """All that an index has, but for its own numbers."""
    with closing(sqlite3.connect(index_of(top))) as found:
        return [
            *found.execute("SELECT branch, hex(oid) FROM tips ORDER BY 1"),
            *found.execute("SELECT hex(oid), ident, whole FROM checkpoints ORDER BY 1"),
            *found.execute(
                "SELECT hex(key), start, size FROM passages, sources"
                " ON source = sources.n ORDER BY 1, 2"
            ),
        ]


@pytest.mark.parametrize(
    ("word", "place", "number", "line"),
    [
        ("fix", "prompts", 1, 1),
        ("cormorant", "tools", 1, 2),
        ("zeppelin", "tools", 1, 3),
        ("albatross", "talk", 1, 4),
        ("over", "talk", 2, 8),
        ("yaks", "reasons", 1, 1),
        ("quokka", "notes", 2, None),
        ("wombat", "notes", 2, None),
        ("marmot", "paths", 2, None),
        ("hovercraft", "files", 1, 1),
    ],
)
def test_each_place_is_searched(repo, word, place, number, line):
    (hit,) = hits(repo, word)
    assert (hit["where"], hit["number"], hit["line"]) == (place, number, line)
    start, end = hit["marks"][0]
    assert hit["excerpt"][start:end] == word
    assert where(repo, word, "--in", place) == [(number, place)]
    other = "talk" if place != "talk" else "tools"
    assert hits(repo, word, "--in", other) == []


def test_a_hit_says_what_was_asked(repo):
    assert hits(repo, "zeppelin")[0]["prompt"] == "fix the race"
    assert hits(repo, "over")[0]["prompt"] == "now the tests"
    # In another segment than the answer.
    assert hits(repo, "fix")[0]["prompt"] == "fix the race"


def test_what_is_said_once_is_found_once_in_the_checkpoint_that_brought_it(repo):
    for number in range(5):
        write_files(repo, {"n": b"%d" % number})
        ok(repo, "save")
    assert where(repo, "zeppelin") == [(1, "tools")]


def test_words_in_a_row_come_first(repo):
    ok(repo, "save", "-m", f"{'one x ' * 9}another", "--allow-empty")
    long = f"another one {'and more ' * 20}"
    ok(repo, "save", "-m", long, "--allow-empty")
    assert [hit["number"] for hit in hits(repo, "another one")] == [4, 3]
    assert [hit["number"] for hit in hits(repo, '"another one"')] == [4]
    assert [hit["number"] for hit in hits(repo, "another one", "-n", "1")] == [4]


def test_where_very_much_matches_the_newest_comes_first_and_nothing_is_lost(
    repo, monkeypatch
):
    for number in range(7):
        # In the oldest it stands most often.
        note = "lemming " * (7 - number) + f"n{number}"
        ok(repo, "save", "-m", note, "--allow-empty")
    assert [hit["number"] for hit in hits(repo, "lemming")] == list(range(3, 10))
    monkeypatch.setattr(find, "_RANKED", 3)
    assert [hit["number"] for hit in hits(repo, "lemming")] == [7, 8, 9, 4, 5, 6, 3]


def test_a_passage_is_found_once_for_the_words_and_their_row(repo):
    note = f"another one {'and more ' * 90} one another"
    ok(repo, "save", "-m", note, "--allow-empty")
    (hit,) = hits(repo, "one another")
    assert hit["excerpt"].endswith("one another")


def test_the_note_of_a_turn_without_a_conversation_is_what_was_asked(repo):
    write_files(repo, {"n": b"1"})
    ok(repo, "save", "-s", "other", "--trigger", "turn-end", "-m", "an okapi")
    assert where(repo, "okapi") == [(3, "prompts")]
    assert hits(repo, "okapi")[0]["prompt"] == "an okapi"


def test_no_hit_is_no_error(repo):
    assert hits(repo, "nowhere") == []
    assert hits(repo, "race nowhere") == []
    done = invoke(repo, "search", "nowhere")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"nothing" in done.stderr


@pytest.mark.parametrize(
    "words", ["***", '"', "x AND", "(", "race:", "{talk}: race", "\0"]
)
def test_words_are_data(repo, words):
    assert invoke(repo, "search", "--", words).returncode == 0


@pytest.mark.parametrize("word", ["größe", "GRÖSSE", "grosse"])
def test_case_and_accents_do_not_count(repo, word):
    for escaped in (True, False):
        said = {"role": "user", "content": "the Größe"}
        line = json.dumps(said, ensure_ascii=escaped).encode()
        ok(repo, "save", "-s", f"s{escaped}", "--append", "-", input=line)
    write_files(repo, {"size.txt": "Größe\n".encode()})
    ok(repo, "save", "-s", "files")
    found = where(repo, word, "--all", "-n", "9")
    # Twice the same; in a file accents count.
    assert [place for _, place in found] == ["prompts", *["files"] * (word == "größe")]


def test_options_narrow_the_search(repo):
    assert where(repo, "race", "--agent", "claude-code", "--in", "prompt") == [
        (1, "prompts")
    ]
    assert hits(repo, "race", "--agent", "codex") == []
    assert hits(repo, "zeppelin", "--since", "2026-11-20 09:00Z") != []
    assert hits(repo, "zeppelin", "--since", "2026-11-20 11:00Z") == []
    assert "place" in fails(repo, 2, "search", "race", "--in", "nowhere")
    assert "time" in fails(repo, 2, "search", "race", "--since", "nonsense")


def test_a_line_of_the_terminal_names_the_command(repo):
    done = invoke(repo, "search", "zeppelin").stdout.decode()
    assert "[zeppelin]: 1" in done
    assert "gitcp messages 1" in done
    assert (
        "gitcp cat 1 src/vat.py" in invoke(repo, "search", "hovercraft").stdout.decode()
    )


@pytest.mark.parametrize("name", ["x;touch pwn", "$(touch pwn)", "a b'c", "--output=x"])
def test_a_command_of_the_terminal_runs_nothing_else(repo, name):
    write_files(repo, {name: b"cassowary\n"})
    ok(repo, "save")
    done = invoke(repo, "search", "cassowary").stdout.decode()
    command = done.splitlines()[-1].strip()
    assert command.startswith("gitcp cat 3 ")
    dashes = ["--"] if name.startswith("-") else []
    script = f'gitcp() {{ printf "%s\\n" "$@"; }}; {command}'
    ran = subprocess.run(
        ["sh", "-c", script], check=True, cwd=repo, capture_output=True
    )
    assert ran.stdout.decode().splitlines() == ["cat", "3", *dashes, name]
    assert not (repo / "pwn").exists()
    assert invoke(repo, "cat", "3", "--", name).stdout == b"cassowary\n"


def test_controls_in_an_excerpt_are_inert(repo):
    ok(
        repo,
        "save",
        "--messages",
        "-",
        input=message("user", "evil \x1b[31m ptarmigan\x07").encode(),
    )
    done = invoke(repo, "search", "ptarmigan").stdout
    assert b"[ptarmigan]" in done
    assert b"\x1b" not in done
    assert b"\x07" not in done


@pytest.mark.parametrize("few", [0, 1, 64])
def test_whose_files_are_searched_however_many_checkpoints_there_are(
    repo, tmp_path, monkeypatch, few
):
    monkeypatch.setattr(read_back, "_FEW", few)
    git(repo, "worktree", "add", "-q", "../there")
    for number in range(3):
        (repo / f"here{number}.py").write_text(f"quokka = {number}\n")
        ok(repo, "save", "-s", f"here{number}")
        (tmp_path / "there" / f"there{number}.py").write_text(f"quokka = -{number}\n")
        ok(tmp_path / "there", "save", "-s", f"there{number}")
    found = hits(repo, "quokka", "--in", "files")
    assert {hit["path"] for hit in found} == {f"here{n}.py" for n in range(3)}
    assert len(hits(repo, "quokka", "--in", "files", "--all")) == 6


def test_other_work_trees_are_left_out(repo, tmp_path):
    ok(repo, "fork", "last", "side", "--worktree", tmp_path / "side")
    write_files(tmp_path / "side", {"b": b"1"})
    ok(tmp_path / "side", "save", "-m", "a pangolin")
    assert hits(repo, "pangolin") == []
    assert [hit["where"] for hit in hits(repo, "pangolin", "--all")] == ["notes"]
    assert [hit["where"] for hit in hits(tmp_path / "side", "pangolin")] == ["notes"]


def test_the_index_grows_and_is_the_same_as_one_made_at_once(repo):
    hits(repo, "race")
    size = index_of(repo).stat().st_size
    for number in range(3):
        write_files(repo, {"n": b"%d" % number})
        ok(repo, "save", "-m", f"note{number}")
        assert where(repo, f"note{number}") == [(number + 3, "notes")]
    grown = whole(repo)
    index_of(repo).unlink()
    hits(repo, "race")
    assert whole(repo) == grown
    assert index_of(repo).stat().st_size >= size


def test_a_search_that_is_killed_is_continued(repo, monkeypatch):
    hits(repo, "race")
    wanted = whole(repo)
    index_of(repo).unlink()
    monkeypatch.setattr(build, "_STEP", 0)
    add = build.Builder._add_note
    calls = []

    def dying(self, checkpoint, n):
        add(self, checkpoint, n)
        calls.append(n)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(build.Builder, "_add_note", dying)
        assert invoke(repo, "search", "race").returncode == 130
    assert len(whole(repo)) < len(wanted)
    added: list[int] = []

    def counting(self, checkpoint, n):
        added.append(n)
        add(self, checkpoint, n)

    monkeypatch.setattr(build.Builder, "_add_note", counting)
    assert where(repo, "zeppelin") == [(1, "tools")]
    # What was added before is not added again.
    assert len(added) == 1
    assert whole(repo) == wanted


@pytest.mark.parametrize("damage", ["junk", "empty", "short", "middle", "old", "table"])
def test_a_damaged_index_is_made_again(repo, damage):
    hits(repo, "race")
    file = index_of(repo)
    raw = file.read_bytes()
    match damage:
        case "junk":
            file.write_bytes(b"no index\n" * 1000)
        case "empty":
            file.write_bytes(b"")
        case "short":
            file.write_bytes(raw[: len(raw) // 2])
        case "middle":
            file.write_bytes(raw[:8192] + b"\xff" * (len(raw) - 8192))
        case "old":
            with closing(sqlite3.connect(file)) as index, index:
                index.execute("PRAGMA user_version = 99")
        case _:
            with closing(sqlite3.connect(file)) as index, index:
                index.execute("DROP TABLE contents")
    assert where(repo, "zeppelin") == [(1, "tools")]
    assert where(repo, "hovercraft") == [(1, "files")]


def test_a_hit_that_git_does_not_have_is_not_shown(repo):
    hits(repo, "race")
    with closing(sqlite3.connect(index_of(repo))) as index, index:
        # As an index of another repository would have it.
        index.execute(
            "INSERT INTO words(rowid, talk) SELECT n, 'invented' FROM passages WHERE n = 1"
        )
        index.execute("UPDATE passages SET start = start + 1 WHERE n = 2")
    assert hits(repo, "invented") == []
    assert invoke(repo, "search", "race").returncode == 0


def test_what_is_pruned_is_not_found(repo):
    write_files(repo, {"n": b"1"})
    ok(repo, "save", "-m", "kept")
    assert hits(repo, "quokka") != []
    ok(repo, "label", "wombat", "--remove")
    ok(repo, "prune", "--keep-last", "1", "--yes")
    assert not index_of(repo).exists()
    assert hits(repo, "quokka") == []
    # What was said then is in the log of what is left.
    assert where(repo, "zeppelin") == [(3, "tools")]


def test_what_a_prune_left_in_the_index_is_not_found(repo, monkeypatch):
    write_files(repo, {"n": b"1"})
    ok(repo, "save", "-m", "kept")
    assert hits(repo, "quokka") != []
    ok(repo, "label", "wombat", "--remove")
    kept = index_of(repo).read_bytes()
    ok(repo, "prune", "--keep-last", "1", "--yes")
    index_of(repo).write_bytes(kept)
    assert hits(repo, "quokka") == []
    assert where(repo, "zeppelin") == [(3, "tools")]
    left = whole(repo)
    index_of(repo).unlink()
    hits(repo, "race")
    assert left == whole(repo)


def test_an_index_of_much_that_is_gone_is_made_again(repo, monkeypatch):
    write_files(repo, {"n": b"1"})
    ok(repo, "save", "-m", "kept")
    hits(repo, "race")
    ok(repo, "label", "wombat", "--remove")
    kept = index_of(repo).read_bytes()
    ok(repo, "prune", "--keep-last", "1", "--yes")
    index_of(repo).write_bytes(kept)
    assert b"quokka" in kept
    monkeypatch.setattr(build, "_FEW", 0)
    monkeypatch.setattr(build, "_ORPHANS", 100)
    assert where(repo, "zeppelin") == [(3, "tools")]
    assert b"quokka" not in index_of(repo).read_bytes()


def test_a_purge_leaves_nothing_in_the_index(repo):
    hits(repo, "race")
    assert b"zeppelin" in index_of(repo).read_bytes()
    ok(repo, "purge", "--value-from-stdin", "--yes", input=b"zeppelin")
    assert not index_of(repo).exists()
    assert hits(repo, "zeppelin") == []
    assert where(repo, "albatross") == [(1, "talk")]
    assert b"zeppelin" not in index_of(repo).read_bytes()


def test_a_purge_that_is_killed_has_removed_the_index(repo, monkeypatch):
    hits(repo, "race")
    monkeypatch.setattr("gitcp.purge.purge._rewrite", _killed)
    invoke(repo, "purge", "--value-from-stdin", "--yes", input=b"zeppelin")
    assert not index_of(repo).exists()


def _killed(*_):
    raise KeyboardInterrupt


def test_a_link_in_its_place_is_refused(repo, tmp_path):
    ok(repo, "search", "race")
    index_of(repo).unlink()
    index_of(repo).symlink_to(tmp_path / "elsewhere")
    assert "symbolic link" in fails(repo, 17, "search", "race")
    assert not (tmp_path / "elsewhere").exists()


def test_without_fts5_it_is_said(repo, monkeypatch):
    class Without:
        def execute(self, _):
            raise sqlite3.OperationalError("no such module: fts5")

        def close(self):
            pass

    monkeypatch.setattr(sqlite3, "connect", lambda _: Without())
    assert "FTS5" in fails(repo, 127, "search", "race")


def test_without_sqlite_it_is_said(repo, monkeypatch):
    monkeypatch.setitem(sys.modules, "gitcp.search.find", None)
    assert "SQLite" in fails(repo, 127, "search", "race")


def test_where_nothing_can_be_written_an_index_is_made_for_one_search(
    repo, monkeypatch
):
    def refuse(*_):
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patched:
        patched.setattr(database, "open_to_write", refuse)
        done = invoke(repo, "search", "zeppelin")
    assert done.returncode == 0
    assert b"[zeppelin]" in done.stdout
    assert b"for this search only" in done.stderr
    assert not index_of(repo).exists()


def test_two_searches_at_once_build_one_index(repo):
    def one(_):
        return run_gitcp(repo, "search", "zeppelin", "--json")

    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(one, range(3)))
    assert {each.returncode for each in done} == {0}
    assert len({each.stdout for each in done}) == 1
    assert b"zeppelin" in done[0].stdout
    built = whole(repo)
    index_of(repo).unlink()
    hits(repo, "race")
    assert whole(repo) == built


def test_what_is_pulled_says_where_it_is_from(repo, tmp_path):
    hub = tmp_path / "hub.git"
    git(tmp_path, "init", "-q", "--bare", hub)
    git(repo, "remote", "add", "origin", hub)
    ok(repo, "push")
    other = make_repo(tmp_path / "other", {"a": b"1"})
    git(other, "remote", "add", "origin", hub)
    ok(other, "pull")
    assert "zeppelin" in hits(other, "zeppelin", "--all")[0]["excerpt"]
    assert b"<" in invoke(other, "search", "zeppelin", "--all").stdout


def test_a_damaged_segment_is_left_out_and_found_once_it_is_repaired(repo):
    explode(repo)
    listed = git(repo, "ls-tree", "-r", "refs/gitcp/s/main/main", ".gitcp/log/")
    oid = next(
        line.split()[2].decode()
        for line in listed.splitlines()
        if line.endswith(b"/0000/01.jsonl")
    )
    content = git(repo, "cat-file", "blob", oid)
    file = loose(repo, oid)
    kept = file.read_bytes()
    file.unlink()
    found = ok(repo, "search", "race", status=3)
    assert [hit["number"] for hit in found["hits"] if hit["where"] != "notes"] == [1]
    assert found["unreadable"] != []
    assert b"the race is over" in content
    file.write_bytes(kept)
    assert (2, "talk") in where(repo, "over")


def test_hooks_and_saves_do_not_touch_the_index(repo):
    hits(repo, "race")
    before = index_of(repo).stat()
    write_files(repo, {"n": b"1"})
    ok(repo, "save")
    assert index_of(repo).stat() == before


def test_permissions_are_those_of_the_store(repo):
    hits(repo, "race")
    assert index_of(repo).stat().st_mode & 0o777 == 0o600
    git(repo, "config", "core.sharedRepository", "group")
    shutil.rmtree(index_of(repo).parent)
    hits(repo, "race")
    assert index_of(repo).stat().st_mode & 0o777 == 0o660
    assert index_of(repo).parent.stat().st_mode & 0o070 == 0o070
