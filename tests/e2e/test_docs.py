"""What the documentation shows is what happens.

Each ```console block is run: the lines after `$ ` (and `> `) are commands, the rest is
what they print, with ids and times left open. A line `…` stands for any lines. Each
```python block is run; what it prints stands behind `# > `.

After a change of the output: `python -m tests.e2e.test_docs` puts in the new one, and
`python docs/reference.py` regenerates the reference.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gitcp import errors
from tests.support.gitrepo import gitcp_environment

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SKIP = "…"
README_LINES = 150
# Pages whose examples use an optional extra.
NEEDS = {"langgraph.md": "langgraph.graph", "encrypt.md": "pyrage"}
IDENTITY = {
    f"GIT_{role}_{what}": value
    for role in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "You"), ("EMAIL", "you@example.org"))
}


def blocks(page: Path, language: str) -> list[str]:
    return [
        found[2] for found in BLOCK.finditer(page.read_text()) if found[1] == language
    ]


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def open_parts(text: str) -> str:
    """Replaces what differs from run to run."""
    text = re.sub(r"/\S+/work/shop(?=/|\s|$)", "/home/you/shop", text)
    text = re.sub(r"\b([0-9a-f]{7,40}|[0-9a-f]+(?=…))", "<id>", text)
    text = re.sub(
        r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+Z?)?( [+-]\d{4})?)?", "<time>", text
    )
    text = re.sub(r" *(\bjust now|\b\d+ (min|h|d) ago)\b", " <age>", text)
    text = re.sub(r"\b\d+\.\d s\b", "<seconds>", text)
    text = re.sub(r"\b\d+(\.\d)? [KM]?B\b", "<size>", text)
    return "\n".join(line.rstrip() for line in text.splitlines())


def steps(block: str) -> Iterator[tuple[str, str]]:
    """Yields each command of a console block with the output shown for it."""
    command: list[str] = []
    output: list[str] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            if command:
                yield "\n".join(command), "\n".join(output)
            command, output = [line[2:]], []
        elif line.startswith(">") and not output and line[1:2] in {" ", ""}:
            command.append(line[2:])
        else:
            output.append(line)
    if command:
        yield "\n".join(command), "\n".join(output)


class Shell:
    """A shell that keeps its directory from one command to the next."""

    def __init__(self, base: Path) -> None:
        self.directory = base / "work"
        self._where = base / "where"
        self.directory.mkdir()
        programs = base / "bin"
        programs.mkdir()
        for program, options in (("gitcp", "-P -m gitcp"), ("python", "-W ignore")):
            script = programs / program
            script.write_text(f'#!/bin/sh\nexec {sys.executable} {options} "$@"\n')
            script.chmod(0o755)
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        self._environment = gitcp_environment({**IDENTITY, "PATH": path})

    def run(self, command: str) -> str:
        ending = f"\nstatus=$?; pwd >{shlex.quote(str(self._where))}; exit $status"
        done = subprocess.run(
            ["bash", "-c", command + ending],
            cwd=self.directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        self.directory = Path(self._where.read_text().removesuffix("\n"))
        return done.stdout.decode()


def fits(shown: str, said: str) -> bool:
    pattern = "\n".join(
        "@@" if line == SKIP else re.escape(line) for line in shown.splitlines()
    )
    pattern = pattern.replace("@@", r"(?:.*\n)*?.*")
    return re.fullmatch(pattern, said) is not None


_NOT_VALID = (
    r"gitcp: (No such (option|command)|Missing (argument|option)|Got unexpected).*"
)
# A page that shows what becomes of a session of a SHA-1 repository in another.
_FROM_SHA1 = {"move-a-session.md"}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.sha1 if page.name in _FROM_SHA1 else ())
        for page in PAGES
        if blocks(page, "console")
    ],
    ids=name,
)
def test_commands_print_what_the_page_shows(page, tmp_path):
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name], reason="the extra is not installed")
    shell = Shell(tmp_path)
    for block in blocks(page, "console"):
        for command, shown in steps(block):
            said = open_parts(shell.run(command))
            assert fits(open_parts(shown), said), f"$ {command}\n{said}"
            # What `…` leaves open is not that there is no such command.
            wrong = re.search(_NOT_VALID, said)
            assert wrong is None or wrong[0] in shown, f"$ {command}\n{said}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=name
)
def test_python_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    shell = Shell(tmp_path)
    shell.run("git init -q -b main . && mkdir src && echo 'print(1)' > src/m.py")
    shell.run("git add . && git commit -q -m first")
    monkeypatch.chdir(shell.directory)
    # Types in the examples are looked up in their module.
    space: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page, "python"):
        shown = "\n".join(re.findall(r"# > ?(.*)$", block, re.MULTILINE))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, name(page), "exec"), space)
        assert open_parts(printed.getvalue()) == open_parts(shown)


def test_every_exit_status_is_in_the_table():
    table = {
        int(number): code
        for number, code in re.findall(
            r"^\| (\d+) \| `?([a-z-]+)`? \|",
            (ROOT / "docs" / "exit-codes.md").read_text(),
            re.MULTILINE,
        )
    }
    classes = [
        found
        for _, found in inspect.getmembers(errors, inspect.isclass)
        if issubclass(found, errors.GitcpError) and found is not errors.GitcpError
    ]
    wanted = {found.exit_status for found in classes}
    assert wanted <= set(table)
    codes = {found.code for found in classes}
    named = set(table.values()) - {"done", "internal", "interrupted"}
    assert named <= codes


def test_the_reference_is_up_to_date():
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "reference.py", "--print"],
        env=gitcp_environment(),
        capture_output=True,
        check=True,
    )
    hint = "run `python docs/reference.py`"
    assert (ROOT / "docs" / "cli.md").read_text() == done.stdout.decode(), hint


def test_the_readme_fits_on_a_few_screens():
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES


def test_every_decision_has_a_status_and_is_in_the_index():
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    for page in folder.glob("0*.md"):
        status = re.search(
            r"^# \d{4}: .+\n\nStatus: \w.*Date: \d{4}-\d\d-\d\d\.",
            page.read_text(),
        )
        assert status, page.name
        assert f"]({page.name})" in index, page.name


def test_links_lead_somewhere():
    broken = [
        f"{name(page)}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text())
        if not (page.parent / target).exists()
    ]
    assert broken == []


def refill(page: Path) -> None:
    """Puts what commands print now into a page; a block with `…` stays as it is."""
    with tempfile.TemporaryDirectory() as base:
        shell = Shell(Path(base))

        def again(found: re.Match[str]) -> str:
            if found[1] != "console":
                return found[0]
            lines = []
            for command, shown in steps(found[2]):
                said = shell.run(command).rstrip("\n")
                kept = SKIP in shown.splitlines()
                lines.append("$ " + command.replace("\n", "\n> "))
                lines += [shown] if kept else [said] if said else []
            text = "\n".join(line.rstrip() for line in "\n".join(lines).splitlines())
            return f"```console\n{text}\n```"

        page.write_text(BLOCK.sub(again, page.read_text()))


if __name__ == "__main__":
    for variable in [one for one in os.environ if one.startswith(("GIT_", "GITCP_"))]:
        del os.environ[variable]
    with tempfile.TemporaryDirectory() as nowhere:
        os.environ.update(
            HOME=nowhere, GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL=os.devnull
        )
        for one in PAGES:
            if blocks(one, "console"):
                refill(one)
