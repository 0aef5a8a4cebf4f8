"""A PATH is the name in the tree: no link on the way leads elsewhere."""

from __future__ import annotations

import pytest

from gitcp.cli.emit import Output
from gitcp.cli.options import path_inside
from gitcp.errors import UsageError
from tests.support.gitrepo import write_files
from tests.support.inprocess import fails, invoke, ok


@pytest.fixture
def top(tmp_path):
    """A project with links inside, and a link to it from outside."""
    top = tmp_path / "real"
    write_files(top, {"d/x": b"1", "e/x": b"2"})
    (top / "top").symlink_to(".")
    (top / "link").symlink_to("e")
    (tmp_path / "way").symlink_to("real")
    return top


def at(directory) -> Output:
    out = Output()
    out.directory = str(directory)
    return out


@pytest.mark.parametrize(
    ("where", "path", "expected"),
    [
        (".", "d/x", b"d/x"),
        (".", "link/x", b"link/x"),
        (".", "link", b"link"),
        (".", "top", b"top"),
        (".", "top/d/", b"top/d"),
        (".", ".", b""),
        ("d", "x", b"d/x"),
        ("d", "../link/./x", b"link/x"),
        ("link", "x", b"e/x"),
        ("d", "..", b""),
    ],
)
def test_a_path_is_taken_as_it_is_written(top, where, path, expected):
    out = at(top / where)
    assert path_inside(out, top, path) == expected
    through = at(top.parent / "way" / where)
    assert path_inside(through, top, path) == expected
    if where == ".":
        absolute = str(top.parent / "way" / path)
        assert path_inside(out, top, absolute) == expected


@pytest.mark.parametrize("path", ["", "..", "../other", "/"])
def test_what_names_nothing_inside_is_refused(top, path):
    with pytest.raises(UsageError):
        path_inside(at(top), top, path)


def test_a_link_to_the_top_is_restored_as_a_link(repo):
    write_files(repo, {"a": b"1"})
    (repo / "top").symlink_to(".")
    ok(repo, "save")
    write_files(repo, {"a": b"2", "new": b"new"})
    assert ok(repo, "restore", "-y", "1", "top")["plan"] == []
    assert (repo / "a").read_bytes() == b"2"
    assert (repo / "new").exists()


def test_a_path_below_a_link_is_not_the_path_it_leads_to(repo):
    write_files(repo, {"d/x": b"1", "e/x": b"1"})
    ok(repo, "save")
    write_files(repo, {"e/x": b"2"})
    (repo / "d/x").unlink()
    (repo / "d").rmdir()
    (repo / "d").symlink_to("e")
    fails(repo, 18, "restore", "-y", "1", "d/x")
    assert (repo / "e/x").read_bytes() == b"2"
    assert invoke(repo, "cat", "1", "d/x").stdout == b"1"


@pytest.mark.parametrize(
    "command",
    [
        ["restore", "-y", "1", ""],
        ["restore", "1", "--dry-run", ""],
        ["files", "1", ""],
        ["cat", "1", ""],
        ["diff", "1", ""],
        ["decisions", "--path", ""],
        ["purge", "-y", ""],
    ],
)
def test_an_empty_path_is_a_usage_error(repo, command):
    ok(repo, "save")
    write_files(repo, {"a": b"2"})
    fails(repo, 2, *command)
    assert (repo / "a").exists()


def test_decisions_are_found_by_any_way_to_write_a_path(repo):
    ok(repo, "decide", "one", "--path", "d/x")
    ok(repo, "save")
    for path in ("d/x", "./d/x", "d/", str(repo / "d")):
        assert len(ok(repo, "decisions", "--path", path)["decisions"]) == 1
    assert ok(repo, "decisions", "--path", "e")["decisions"] == []
