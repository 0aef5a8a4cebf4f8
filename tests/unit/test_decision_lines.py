"""A decision cannot look like lines of gitcp's own: its further lines are indented."""

from __future__ import annotations

from gitcp.cli.emit import Output
from gitcp.cli.render import decision_line
from gitcp.format.log import Decision


def test_every_line_of_a_decision_is_indented():
    entry = Decision("a\nb", "c\n\nd", "k\nx", paths=("p\nq",))
    lines = decision_line(Output(), entry).split("\n")
    assert lines == [
        "  k         a",
        "            b  [p\\nq]",
        "            because c",
        "            ",
        "            d",
    ]
