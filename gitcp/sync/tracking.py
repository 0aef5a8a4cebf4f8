"""The refs that gitcp keeps for each remote: its tips when last seen, its encrypted commits."""

from collections.abc import Collection
from contextlib import suppress

from gitcp.errors import CorruptError
from gitcp.format.layout import (
    ENCRYPTED,
    ENCRYPTED_EFFECTS,
    REMOTE_EFFECTS,
    REMOTES,
    BranchKey,
    LedgerKey,
    RefKey,
)
from gitcp.git.refs import Refs
from gitcp.names import encode

# Up to so many refs are read one by one: a list has all that the remote ever had.
_FEW = 8


def tracked(
    refs: Refs, remote: str, keys: Collection[RefKey] | None = None
) -> dict[RefKey, str]:
    """Returns the tips that a remote had when it was last seen.

    The tips of `keys` are among them; others may be missing.
    """
    if keys is not None and len(keys) <= _FEW:
        found: dict[RefKey, str] = {}
        for key in keys:
            # A list leaves out damaged refs, too.
            with suppress(CorruptError):
                if (oid := refs.read(key.tracking_ref(remote))) is not None:
                    found[key] = oid
        return found
    component = encode(remote)
    return _below(refs, f"{REMOTES}{component}/", f"{REMOTE_EFFECTS}{component}/")


def encrypted(refs: Refs, remote: str) -> dict[RefKey, str]:
    """Returns the encrypted commits that a remote has, or that a push will send there."""
    component = encode(remote)
    return _below(refs, f"{ENCRYPTED}{component}/", f"{ENCRYPTED_EFFECTS}{component}/")


def _below(refs: Refs, branches: str, ledgers: str) -> dict[RefKey, str]:
    found: dict[RefKey, str] = {}
    for ref, oid in refs.list(branches).items():
        session, _, branch = ref.removeprefix(branches).partition("/")
        found[BranchKey(session, branch)] = oid
    for ref, oid in refs.list(ledgers).items():
        found[LedgerKey(ref.removeprefix(ledgers))] = oid
    return found
