"""The problems that a check finds, each by checkpoint and path."""

from typing import NamedTuple

from gitcp.errors import CorruptError

# The sorts of problems.
DAMAGED, UNSAFE, HEAD = "damaged", "unsafe", "head"


class Problem(NamedTuple):
    """A problem; `checkpoint` is None if not even its id can be read.

    `kind` and `oid` name the object at fault if it is missing or damaged; `unsafe`
    marks a path that must not be written. `about` is the sort of problem.
    """

    checkpoint: str | None
    path: bytes
    problem: str
    kind: str | None = None
    oid: bytes | None = None
    unsafe: bool = False
    about: str = DAMAGED


class Problems:
    """Collects problems; `checkpoint` is the id of the checkpoint that is being checked."""

    def __init__(self) -> None:
        self.listed: list[Problem] = []
        self.checkpoint: str | None = None

    def add(
        self,
        path: bytes,
        problem: str,
        kind: str | None = None,
        oid: bytes | None = None,
        *,
        unsafe: bool = False,
    ) -> None:
        """Adds a problem of the present checkpoint."""
        about = UNSAFE if unsafe else DAMAGED
        self.listed.append(
            Problem(self.checkpoint, path, problem, kind, oid, unsafe, about)
        )

    def add_error(self, path: bytes, error: CorruptError) -> None:
        """Adds an error, unless the object that it names has a problem here already."""
        if not any(
            problem.checkpoint == self.checkpoint
            and problem.oid is not None
            and problem.oid.hex() in error.message
            for problem in self.listed
        ):
            self.add(path, error.message)

    def any_below(self, path: bytes) -> bool:
        """Whether the present checkpoint has a problem at a path or below it."""
        return any(
            problem.checkpoint == self.checkpoint and problem.path.startswith(path)
            for problem in self.listed
        )
