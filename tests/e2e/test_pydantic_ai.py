"""The scripts of docs/how-to/pydantic-ai.md, run as they stand there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.gitrepo import gitcp_environment, make_repo

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "pydantic-ai.md"
SCRIPTS = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("script", SCRIPTS, ids=["history", "durable"])
def test_the_scripts_of_the_page_print_what_it_says(script: str, tmp_path: Path):
    project = make_repo(tmp_path / "project", {"a": b"1"})
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=project,
        env=gitcp_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    said = "".join(line[4:] for line in script.splitlines(True) if line[:4] == "# > ")
    assert said
    assert done.stdout == said, done.stderr
