"""Lists what a remote offers: its branches and ledgers."""

from collections.abc import Sequence
from typing import NamedTuple

from gitcp.errors import NotFoundError
from gitcp.format import layout
from gitcp.format.layout import LedgerKey, RefKey
from gitcp.names import encode, quoted
from gitcp.remotes.remote import Remote
from gitcp.sync.push import session_and_branch


class Offered(NamedTuple):
    """The refs of a remote: tips of branches and ledgers, and ignored refs of neither."""

    tips: dict[RefKey, str]
    ignored: tuple[str, ...]


def offered(source: Remote, remote: str, sessions: Sequence[str] = ()) -> Offered:
    """Asks a remote which branches and ledgers it has.

    Raises:
        NotFoundError: the remote has no such session.
        TransferError: the remote cannot be reached.
    """
    ledgers = [LedgerKey.of(session_and_branch(spec)[0]) for spec in sessions]
    there = source.advertised(layout.prefixes_of(ledgers, source.named))
    tips: dict[RefKey, str] = {}
    ignored = sorted(there.symbolic - there.refs.keys())
    for ref, oid in there.refs.items():
        key = layout.ref_key(ref)
        if key is None or ref in there.symbolic:
            ignored.append(ref)
        else:
            tips[key] = oid
    if not sessions:
        return Offered(tips, tuple(ignored))
    chosen: dict[RefKey, str] = {}
    for spec in sessions:
        session, branch = session_and_branch(spec)
        ledger = LedgerKey.of(session)
        matching = {
            key: oid
            for key, oid in tips.items()
            if key.ledger == ledger
            and (
                branch is None
                or isinstance(key, LedgerKey)
                or key.branch == encode(branch)
            )
        }
        if not matching or (branch is not None and matching.keys() == {ledger}):
            failed = source.why_not(ledger.ref)
            raise NotFoundError(
                f"{remote} has no session {spec!a}"
                + (f": {failed.message}" if failed is not None else ""),
                hint=f"`gitcp remote-sessions {quoted(remote)}` lists what it has",
            )
        chosen |= matching
    return Offered(chosen, ())
