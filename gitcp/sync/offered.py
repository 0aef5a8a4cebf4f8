"""What a remote offers: the branches and ledgers that it says it has."""

from collections.abc import Sequence
from typing import NamedTuple

from gitcp.errors import NotFoundError
from gitcp.format import layout
from gitcp.git import remote as remotes
from gitcp.names import encode
from gitcp.project.workspace import Workspace
from gitcp.sync.import_objects import limits_of
from gitcp.sync.push import parts
from gitcp.sync.validate import Key


class Offered(NamedTuple):
    """What a remote has: tips of branches, tips of ledgers, refs that are neither."""

    branches: dict[Key, str]
    ledgers: dict[str, str]
    ignored: tuple[str, ...]


def offered(
    workspace: Workspace,
    place: str,
    sessions: Sequence[str] = (),
    *,
    interactive: bool = False,
) -> Offered:
    """Asks a remote which branches and ledgers it has.

    Raises:
        NotFoundError: it has no such session.
        TransferError: it cannot be reached.
    """
    there = remotes.advertised(
        workspace.repository,
        place,
        (layout.SESSIONS, layout.EFFECTS),
        limits=limits_of(workspace.settings.sharing),
        interactive=interactive,
    )
    found: dict[Key, str] = {}
    steps: dict[str, str] = {}
    ignored = []
    for ref, oid in there.refs.items():
        key, component = layout.branch_key(ref), layout.ledger_key(ref)
        if ref in there.symbolic or (key is None and component is None):
            ignored.append(ref)
        elif key is not None:
            found[key] = oid
        elif component is not None:
            steps[component.session] = oid
    if not sessions:
        return Offered(found, steps, tuple(ignored))
    chosen: dict[Key, str] = {}
    its: dict[str, str] = {}
    for spec in sessions:
        session, branch = parts(spec)
        its |= {key: oid for key, oid in steps.items() if key == encode(session)}
        some = {
            key: oid
            for key, oid in found.items()
            if key[0] == encode(session) and branch in {None, _same(key[1], branch)}
        }
        if not some and (branch is not None or encode(session) not in its):
            raise NotFoundError(
                f"{place} has no session {spec!a}",
                hint=f"`gitcp remote-sessions {place}` lists what it has",
            )
        chosen.update(some)
    return Offered(chosen, its, ())


def _same(component: str, branch: str | None) -> str | None:
    return branch if branch is not None and encode(branch) == component else ""
