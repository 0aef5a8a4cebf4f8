"""Drains the write-ahead logs of ended processes, and sets damaged logs aside."""

import os
from pathlib import Path

from gitcp import durable
from gitcp.format import layout
from gitcp.git.repository import Repository
from gitcp.git.transaction import Transaction
from gitcp.ledger.join import join
from gitcp.store.aside import keep_aside
from gitcp.wal.drain import Conflict, OnConflict, drain_idle
from gitcp.wal.log_file import DAMAGED, SUFFIX

_OWNERS: dict[str, OnConflict] = {layout.SESSIONS: keep_aside, layout.EFFECTS: join}


def drain_logs(repository: Repository, *, timeout: float = 1.0) -> int:
    """Drains every log that no process is writing to; returns the number of records.

    Raises:
        StorageError: the disk refused; the logs stay.
    """
    return drain_idle(repository, _resolve, timeout=timeout)


def logs_set_aside(repository: Repository) -> list[Path]:
    """Returns the damaged logs that were set aside, for the user to look at.

    Raises:
        StorageError: the directory cannot be read.
    """
    aside = repository.store_dir / DAMAGED
    with durable.storage("looking for damaged logs"):
        try:
            names = os.listdir(aside)
        except FileNotFoundError:
            return []
    return [aside / name for name in sorted(names) if f"{SUFFIX}." in name]


def _resolve(txn: Transaction, conflict: Conflict) -> None:
    # Draining has refused every ref that does not belong to a branch or ledger.
    prefix = next(prefix for prefix in _OWNERS if conflict.ref.startswith(prefix))
    _OWNERS[prefix](txn, conflict)
