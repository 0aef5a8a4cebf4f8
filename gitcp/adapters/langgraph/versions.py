"""Generates versions of channels, in the order in which LangGraph compares them."""

import random
from collections.abc import Mapping
from typing import Any


def next_version(current: str | float | None) -> str | float:
    """Returns a version after `current`; no two are alike, so that one names a step."""
    if isinstance(current, int | float):
        # A thread of a saver that counts: LangGraph compares them all.
        return current + 1
    number = int(current.split(".")[0]) if current else 0
    return f"{number + 1:032}.{random.getrandbits(53):016}"


def newest_version(versions: Mapping[str, Any]) -> Any:
    """Returns the greatest of a checkpoint's versions: the one made for it."""
    return max(versions.values(), key=_order, default=None)


def _order(version: object) -> tuple[float, str]:
    """Orders versions of any kind; those of one thread are of one kind."""
    return (0.0, version) if isinstance(version, str) else (float(str(version)), "")
