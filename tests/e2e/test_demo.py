"""`gitcp demo`: the story that a newcomer sees is true."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.support.gitrepo import run_gitcp


def test_every_check_of_the_demo_passes_without_any_identity(tmp_path):
    done = run_gitcp(tmp_path, "demo")
    text = done.stdout.decode()
    assert done.returncode == 0, text + done.stderr.decode()
    assert re.search(r"^all \d+ checks passed in ", text, re.MULTILINE)
    assert "FAIL" not in text
    assert "exit status" not in text
    assert "\x1b" not in text
    assert "$ gitcp restore last --yes" in text


def test_the_demo_leaves_nothing_behind_unless_asked(tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    env = {"TMPDIR": str(scratch)}
    done = run_gitcp(tmp_path, "demo", "--json", env=env)
    document = json.loads(done.stdout)
    assert document["ok"] is True
    assert len(document["checks"]) >= 9
    assert list(scratch.iterdir()) == []

    done = run_gitcp(tmp_path, "demo", "--keep", "--json", env=env)
    kept = Path(json.loads(done.stdout)["kept"])
    assert (kept / "src" / "test_invoice.py").is_file()
    assert (kept / ".git").is_dir()


def test_the_demo_is_coloured_when_asked_to_be(tmp_path):
    done = run_gitcp(tmp_path, "--color", "always", "demo")
    assert done.returncode == 0
    assert b"\x1b[" in done.stdout
