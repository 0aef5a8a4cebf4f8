"""Builds the rows of the page: a session's timeline as `log` lists it, oldest first."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import NamedTuple

from gitcp._version import __version__
from gitcp.checkpoints import history
from gitcp.checkpoints.beside import Span
from gitcp.checkpoints.history import Filters, Listed
from gitcp.checkpoints.own_notes import note_of
from gitcp.checkpoints.scopes import find
from gitcp.clients.triggers import TURN_END
from gitcp.errors import CorruptError, TransferError
from gitcp.format import layout, log
from gitcp.format.checkpoint import timestamp
from gitcp.format.jsontext import unicode
from gitcp.project.workspace import Workspace
from gitcp.store import logs
from gitcp.store.checkpoint import Checkpoint
from gitcp.view.chosen import Chosen
from gitcp.view.document import SCHEMA, Lane, Page, Reason, Row
from gitcp.view.files import changed_files
from gitcp.view.remembered import remembering
from gitcp.view.talk import Talk


class Wanted(NamedTuple):
    """The parts of a session to show: with `prompts_only` neither answers nor files."""

    prompts_only: bool = False
    files: bool = True


def page_of(
    workspace: Workspace,
    chosen: Chosen,
    wanted: Wanted,
    *,
    now: Callable[[], float],
) -> Page:
    """Returns the page of a session.

    Raises:
        NotFoundError: there is no such branch.
        CorruptError: no part of the session can be read.
    """
    workspace = remembering(workspace)
    unreadable: list[str] = []
    found = find(workspace, chosen.scope, unreadable)
    listed = list(history.listing(workspace, found, Filters(), unreadable, full=False))[
        ::-1
    ]
    lanes, places = _lanes(listed)
    talk = Talk(workspace.store, prompts_only=wanted.prompts_only)
    tips = _tips(listed)
    talk.begin(tips)
    rows = [_row(one, places) for one in listed]
    _connect(rows, listed)
    with_files = wanted.files and not wanted.prompts_only
    with (
        changed_files(workspace, rows, listed, unreadable)
        if with_files
        else nullcontext()
    ):
        _tell(rows, listed, talk, tips, unreadable)
        if not wanted.prompts_only:
            _reason(workspace, rows, listed, unreadable)
    top = workspace.repository.top
    return Page(
        schema=SCHEMA,
        project=unicode(top.name) if top is not None else "",
        session=unicode(chosen.session),
        made=timestamp(now()),
        version=__version__,
        lanes=lanes,
        rows=rows,
        selected=_selected(listed, chosen.ident),
        talk=not wanted.prompts_only,
        files=with_files,
        reasons=not wanted.prompts_only,
        notes=[unicode(line) for line in unreadable],
    )


def _lanes(listed: Sequence[Listed]) -> tuple[list[Lane], dict[tuple[str, str], int]]:
    """Returns the branches in the order in which they began."""
    places: dict[tuple[str, str], int] = {}
    for one in listed:
        checkpoint = one.checkpoint
        places.setdefault((checkpoint.session, checkpoint.branch), len(places))
    lanes = [Lane(unicode(session), unicode(branch)) for session, branch in places]
    return lanes, places


def _tips(listed: Sequence[Listed]) -> list[Checkpoint]:
    """Returns the newest checkpoint of each branch."""
    found: dict[tuple[str, str], Checkpoint] = {}
    for one in listed:
        checkpoint = one.checkpoint
        found[checkpoint.session, checkpoint.branch] = checkpoint
    return list(found.values())


def _row(one: Listed, places: dict[tuple[str, str], int]) -> Row:
    checkpoint = one.checkpoint
    manifest = checkpoint.manifest
    held = manifest.conversation
    kind: str = "turn" if one.row.is_turn else "save"
    restored = manifest.restored_from
    return Row(
        id=checkpoint.id,
        lane=places[checkpoint.session, checkpoint.branch],
        at=manifest.created,
        kind="hand" if one.by_hand else "turn" if kind == "turn" else "save",
        trigger=unicode(checkpoint.trigger),
        seq=checkpoint.seq,
        n=checkpoint.number,
        prompt=unicode(one.prompt or ""),
        note="" if one.by_hand else unicode(note_of(checkpoint)),
        label=unicode(checkpoint.label or ""),
        agent=unicode(held.kind) if held is not None else "",
        open=one.row.is_turn and not one.by_hand and checkpoint.trigger != TURN_END,
        changed=(one.changed.added, one.changed.modified, one.changed.deleted),
        unsure=_by_status(one),
        beside=_numbers(one.beside),
        inside=one.before_commands,
        back_to=checkpoint.number_for(restored) if restored is not None else None,
        foreign=unicode(checkpoint.origin.where or ""),
        skipped=manifest.skipped,
    )


def _by_status(one: Listed) -> tuple[int, int, int]:
    found = [change.status for change in one.unsure]
    return found.count("added"), found.count("modified"), found.count("deleted")


def _numbers(spans: Iterable[Span]) -> list[int]:
    return [span.last.number for span in spans]


def _connect(rows: Sequence[Row], listed: Sequence[Listed]) -> None:
    """Notes the row that each row follows; on a new branch, the row that it was forked from."""
    by_oid: dict[bytes, int] = {}
    for at, one in enumerate(listed):
        by_oid |= {bytes.fromhex(entry.commit): at for entry in one.row.entries}
        by_oid[one.checkpoint.oid] = at
    last: dict[int, int] = {}
    for at, (row, one) in enumerate(zip(rows, listed, strict=True)):
        row.up = last.get(row.lane)
        if row.up is None:
            row.up = _joins(one, by_oid, at)
        last[row.lane] = at


def _joins(one: Listed, by_oid: dict[bytes, int], at: int) -> int | None:
    """Returns the row of the newest ancestor that is another row, or None."""
    checkpoint = one.checkpoint
    for _ in range(len(one.row.entries) + 1):
        if not checkpoint.raw.parents:
            return None
        parent = checkpoint.raw.parents[0]
        found = by_oid.get(parent)
        if found is not None and found < at:
            return found
        return None
    return None


def _tell(
    rows: Sequence[Row],
    listed: Sequence[Listed],
    talk: Talk,
    tips: Iterable[Checkpoint],
    unreadable: list[str],
) -> None:
    """Adds the conversation to each row."""
    gone = {turn for tip in tips for turn in talk.taken_back(tip)}
    for row, one in zip(rows, listed, strict=True):
        try:
            row.talk = talk.of(one)
        except (CorruptError, TransferError) as exc:
            row.notes.append(unicode(f"the conversation cannot be read: {exc.message}"))
            unreadable.append(
                f"{row.name}: the conversation is left out: {exc.message}"
            )
        for each in row.talk:
            each.back = (each.prompt, each.at) in gone


def _reason(
    workspace: Workspace,
    rows: Sequence[Row],
    listed: Sequence[Listed],
    unreadable: list[str],
) -> None:
    """Adds the new entries of the decision log to each row."""
    store = workspace.store
    for row, one in zip(rows, listed, strict=True):
        if one.by_hand:
            continue
        end = one.checkpoint
        try:
            first = store.checkpoint(one.row.first.commit) or end
            parents = first.raw.parents
            before = store.checkpoint(parents[0]) if parents else None
            row.reasons = _entries(before, end)
        except (CorruptError, TransferError) as exc:
            row.notes.append(unicode(f"the reasons cannot be read: {exc.message}"))
            unreadable.append(f"{row.name}: the reasons are left out: {exc.message}")


def _entries(before: Checkpoint | None, end: Checkpoint) -> list[Reason]:
    """Returns the entries of the segments that the state before lacks."""
    if before is not None and before.log_tree == end.log_tree:
        return []
    new = logs.segments(end.log_tree, layout.DECISIONS, end.objects.tree)
    if before is not None and new:
        old = logs.segments(before.log_tree, layout.DECISIONS, before.objects.tree)
        new = new[logs.in_common(old, new) :]
    if not new:
        return []
    raw = b"".join(map(end.objects.blob, new))
    entries = dict.fromkeys(log.decode_decisions(raw, f"checkpoint {end.id}"))
    return [
        Reason(
            unicode(entry.kind),
            unicode(entry.text),
            unicode(entry.why or ""),
            entry.at or "",
            [unicode(path) for path in entry.paths],
        )
        for entry in entries
    ]


def _selected(listed: Sequence[Listed], ident: str | None) -> int | None:
    """Returns the index of the row that holds a checkpoint."""
    if ident is None:
        return None
    for at, one in enumerate(listed):
        if one.checkpoint.id == ident or (not one.by_hand and ident in one.ids):
            return at
    return None
