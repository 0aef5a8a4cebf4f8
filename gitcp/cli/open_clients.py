"""Names the clients that are open during a restore, in the words of `log`."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from gitcp import Checkpoint
from gitcp.agents import bindings
from gitcp.agents.bindings import Binding
from gitcp.cli.emit import one_line
from gitcp.cli.layout import fit
from gitcp.cli.render import title_of
from gitcp.errors import GitcpError
from gitcp.project.workspace import Workspace

_PROMPT = 40
_NAMED = 3


def before(workspace: Workspace) -> Iterator[str]:
    """Yields a line for each open client that would not know of a restore."""
    open_here = bindings.likely_open(workspace)
    for one in open_here[:_NAMED]:
        yield (
            f"  {conversation(workspace, one)} is still open here. Close it first:"
            " it does not notice that its files change"
        )
    yield from _more(open_here)


def after(workspace: Workspace, restore: Checkpoint) -> Iterator[str]:
    """Yields a line for each open client that does not know of a restore."""
    open_here = bindings.still_open(workspace, restore)
    for one in open_here[:_NAMED]:
        then = " and its further work becomes a new branch" if one.superseded else ""
        yield (
            f"  {conversation(workspace, one)} is still open here: close it. If it"
            " continues, gitcp tells it of the"
            f" restore{(',' if then else '')}{then}"
        )
    yield from _more(open_here)


def _more(open_here: Sequence[Binding]) -> Iterator[str]:
    if len(open_here) > _NAMED:
        yield f"  {len(open_here) - _NAMED} more may be open: `gitcp status -v`"


def conversation(workspace: Workspace, binding: Binding) -> str:
    """Returns a client with its first prompt, as in the headers of `log`."""
    client = title_of(binding.agent)
    if binding.session is None:
        return client
    # Usually no client is open.
    from gitcp.checkpoints import history

    with suppress(GitcpError):
        tip = workspace.store.tip(binding.session, binding.branch)
        asked = history.first_prompt(workspace.store, tip) if tip is not None else None
        if asked:
            return f'{client} · "{fit(one_line(asked), _PROMPT)}"'
    return client
