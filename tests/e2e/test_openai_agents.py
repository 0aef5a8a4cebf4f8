"""The OpenAI Agents SDK itself, with a stand-in for the model."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.support.gitrepo import gitcp_environment, make_repo, run_gitcp
from tests.support.model_server import ModelServer
from tests.support.stand_in import say, use

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "openai-agents.md"
SCRIPT = {
    "Write a plan": [[use("write", path="plan.txt", text="a plan")], [say("Done.")]],
    "Make it shorter": [
        [use("write", path="plan.txt", text="plan")],
        [say("Shorter.")],
    ],
    "Make it longer": [
        [use("write", path="plan.txt", text="a plan, and")],
        [say("Longer.")],
    ],
}


def test_the_script_of_the_page_goes_back_and_on(tmp_path: Path):
    project = make_repo(tmp_path / "project", {"a": b"1"})
    (script,) = re.findall(
        r"^```py\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
    with ModelServer(SCRIPT) as server:
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=project,
            env=gitcp_environment(
                {
                    "OPENAI_BASE_URL": f"{server.url}/v1",
                    "OPENAI_API_KEY": "none",
                    "OPENAI_AGENTS_DISABLE_TRACING": "1",
                }
            ),
            capture_output=True,
            text=True,
            check=False,
        )
        said = "".join(
            line[4:] for line in script.splitlines(True) if line[:4] == "# > "
        )
        assert done.stdout == said, done.stderr
        last = server.bodies("Make it longer")[-1]["input"]
    asked = [item["content"] for item in last if item.get("role") == "user"]
    assert asked == ["Write a plan", "Make it longer"]
    shown = run_gitcp(project, "log").stdout.decode()
    for words in ("Write a plan  write", "Make it shorter  write", "Make it longer"):
        assert words in shown
