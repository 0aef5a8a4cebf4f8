"""Imports a `.session` directory: markdown checkpoints of other tools, and their config.

Each page becomes a checkpoint without files, at the time that the page names, with its
entries in the decision log. gitcp stores every file byte for byte as a log source of its own.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp.agents import markdown_page
from gitcp.agents.front_matter import FrontMatterError
from gitcp.errors import NothingToDoError, StorageError, UsageError
from gitcp.format.checkpoint import IMPORT
from gitcp.format.layout import LogName
from gitcp.git.consolidate import consolidate
from gitcp.git.transaction import Transaction, transaction
from gitcp.names import encode
from gitcp.project.workspace import MAIN, Workspace
from gitcp.store import logs
from gitcp.store.append import append_checkpoint
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.draft import Draft, NewRecords
from gitcp.store.store import Store

SESSION = "old-session"
_KIND = "session-file"
_DIRECTORY = ".session"
_LARGEST = 16 * 1024 * 1024


class Imported(NamedTuple):
    """The result of an import: checkpoints made, entries added, pages imported before.

    `left` lists what gitcp did not understand or import, with the reason.
    """

    tip: Checkpoint | None
    checkpoints: int
    entries: int
    known: int
    left: tuple[str, ...]


class _File(NamedTuple):
    name: str
    data: bytes
    page: markdown_page.MarkdownPage | None
    written: float

    @property
    def when(self) -> float:
        at = self.page.at if self.page is not None else None
        return at.timestamp() if at is not None else self.written


def import_session(workspace: Workspace, path: Path) -> Imported:
    """Imports the new pages of a `.session` directory, or of the one in a directory.

    Raises:
        NothingToDoError: the directory holds no page.
        StorageError: a file cannot be read, or the disk refused.
        UsageError: a page has front matter, and PyYAML is not installed.
    """
    inner = path / _DIRECTORY
    root = inner if path.name != _DIRECTORY and inner.is_dir() else path
    left: list[str] = []
    files = list(_read(root, left))
    if not any(one.name.endswith(".md") for one in files):
        raise NothingToDoError(
            f"{root} holds no checkpoints: no markdown file with front matter",
            hint="name a `.session` directory, or a file that `gitcp export` wrote",
        )
    tip = workspace.store.tip(SESSION, MAIN)
    new = [one for one in files if not _holds(tip, one)]
    pages = sorted(
        (one for one in new if one.page is not None),
        key=lambda one: (one.when, one.name),
    )
    others = [one for one in new if one.page is None]
    checkpoints = entries = 0
    with transaction(workspace.repository) as txn:
        for page in pages:
            tip, added = _add(workspace, txn, tip, [page, *others])
            checkpoints, entries, others = checkpoints + 1, entries + added, []
        if others:
            tip, _ = _add(workspace, txn, tip, others)
            checkpoints += 1
    # The import has succeeded, even if housekeeping fails.
    with suppress(StorageError):
        consolidate(workspace.repository)
    return Imported(tip, checkpoints, entries, len(files) - len(new), tuple(left))


def _add(
    workspace: Workspace,
    txn: Transaction,
    tip: Checkpoint | None,
    files: list[_File],
) -> tuple[Checkpoint, int]:
    first = files[0]
    page = first.page
    known = set(tip.decisions()) if tip is not None else set()
    entries = tuple(one for one in page.entries if one not in known) if page else ()
    # The checkpoint gets the time of its page, not the present time.
    store = Store(
        workspace.repository,
        clock=lambda: first.when,
        ledger_position=workspace.ledgers.position,
    )
    saved = append_checkpoint(
        store,
        txn,
        SESSION,
        MAIN,
        Draft(
            IMPORT,
            note=(page.summary if page else None) or first.name,
            records=tuple(
                NewRecords(
                    one.data, whole=True, kind=_KIND, source=one.name, beside=True
                )
                for one in files
            ),
            decisions=entries,
            allow_empty=True,
            elsewhere=True,
        ),
    )
    return saved.checkpoint, len(entries)


def _holds(tip: Checkpoint | None, one: _File) -> bool:
    if tip is None:
        return False
    name = LogName("conversation", one.name)
    meta = logs.meta(tip.log_tree, name, tip.objects)
    if meta is None or meta.bytes != len(one.data):
        return False
    return logs.content(tip.log_tree, name, tip.objects) == one.data


def _read(root: Path, left: list[str]) -> Iterator[_File]:
    for path in _walk(root):
        name = path.relative_to(root).as_posix()
        try:
            encode(name)
            status = path.lstat()
            if path.is_symlink() or not path.is_file():
                left.append(f"{name}: not a regular file")
                continue
            if status.st_size > _LARGEST:
                left.append(f"{name}: is larger than {_LARGEST >> 20} MiB")
                continue
            data = path.read_bytes()
        except UsageError as exc:
            left.append(f"{name!a}: {exc.message}")
            continue
        except OSError as exc:
            left.append(f"{name}: cannot be read: {exc.strerror}")
            continue
        if data:
            yield _File(name, data, _page(name, data, left), status.st_mtime)


def _walk(root: Path) -> Iterator[Path]:
    for directory, directories, names in os.walk(root):
        directories.sort()
        yield from (Path(directory, name) for name in sorted(names))


def _page(name: str, data: bytes, left: list[str]) -> markdown_page.MarkdownPage | None:
    if not name.endswith((".md", ".markdown")):
        return None
    try:
        page = markdown_page.read(data.decode(), name)
    except (FrontMatterError, UnicodeDecodeError) as exc:
        left.append(f"{name}: kept, but not understood: {exc}")
        return None
    # A page without entries and time, such as a README, is stored like any other file.
    return page if page.entries or page.at else None
