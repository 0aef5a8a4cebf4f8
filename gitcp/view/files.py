"""Adds the changed files to each row, text files line by line."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal

from gitcp.checkpoints.beside import Span
from gitcp.checkpoints.diff import FileDiff
from gitcp.checkpoints.diff_series import Compared, SeriesDiff, comparing
from gitcp.checkpoints.history import Listed
from gitcp.checkpoints.whose import Parted
from gitcp.errors import CorruptError, GitFailedError, TransferError
from gitcp.format import tree
from gitcp.format.checkpoint import show_path
from gitcp.format.jsontext import unicode
from gitcp.project.workspace import Workspace
from gitcp.store.store import Store
from gitcp.view.document import File, Row

_Spans = Mapping[bytes, tuple[Span, ...]]
# Bytes of the patch of one file, and of all files of a page.
_PATCH = 400_000
_PATCHES = 100_000_000
# Files of one row: a first checkpoint may have hundreds of thousands.
_FILES = 2_000
_LETTERS = {"added": "A", "modified": "M", "deleted": "D"}


@contextmanager
def changed_files(
    workspace: Workspace,
    rows: Sequence[Row],
    listed: Sequence[Listed],
    unreadable: list[str],
) -> Iterator[None]:
    """Adds the files that rows changed, with their patches, once the caller is done.

    git compares them meanwhile. Notes in `unreadable` what cannot be read.
    """
    wanted: list[Compared] = []
    of_rows: list[tuple[Row, Parted | None]] = []
    for row, one in zip(rows, listed, strict=True):
        compared = _compared(workspace.store, row, one)
        if compared is not None and compared.changes:
            wanted.append(compared)
            of_rows.append((row, one.parted))
    with comparing(workspace.repository, wanted) as results:
        yield
        try:
            found = results()
        except GitFailedError:
            # An object is damaged, so compare pair by pair to keep the others.
            found = [_alone(workspace, one) for one in wanted]
    left = _PATCHES
    for (row, parted), compared, diff in zip(of_rows, wanted, found, strict=True):
        if diff is None:
            why = "its changes are left out: a file is missing or damaged"
            row.notes.append(why)
            unreadable.append(f"{row.name}: {why}")
            row.files = [_bare(change) for change in compared.changes]
            continue
        row.files = [
            _file(each, diff.patches.get(each.change.path, b""), parted)
            for each in diff.files
        ]
        for each in row.files:
            left -= len(each.patch)
            if left < 0 and each.patch:
                each.patch, each.why = "", "left out to limit the length of the page"


def _compared(store: Store, row: Row, one: Listed) -> Compared | None:
    """Returns the states to compare; None if no files were captured, or they are unreadable."""
    end, before = one.checkpoint, one.before
    if not end.holds_files:
        return None
    try:
        if before is None and end.raw.parents:
            # For a checkpoint made elsewhere, `log` counts against the branch.
            before = store.checkpoint(end.raw.parents[0])
        old = before.files_tree if before is not None else None
        changes = list(tree.diff(old, end.files_tree, end.objects.files))
    except (CorruptError, TransferError) as exc:
        row.notes.append(unicode(f"the files cannot be compared: {exc.message}"))
        return None
    if one.before is None and len(changes) != sum(one.changed):
        row.notes.append(
            "it is not known which files it changed: the state before it is gone"
        )
        return None
    if len(changes) > _FILES:
        row.notes.append(
            f"{len(changes) - _FILES:,} more files: `gitcp show {row.n or row.id}`"
        )
    sides = (end,) if before is None else (before, end)
    return Compared(changes[:_FILES], sides)


def _alone(workspace: Workspace, one: Compared) -> SeriesDiff | None:
    try:
        with comparing(workspace.repository, [one]) as results:
            return results()[0]
    except GitFailedError:
        return None


def _bare(change: tree.Change) -> File:
    return File(unicode(show_path(change.path)), _LETTERS[change.status])


def _file(each: FileDiff, patch: bytes, parted: Parted | None) -> File:
    change = each.change
    file = _bare(change)
    file.add, file.sub = each.added, each.deleted
    if each.renamed_from is not None:
        file.old = unicode(show_path(each.renamed_from))
    if each.renamed_to is not None:
        file.why = unicode(f"renamed to {show_path(each.renamed_to)}")
    elif len(patch) > _PATCH:
        file.why = "too long for a page"
    elif each.added is None:
        file.why = "no text"
    else:
        file.patch = _body(patch)
    if parted is not None:
        _part(file, change.path, parted)
    return file


def _part(file: File, path: bytes, parted: Parted) -> None:
    """Notes the other turns that may have made a change."""
    sides: tuple[tuple[Literal["unsure", "others", "also"], _Spans], ...] = (
        ("unsure", parted.unsure),
        ("others", parted.others),
        ("also", parted.also),
    )
    for whose, spans_of in sides:
        if path in spans_of:
            file.whose = whose
            file.turns = [span.last.number for span in spans_of[path]]


def _body(patch: bytes) -> str:
    """Returns a patch without the names of files: its own lines, and the modes."""
    text = patch.decode("utf-8", "replace")
    kept = []
    inside = False
    for line in text.split("\n"):
        if line.startswith("diff --git "):
            inside = False
        inside = inside or line.startswith("@@")
        if inside or line.startswith(("old mode", "new mode", "new file", "deleted")):
            kept.append(line)
    return "\n".join(kept).rstrip("\n")
