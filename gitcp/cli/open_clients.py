"""Says which clients are open while files are restored, in the words that `log` has for them."""

from collections.abc import Iterator
from contextlib import suppress

from gitcp import Checkpoint
from gitcp.agents import bindings
from gitcp.agents.bindings import Binding
from gitcp.checkpoints import history
from gitcp.cli.emit import one_line
from gitcp.cli.layout import fit
from gitcp.cli.render import title_of
from gitcp.errors import GitcpError
from gitcp.project.workspace import Workspace

_PROMPT = 40


def before(workspace: Workspace) -> Iterator[str]:
    """Yields a line for each client that a restore would overtake."""
    for one in bindings.likely_open(workspace):
        yield (
            f"  {conversation(workspace, one)} is still open here. Close it first: it does"
            " not know that its files change"
        )


def after(workspace: Workspace, restore: Checkpoint) -> Iterator[str]:
    """Yields a line for each client that a restore has overtaken."""
    for one in bindings.still_open(workspace, restore):
        then = " and what it does is a branch of its own" if one.superseded else ""
        yield (
            f"  {conversation(workspace, one)} is still open here: close it. If it goes"
            f" on, it is told of the restore{',' if then else ''}{then}"
        )


def conversation(workspace: Workspace, binding: Binding) -> str:
    """Returns a client with its first prompt, as the headers of `log` have it."""
    client = title_of(binding.agent)
    if binding.session is None:
        return client
    with suppress(GitcpError):
        tip = workspace.store.tip(binding.session, binding.branch)
        asked = history.first_prompt(workspace.store, tip) if tip is not None else None
        if asked:
            return f'{client} · "{fit(one_line(asked), _PROMPT)}"'
    return client
