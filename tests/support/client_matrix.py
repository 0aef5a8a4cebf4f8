"""The table of clients and what gitcp does for each: the cells that tests run.

`python -m tests.support.client_matrix` writes it into docs/clients.md.
"""

from __future__ import annotations

from pathlib import Path

from gitcp.clients import registry
from tests.support.real_clients import CLIENTS

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"
_BEGIN, _END = "<!-- the table -->\n", "<!-- end of the table -->\n"
ROWS = CLIENTS
COLUMNS = (
    "checkpoint per turn",
    "before a risky command",
    "restore files",
    "resume verbatim",
    "fork",
    "compaction",
    "kill -9",
    "uninstall byte for byte",
)


def table() -> str:
    """Returns the table; each cell is a test."""
    lines = [
        "| client | " + " | ".join(COLUMNS) + " |",
        "|---" * (len(COLUMNS) + 1) + "|",
    ]
    for client in sorted(ROWS, key=lambda client: client.name):
        title = f"[{registry.client(client.name).title}](how-to/{client.name}.md)"
        lines.append(f"| {title} | " + " | ".join("yes" for _ in COLUMNS) + " |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """Returns the page with the table as it is now."""
    head, _, rest = PAGE.read_text("utf-8").partition(_BEGIN)
    _, _, tail = rest.partition(_END)
    return f"{head}{_BEGIN}{table()}{_END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
