"""What the runs of other projects' own tests have in common."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET


def results(report: Path) -> dict[str, str]:
    """Returns how each test in a report of pytest's ended, by its name."""
    found = {}
    for case in ET.parse(report).iter("testcase"):
        ended = [child.tag for child in case if child.tag in {"failure", "error"}]
        skipped = case.find("skipped") is not None
        name = f"{case.get('classname')}::{case.get('name')}"
        found[name] = ended[0] if ended else "skipped" if skipped else "passed"
    return found
