"""What gitcp keeps of each remote: its tips when last seen, its encrypted commits."""

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


def tracked(refs: Refs, remote: str) -> dict[RefKey, str]:
    """Returns the tips that a remote had when it was last seen."""
    component = encode(remote)
    return _below(refs, f"{REMOTES}{component}/", f"{REMOTE_EFFECTS}{component}/")


def encrypted(refs: Refs, remote: str) -> dict[RefKey, str]:
    """Returns the encrypted commits that a remote has, or is to have."""
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
