"""Shows the changes in files that a restore would make, before it asks."""

from gitcp.checkpoints import diff
from gitcp.checkpoints.restore_plan import RestorePlan
from gitcp.cli.emit import Output
from gitcp.cli.file_lines import patch_lines
from gitcp.cli.paging import paging, wanted
from gitcp.cli.plan_lines import summary
from gitcp.project.workspace import Workspace


def tell_diff(out: Output, workspace: Workspace, plan: RestorePlan) -> None:
    """Shows a patch from the present files to those that a restore would write.

    In the user's pager, if the output goes to a terminal. The summary of the plan and the
    question follow.
    """
    lines = patch_lines(out, diff.of_plan(workspace, plan).patch)
    # With `-q` nothing goes to stdout, but the user has requested this diff.
    if wanted(out) and not out.silent:
        with paging(out, workspace):
            for line in lines:
                out.print(line, whole=True)
    else:
        for line in lines:
            out.tell(line, whole=True)
    out.tell(summary(out, plan))
