"""Compares refs with what they were before git moved them to another storage."""

from collections.abc import Callable, Mapping

from gitcp.git.objects import Objects

# By how many commits others may have continued from ours meanwhile.
_GROWN = 1000


def grew_from(objects: Objects, tip: str, wanted: str, before: str | None) -> bool:
    """Whether a commit, or one that it has grown from after `before`, is the wanted one."""
    oid: str | None = tip
    for _ in range(_GROWN):
        if oid is None or oid in {wanted, before}:
            break
        parents = objects.commit(bytes.fromhex(oid)).parents
        oid = parents[0].hex() if parents else None
    return oid == wanted


def moved_since(
    before: Mapping[str, str | None], read: Callable[[str], str | None]
) -> dict[str, tuple[str, str]]:
    """Returns what was and what is of the refs that are elsewhere than before."""
    return {
        name: (old, now)
        for name, old in before.items()
        if old is not None and (now := read(name)) is not None and now != old
    }
