"""What `gitcp`, `gitcp help` and `--help` say."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import click
import pytest

from gitcp.cli import app
from gitcp.cli.app import COMMANDS, SECTIONS
from gitcp.cli.emit import Output
from gitcp.cli.examples import EXAMPLES
from gitcp.cli.git_words import POINTERS
from gitcp.cli.topics import TOPICS
from gitcp.project.settings import KNOWN
from tests.support.inprocess import fails, invoke, ok

NARROW = {"COLUMNS": "80"}


def shown(where: Path, *args: str) -> str:
    done = invoke(where, *args, env=NARROW)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    text = done.stdout.decode()
    assert max(map(len, text.splitlines())) <= 80
    return text


def test_alone_it_says_twelve_lines_for_a_beginner(tmp_path):
    text = shown(tmp_path)
    assert len(text.splitlines()) == 12
    everyday = next(iter(SECTIONS.values()))
    assert set(re.findall(r"^  gitcp (\w+)", text, re.MULTILINE)) == set(everyday)


def test_the_everyday_commands_come_first(tmp_path):
    assert list(next(iter(SECTIONS.values()))) == [
        "save", "log", "show", "diff", "restore", "undo", "status", "install",
    ]  # fmt: skip


@pytest.mark.parametrize("topic", sorted(TOPICS))
def test_a_topic_fits_the_screen(tmp_path, topic):
    text = shown(tmp_path, "help", topic)
    document = ok(tmp_path, "help", topic)
    assert document["schema"] == "gitcp.help/1"
    assert document["text"] + "\n" == text


def test_the_topics_say_what_there_is(tmp_path):
    selectors = shown(tmp_path, "help", "selectors")
    for word in ("47", "last~2", "label=NAME", "'2 hours ago'", "main/try:3", "A..B"):
        assert word in selectors
    settings = shown(tmp_path, "help", "settings")
    assert all(f"  {name} (default: " in settings for name in KNOWN)
    codes = shown(tmp_path, "help", "exit-codes")
    for number, code in ((13, "not-found"), (24, "secrets-found"), (26, "no-key")):
        assert re.search(rf"^ +{number}  {code} ", codes, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_of_a_command_is_its_help(tmp_path, name):
    text = shown(tmp_path, "help", name)
    assert text == shown(tmp_path, name, "--help")
    # One line for what every command has.
    assert "\nCommon options:\n  --json  -q, --quiet  -h, --help\n" in text
    assert "Print one JSON document" not in text
    assert "INTEGER" not in text
    examples = text.partition("\nExamples:\n")[2]
    assert len(re.findall(r"^  \S", examples, re.MULTILINE)) >= 2


@pytest.mark.parametrize(
    "line", [line for examples in EXAMPLES.values() for line, _ in examples]
)
def test_examples_are_commands_that_there_are(line):
    words = shlex.split(line.partition(" > ")[0].partition(" < ")[0])
    if "$(" in line:
        words = shlex.split(line.partition("$(")[2].partition(")")[0])
    if words[0] != "gitcp":
        assert words[0].startswith("GITCP_")
        return
    root = app._root
    with root.make_context("gitcp", list(words[1:]), obj=Output()) as context:
        name, command, rest = root.resolve_command(context, words[1:])
        assert command is not None
        command.make_context(name, rest, parent=context).close()


def test_examples_are_for_commands_that_there_are():
    assert EXAMPLES.keys() == COMMANDS.keys()


def test_what_there_is_no_help_on(tmp_path):
    assert "did you mean `selectors`?" in fails(tmp_path, 2, "help", "selector")
    assert "did you mean `restore`?" in fails(tmp_path, 2, "help", "restores")
    assert "`gitcp help`" in fails(tmp_path, 2, "help", "qqqq")


def test_a_usage_error_names_the_help_to_read(repo):
    assert "try `gitcp fork --help`" in fails(repo, 2, "fork")
    assert "try `gitcp --help`" in fails(repo, 2, "--nonsense")


def test_json_may_come_before_the_command(repo):
    assert invoke(repo, "--json", "status").stdout.startswith(b'{"schema"')


def test_short_options_have_long_forms():
    context = click.Context(app._root)
    for name in COMMANDS:
        command = app._root.get_command(context, name)
        assert command is not None
        for option in command.params:
            if isinstance(option, click.Option):
                long = [one for one in option.opts if one.startswith("--")]
                assert long, (name, option.opts)


def test_long_options_do_what_the_short_ones_do(repo):
    saved = ok(repo, "save", "--message", "note", "--session", "s/b")["checkpoint"]
    assert (saved["note"], saved["session"], saved["branch"]) == ("note", "s", "b")
    names = [one["name"] for one in ok(repo, "branches", "--session", "s")["branches"]]
    assert names == ["b"]
    invoke(repo, "messages", "--output", os.devnull)


def test_what_users_of_git_type_leads_to_what_they_mean(tmp_path):
    assert not POINTERS.keys() & COMMANDS.keys()
    for word, pointer in POINTERS.items():
        said = fails(tmp_path, 2, word, "--hard", "HEAD")
        assert f"there is no command '{word}'\n  {pointer}\n" in said
        for named in re.findall(r"`gitcp ([a-z-]+)", pointer):
            assert named in COMMANDS, pointer
    assert "did you mean `restore`?" in fails(tmp_path, 2, "restroe")
