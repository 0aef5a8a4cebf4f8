"""Recognises gitcp's own refs, and writes git's input for deleting some of them."""

from collections.abc import Mapping

from gitcp.errors import UnsafePathError

# Others are the user's: git says what it thinks of those, and saves continue.
OURS = "refs/gitcp/"


def deletions(refs: Mapping[str, str | None]) -> list[str]:
    """Returns the lines by which git deletes refs; refuses those that are not gitcp's."""
    for name in refs:
        refuse_foreign(name)
    return [f"delete {name} {oid or ''}".rstrip() for name, oid in refs.items()]


def refuse_foreign(name: str) -> None:
    """Raises for a ref that is not gitcp's: callers take names from logs, too."""
    if not name.startswith(OURS) or not {"", ".", ".."}.isdisjoint(name.split("/")):
        raise UnsafePathError(
            f"{name!a} is not one of gitcp's refs, and gitcp moves no others",
            hint="run `gitcp doctor`, and report this",
        )
