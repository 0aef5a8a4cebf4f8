"""Shows at the question of a restore what it would change in files."""

from gitcp.checkpoints import diff
from gitcp.checkpoints.restore_plan import RestorePlan
from gitcp.cli.emit import Output, safe
from gitcp.project.workspace import Workspace

_COLORS = {"+": "green", "-": "red", "@": "cyan"}
_HEADS = ("diff ", "index ", "--- ", "+++ ", "new ", "deleted ", "old ", "similarity ")


def tell_diff(out: Output, workspace: Workspace, plan: RestorePlan) -> None:
    """Prints a patch from the files that are there to those that a restore would bring."""
    for raw in diff.of_plan(workspace, plan).patch.split(b"\n")[:-1]:
        line = safe(raw.decode("utf-8", "backslashreplace"))
        if line.startswith(_HEADS):
            line = out.style(line, bold=True)
        elif color := _COLORS.get(line[:1]):
            line = out.style(line, fg=color)
        out.tell(line)
