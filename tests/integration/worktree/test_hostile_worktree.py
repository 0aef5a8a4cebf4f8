"""Things in a work tree that make other tools hang or follow."""

import os

from tests.support.gitrepo import run_gitcp, tree_bytes


def test_a_fifo_in_place_of_an_ignore_file_is_named_not_waited_for(repo):
    (repo / ".gitignore").unlink(missing_ok=True)
    os.mkfifo(repo / ".gitignore")
    done = run_gitcp(repo, "save", timeout=20)
    assert done.returncode == 19
    assert b".gitignore is a named pipe" in done.stderr


def test_specials_are_listed_and_do_not_hang(repo):
    os.mkfifo(repo / "pipe")
    os.symlink("loop", repo / "loop")
    done = run_gitcp(repo, "save", timeout=20)
    assert done.returncode == 0, done.stderr
    shown = run_gitcp(repo, "show").stdout
    assert b"pipe (special-file)" in shown
    assert b"A loop" in shown


def test_an_included_file_and_a_rule_that_change_together_are_both_seen(repo, git):
    """A whole scan must not forget what the comparison had found."""
    (repo / ".gitignore").write_text("/data/\n")
    (repo / "data").mkdir()
    (repo / "data" / "a.csv").write_text("old")
    git("config", "--add", "gitcp.include", "/data/*.csv")
    assert run_gitcp(repo, "save").returncode == 0
    (repo / "data" / "a.csv").write_text("new")
    (repo / ".gitignore").write_text("/data/\n*.tmp\n")
    assert run_gitcp(repo, "save").returncode == 0
    assert run_gitcp(repo, "cat", "last", "data/a.csv").stdout == b"new"


def test_what_filters_would_change_comes_back_byte_for_byte(repo, git, tmp_path):
    canary = tmp_path / "canary"
    for key, value in {
        "core.autocrlf": "true",
        "filter.x.clean": f"touch {canary}; tr a-z A-Z",
        "filter.x.smudge": f"touch {canary}; false",
        "filter.x.required": "true",
        "filter.lfs.process": f"touch {canary}; false",
    }.items():
        git("config", key, value)
    files = {
        ".gitattributes": b"*.x filter=x\n*.lfs filter=lfs -text\n*.c text eol=crlf ident\n"
        b"*.u working-tree-encoding=UTF-16LE\n",
        "a.x": b"lower\n",
        "b.lfs": b"version https://git-lfs.example/spec/v1\noid sha256:00\nsize 1\n",
        "c.c": b"one\r\ntwo\n$Id$\r\n",
        "d.u": "h\u00e9\n".encode("utf-16-le"),
    }
    for name, content in files.items():
        (repo / name).write_bytes(content)
    assert run_gitcp(repo, "save").returncode == 0
    before = tree_bytes(repo)
    for name in files:
        (repo / name).unlink()
    done = run_gitcp(repo, "restore", "1", "-y")
    assert done.returncode == 0, done.stderr
    assert tree_bytes(repo) == before
    assert not canary.exists()


def test_a_link_then_a_directory_leads_nowhere(repo, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine")
    (repo / "d").symlink_to(outside)
    assert run_gitcp(repo, "save").returncode == 0
    (repo / "d").unlink()
    (repo / "d").mkdir()
    (repo / "d" / "mine").write_text("theirs")
    (repo / "d" / "pwned").write_text("theirs")
    assert run_gitcp(repo, "save").returncode == 0
    for number in ("1", "2", "1", "2"):
        assert run_gitcp(repo, "restore", number, "-y").returncode == 0
        assert {path.name for path in outside.iterdir()} == {"mine"}
        assert (outside / "mine").read_text() == "mine"
    assert (repo / "d" / "pwned").read_text() == "theirs"
