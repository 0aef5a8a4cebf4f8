"""Simple saves and restores are parsed without click, as click would parse them."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from gitcp.cli import app, plain, saving
from gitcp.cli.commands import save as save_command
from tests.support.gitrepo import gitcp_environment, run_gitcp, write_files

if TYPE_CHECKING:
    from pathlib import Path

SAVES = (
    ("save",),
    ("save", "-m", "a note"),
    ("save", "--message", ""),
    ("save", "--label", "green", "--json"),
    ("save", "-q", "-s", "work/try", "--allow-empty"),
    ("save", "--session", "work", "--quiet", "-m", "one", "-m", "two"),
)
# What click has to parse, or to refuse.
OTHERS = (
    ("save", "extra"),
    ("save", "-m"),
    ("save", "-m", "--json"),
    ("save", "-mnote"),
    ("save", "--message=note"),
    ("save", "--decision", "x", "--why", "y"),
    ("save", "--init"),
    ("save", "--", "x"),
    ("restore",),
    ("restore", "last"),
    ("restore", "-y"),
    ("restore", "-y", ""),
    ("restore", "-y", "last", "path"),
    ("restore", "-y", "--files", "last"),
    ("restore", "-y", "--", "last"),
    ("log",),
)


@pytest.mark.parametrize("arguments", SAVES, ids=" ".join)
def test_a_simple_save_means_what_click_makes_of_it(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[dict[str, Any], bool, bool]] = []

    def note(out: Any, _: object, given: dict[str, Any], log: object) -> None:
        assert not list(log)  # type: ignore[call-overload]
        calls.append((given, out.quiet, out.json))

    monkeypatch.setattr(save_command, "save_as", note)
    assert app.run(list(arguments)) == 0
    monkeypatch.setattr(saving, "save_as", note)
    call = plain.parse(list(arguments))
    assert call is not None
    assert plain.run(call) == 0
    assert calls[0] == calls[1]


@pytest.mark.parametrize("arguments", OTHERS, ids=" ".join)
def test_what_is_not_simple_is_left_to_click(arguments: tuple[str, ...]) -> None:
    assert plain.parse(list(arguments)) is None


def test_a_restore_says_the_same_either_way(repo: Path) -> None:
    write_files(repo, {"a": b"one\n"})
    assert run_gitcp(repo, "save").returncode == 0
    write_files(repo, {"a": b"two\n"})
    said = []
    # An option before the command is click's.
    for options in ((), ("--no-pager",)):
        done = run_gitcp(repo, *options, "restore", "-y", "1", "--json")
        assert done.returncode == 0
        assert (repo / "a").read_bytes() == b"one\n"
        assert run_gitcp(repo, "undo", "-y").returncode == 0
        document = json.loads(done.stdout)
        said.append((document["plan"], document["left"], document.keys()))
    assert said[0] == said[1]
    for words in (("restore", "-y", "nothing"), ("save", "--label", "")):
        one = run_gitcp(repo, *words)
        other = run_gitcp(repo, "--no-pager", *words)
        assert one.returncode == other.returncode != 0
        assert one.stderr == other.stderr


_WITHOUT = """
import sys
from gitcp.cli import main
status = main(sys.argv[1:])
loaded = {"click", "inspect", "typing_extensions"}.intersection(sys.modules)
import typing_extensions
sys.exit(f"{status} {len(loaded)} {typing_extensions.Protocol.__name__}")
"""


@pytest.mark.parametrize("words", [("save",), ("restore", "-y", "1")], ids=" ".join)
def test_click_and_typing_extensions_are_not_loaded_for_them(
    repo: Path, words: tuple[str, ...]
) -> None:
    write_files(repo, {"a": b"one\n"})
    assert run_gitcp(repo, "save").returncode == 0
    write_files(repo, {"a": b"two\n"})
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT, *words],
        cwd=repo,
        env=gitcp_environment(),
        capture_output=True,
        check=False,
    )
    assert done.stderr.split() == [b"0", b"0", b"Protocol"]


@pytest.mark.parametrize("words", [("save",), ("restore", "-y", "1")], ids=" ".join)
def test_output_that_goes_to_a_full_disk_is_reported(
    repo: Path, words: tuple[str, ...]
) -> None:
    write_files(repo, {"a": b"one\n"})
    assert run_gitcp(repo, "save").returncode == 0
    write_files(repo, {"a": b"two\n"})
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gitcp", *words],
            cwd=repo,
            env=gitcp_environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert b"the output cannot be written" in done.stderr
    assert done.returncode == 20
