"""Lists every branch with its newest checkpoint.

If there are very many branches, the data of their tips is cached beside the store, by
commit: it never changes, and reading ten thousand commits takes seconds.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec

from gitcp import durable
from gitcp.checkpoints import history, sessions
from gitcp.errors import StorageError
from gitcp.format.layout import BranchKey
from gitcp.store.store import Store

# From here on the list is kept.
MANY = 200
_NAME = "sessions.json"
_LONGEST = 200


class ListedBranch(msgspec.Struct, frozen=True, array_like=True):
    """A branch, and what its newest checkpoint says of itself.

    `agent` is the client whose conversation it holds, `asked` the first prompt; empty
    if there is none. Lists that an older gitcp has kept have no `asked`.
    """

    commit: str
    session: str
    branch: str
    id: str
    seq: int
    created: str
    note: str
    agent: str = ""
    asked: str | None = None


def listed(
    store: Store, *, unreadable: Callable[[str], None] | None = None
) -> list[ListedBranch]:
    """Returns every branch, by session, `main` first.

    Raises:
        CorruptError, FormatTooNewError: a newest checkpoint cannot be read, and
            `unreadable` is not given.
    """
    refs = {
        f"{session}/{branch}": oid for (session, branch), oid in store.refs().items()
    }
    kept = _kept(store) if len(refs) >= MANY else {}
    branches = {
        name: entry
        for name, oid in refs.items()
        if (entry := kept.get(name)) is not None
        and entry.commit == oid
        and entry.asked is not None
    }
    missing = {name: oid for name, oid in refs.items() if name not in branches}
    if missing:
        branches.update(_read(store, missing, unreadable))
        if len(refs) >= MANY:
            _keep(store, branches)
    return sorted(
        branches.values(),
        key=lambda entry: (entry.session, entry.branch != "main", entry.branch),
    )


def _read(
    store: Store, refs: dict[str, str], unreadable: Callable[[str], None] | None
) -> Iterator[tuple[str, ListedBranch]]:
    for ref, oid in refs.items():
        session, _, branch = ref.partition("/")
        for name, info in sessions.branches(
            store, {BranchKey(session, branch): oid}, unreadable=unreadable
        ):
            tip = info.tip
            held = tip.manifest.conversation
            agent = held.kind if held is not None and held.agent_session else ""
            yield (
                ref,
                ListedBranch(
                    oid,
                    name,
                    info.name,
                    tip.id,
                    tip.seq,
                    tip.manifest.created,
                    _first_line(tip.note),
                    agent,
                    _first_line(history.first_prompt(store, tip)) if agent else "",
                ),
            )


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0][:_LONGEST]


def _kept(store: Store) -> dict[str, ListedBranch]:
    with suppress(OSError, msgspec.MsgspecError, RecursionError, UnicodeError):
        raw = (store.repository.store_dir / _NAME).read_bytes()
        return msgspec.json.decode(raw, type=dict[str, ListedBranch])
    return {}


def _keep(store: Store, branches: dict[str, ListedBranch]) -> None:
    # Derived: if it cannot be stored, the commits are read again.
    with suppress(StorageError), durable.storage("keeping the list of sessions"):
        store.repository.make_directory(store.repository.store_dir)
        durable.replace(
            store.repository.store_dir / _NAME,
            msgspec.json.encode(branches),
            sync=False,
        )
