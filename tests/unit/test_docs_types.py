"""Every Python block in the docs passes `mypy --strict`, page by page."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
# Also those that are not run: they need something that is not there.
BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def module_of(page: Path) -> str:
    """The blocks of a page, one after the other, as they are run."""
    return "\n".join(BLOCK.findall(page.read_text("utf-8")))


@pytest.mark.slow
def test_every_python_block_passes_mypy_strict(tmp_path):
    api = pytest.importorskip("mypy.api", reason="mypy is not installed")
    names = {}
    for page in PAGES:
        text = module_of(page)
        if text:
            name = re.sub(r"\W", "_", str(page.relative_to(ROOT)))
            (tmp_path / f"{name}.py").write_text(text, "utf-8")
            names[name] = page
    assert len(names) >= 4
    out, errors, status = api.run(
        [
            "--strict",
            "--no-error-summary",
            f"--config-file={ROOT / 'pyproject.toml'}",
            f"--cache-dir={tmp_path / 'cache'}",
            f"--python-executable={sys.executable}",
            *(str(tmp_path / f"{name}.py") for name in names),
        ]
    )
    assert (status, errors) == (0, ""), out
