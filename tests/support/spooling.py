"""One round of a spool, as the process that sends has many."""

from gitcp.spool import gather, send_round
from gitcp.spool.entries import Spool
from gitcp.spool.kept_clones import KeptClones


def run_round(spool: Spool, owed: dict[str, str] | None = None) -> tuple[int, int]:
    """Asks all clones, sends, tells them, and asks again; returns what was sent, and not."""
    clones = KeptClones()
    if spool.listed() is None or not spool.pending():
        send_round.reach(spool, clones)
    if spool.listed() is None:
        return 0, 0
    sent = send_round.send(spool, {} if owed is None else owed)
    gather.tell(spool, clones, sent.arrived)
    gather.take_all(spool, clones)
    return sent.sent, len(spool.pending())
