"""One round of a spool: asks the remote, sends what waits in one push, notes the answers."""

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from gitcp.errors import GitcpError, TransferError
from gitcp.format import layout
from gitcp.format.layout import LedgerKey, RefKey
from gitcp.git.remote import REFUSED_THERE, Answer, Update
from gitcp.git.transport import Limits
from gitcp.git.unreachable import NoRepositoryError
from gitcp.project.workspace import open_workspace
from gitcp.remotes import by_address as sources
from gitcp.remotes.by_address import Patience
from gitcp.remotes.remote import Remote
from gitcp.spool import gather
from gitcp.spool.entries import Pending, Progress, Spool, now
from gitcp.spool.intake import PREFIXES
from gitcp.spool.kept_clones import KeptClones

_HEADS = "refs/heads/"
# Messages of servers that limit the rate.
_TOO_MUCH = re.compile(
    r"(?i)rate.?limit|too many|429|throttl|slow down|try again later"
)
_LONGEST = 300.0
_REFUSED_LONGEST = 3600.0
_MOVED = (
    "the remote has other checkpoints there, and the clone that made these was deleted"
)
_REMOVED = "the remote removed a branch after this was scanned for secrets"


Arrived = dict[str, dict[str, str]]


class Sent(NamedTuple):
    """The result of a round: how many refs it sent, and how many are still pending.

    `arrived` has the sent commits by clone and ref, so that each clone can note them.
    """

    sent: int
    left: int
    arrived: Arrived


def reach(spool: Spool, clones: KeptClones) -> bool:
    """Asks all clones: if the remote was never reached, only they know how to reach it.

    Returns whether the remote was reached; if not, notes when to try again.
    """
    try:
        gather.take_all(spool, clones)
    except TransferError as exc:
        route = spool.route()
        assert route is not None
        progress = _failed(spool.progress(), route.interval, exc.message)
        spool.note_progress(progress)
        return False
    return True


def send(spool: Spool, owed: dict[str, str]) -> Sent:
    """Sends pending refs, and notes when the next round is due.

    `owed` has the commits of branches whose ledger was sent in the round before. They are
    sent now, even if the ledger has grown since. On return it has those of this round.

    Raises:
        GitcpError: the spool cannot be read or written.
    """
    route = spool.route()
    assert route is not None
    limits = Limits(route.silence, route.total)
    progress = spool.progress()
    arrived: Arrived = {}
    try:
        source = sources.at_address(
            spool.gathering().repository, route.address, Patience(limits)
        )
        there = _ask(spool, source)
        ready = _ready(spool, there, source, arrived)
        chosen = _choose(ready, progress, owed)
        later = _waiting_for_ledgers(ready, chosen)
        owed.clear()
        # Note this right before sending. If the pusher is killed later, its successor still
        # keeps to the interval; if it was killed earlier, no interval is lost.
        progress = msgspec.structs.replace(progress, last=now())
        spool.note_progress(progress)
        answers = _send(source, chosen)
    except TransferError as exc:
        spool.note_progress(_failed(progress, route.interval, exc.message))
        return Sent(0, len(spool.pending()), arrived)
    _note_answers(spool, chosen, answers, arrived)
    owed.update(
        {ref: commit for ref, (commit, ledger) in later.items() if answers[ledger].done}
    )
    next_progress = _judge(progress, chosen, answers, route.interval)
    reason = next(iter(source.silent()), next_progress.reason)
    spool.note_progress(msgspec.structs.replace(next_progress, reason=reason))
    spool.gathering().tidy()
    done = sum(answers[update.ref].done for update, _ in chosen.values())
    return Sent(done, len(spool.pending()), arrived)


class _There(NamedTuple):
    """The refs of a remote; `asked` are the sessions that were asked for, None for all."""

    refs: Mapping[str, str]
    asked: frozenset[LedgerKey] | None = None


def _ask(spool: Spool, source: Remote) -> _There:
    """Asks the remote for its refs; if a branch is gone, decides about all refs again."""
    if not source.lists_all:
        return _ask_named(spool, source)
    there = source.advertised(PREFIXES).refs
    with spool.locked():
        before = spool.listed() or {}
        spool.note_listed(there)
        gone = {ref for ref in before if ref.startswith(_HEADS)} - set(there)
        if gone:
            # Its commits were not scanned for secrets, because the remote had them.
            for one in spool.pending().values():
                _decide_again(spool, one, _REMOVED)
    return _There(there)


def _ask_named(spool: Spool, source: Remote) -> _There:
    """Asks a pattern, or an object store, for the sessions that are due.

    Raises:
        TransferError: the remote did not answer at all.
    """
    moment = now()
    asked = frozenset(
        key.ledger
        for ref, one in spool.pending().items()
        if one.due <= moment and (key := layout.ref_key(ref)) is not None
    )
    if not asked:
        return _There({}, asked)
    there: Mapping[str, str] = {}
    try:
        there = source.advertised(layout.prefixes_of(asked, source.named)).refs
    except TransferError:
        # The repositories of a pattern that do answer must not wait for the others.
        if all(source.why_not(key.ref) is None for key in asked):
            raise
    with spool.locked():
        kept = {
            ref: oid
            for ref, oid in (spool.listed() or {}).items()
            if source.why_not(ref) is not None
            or (key := layout.ref_key(ref)) is None
            or key.ledger not in asked
        }
        spool.note_listed({**kept, **there})
    return _There(there, asked)


def _decide_again(spool: Spool, one: Pending, reason: str) -> None:
    """Lets the clone decide about a ref again; if the clone is gone, the ref is held."""
    clone = spool.clone(one.clone)
    if clone is not None and _is_there(clone.directory):
        spool.remove(one.ref)
        spool.note_clone(
            one.clone,
            msgspec.structs.replace(clone, wanted=True, sessions=(), at=now()),
        )
        return
    if clone is not None:
        spool.note_clone(one.clone, None)
    if one.reason != reason:
        spool.put(msgspec.structs.replace(one, reason=reason, due=float(2**40)))


def _is_there(directory: str) -> bool:
    try:
        open_workspace(directory, bare=True)
    except GitcpError:
        return False
    return True


def _ready(
    spool: Spool, there: _There, source: Remote, arrived: Arrived
) -> list[tuple[Update, Pending]]:
    """Returns the updates to send: each is a fast-forward of the remote's ref, or expected."""
    gathering = spool.gathering()
    found = []
    with spool.locked():
        for one in spool.pending().values():
            if there.asked is not None and _key_of(one.ref).ledger not in there.asked:
                continue
            if (why_not := source.why_not(one.ref)) is not None:
                _postpone(spool, one, why_not)
                continue
            old = there.refs.get(one.ref)
            if old == one.new:
                # A pusher was killed before it could note the answer.
                spool.remove(one.ref)
                arrived.setdefault(one.clone, {})[one.ref] = one.plain
            elif old == one.base or (
                old is not None and gathering.follows(old, one.new)
            ):
                found.append((Update(one.ref, old, one.new), one))
            else:
                _decide_again(spool, one, _MOVED)
    return found


def _postpone(spool: Spool, one: Pending, why_not: TransferError) -> None:
    """Postpones a ref, because its repository does not answer or does not exist."""
    route = spool.route()
    assert route is not None
    missing = isinstance(why_not, NoRepositoryError)
    longest = _REFUSED_LONGEST if missing else max(_LONGEST, route.interval)
    pause = min(route.interval * 2 ** min(one.tries + 1, 20), longest)
    spool.put(
        msgspec.structs.replace(
            one,
            tries=one.tries + 1,
            due=now() + pause,
            # If the repository only does not answer, the ref counts as waiting, not refused.
            reason=why_not.message if missing else "",
        )
    )


def _choose(
    ready: list[tuple[Update, Pending]], progress: Progress, owed: dict[str, str]
) -> dict[str, tuple[Update, Pending]]:
    """Returns the updates of this round: the longest waiting first, ledgers before branches."""
    moment = now()
    due = [(update, one) for update, one in ready if one.due <= moment]
    due.sort(key=lambda item: (item[1].tries, item[1].at))
    if progress.batch:
        due = due[: progress.batch]
    ledgers = {
        update.ref for update, _ in ready if update.ref.startswith(layout.EFFECTS)
    }
    chosen: dict[str, tuple[Update, Pending]] = {}
    for update, one in due:
        if _ledger_of(update.ref) not in ledgers - {update.ref}:
            chosen[update.ref] = (update, one)
        elif commit := owed.get(update.ref):
            chosen[update.ref] = (update._replace(new=commit), one)
    return chosen


def _waiting_for_ledgers(
    ready: list[tuple[Update, Pending]], chosen: Mapping[str, object]
) -> dict[str, tuple[str, str]]:
    """Returns the branches that wait for their ledger, each with its commit and that ledger."""
    return {
        update.ref: (update.new, ledger)
        for update, _ in ready
        if update.ref not in chosen and (ledger := _ledger_of(update.ref)) in chosen
    }


def _ledger_of(ref: str) -> str:
    return _key_of(ref).ledger.ref


def _key_of(ref: str) -> RefKey:
    key = layout.ref_key(ref)
    assert key is not None
    return key


def _send(
    source: Remote, chosen: Mapping[str, tuple[Update, Pending]]
) -> dict[str, Answer]:
    if not chosen:
        return {}
    answers = source.send(
        [update for update, _ in chosen.values()],
        elsewhere={oid for _, one in chosen.values() for oid in one.elsewhere},
    )
    return {ref: answers.get(ref, Answer("!", "no answer")) for ref in chosen}


def _note_answers(
    spool: Spool,
    chosen: Mapping[str, tuple[Update, Pending]],
    answers: Mapping[str, Answer],
    arrived: Arrived,
) -> None:
    over: list[str] = []
    left: list[Pending] = []
    with spool.locked():
        listed = dict(spool.listed() or {})
        pending = spool.pending()
        for ref, (update, one) in chosen.items():
            answer, current = answers[ref], pending.get(ref)
            if answer.done:
                listed[ref] = update.new
            if current is None:
                continue
            if not answer.done:
                left.append(_refused(spool, current, answer.reason))
            elif current.new == update.new:
                over.append(ref)
                arrived.setdefault(one.clone, {})[ref] = one.plain
            else:
                left.append(
                    msgspec.structs.replace(current, base=update.new, at=now(), tries=0)
                )
        spool.put(*left)
        spool.remove(*over)
        spool.note_listed(listed)


def _refused(spool: Spool, one: Pending, reason: str) -> Pending:
    tries = one.tries + 1
    pause = 0.0
    if reason.startswith(REFUSED_THERE) and not _TOO_MUCH.search(reason):
        route = spool.route()
        assert route is not None
        pause = min(route.interval * 2**tries, _REFUSED_LONGEST)
    return msgspec.structs.replace(one, tries=tries, reason=reason, due=now() + pause)


def _failed(progress: Progress, interval: float, reason: str) -> Progress:
    failures = progress.failures + 1
    pause = min(interval * 2 ** min(failures, 20), max(_LONGEST, interval))
    return msgspec.structs.replace(
        progress, failures=failures, due=now() + pause, reason=reason
    )


def _judge(
    progress: Progress,
    chosen: Mapping[str, tuple[Update, Pending]],
    answers: Mapping[str, Answer],
    interval: float,
) -> Progress:
    """Returns when the next push is due, and how many refs it sends at most.

    A server may refuse a whole push because of one ref (`pre-receive`). The next push then
    sends half as many, until that ref is alone, so that it does not hold up the others.
    """
    refused = [answer.reason for answer in answers.values() if not answer.done]
    if not refused or len(refused) < len(answers):
        batch = progress.batch * 2 if progress.batch < len(chosen) * 2 else 0
        return Progress(progress.last, due=progress.last + interval, batch=batch)
    if any(_TOO_MUCH.search(reason) for reason in refused):
        return _failed(progress, interval, refused[0])
    batch = max(len(chosen) // 2, 1)
    return Progress(progress.last, due=progress.last + interval, batch=batch)
