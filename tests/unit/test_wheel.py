"""What is installed holds what gitcp reads from its own package, besides modules."""

from pathlib import Path

import pytest

import gitcp

ROOT = Path(gitcp.__file__).parents[1]


def test_the_wheel_holds_all_that_is_not_a_module():
    wheel = pytest.importorskip("hatchling.builders.wheel", reason="no hatchling")
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("gitcp is installed, and there is no wheel to build")
    builder = wheel.WheelBuilder(str(ROOT))
    held = {one.distribution_path for one in builder.recurse_included_files()}
    files = {
        path.relative_to(ROOT).as_posix()
        for path in Path(gitcp.__file__).parent.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert "gitcp/view/assets/page.html" in files
    assert files - held == set()
