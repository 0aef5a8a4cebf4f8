"""Lists the objects that a push would newly send, with their paths."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gitcp.errors import CorruptError
from gitcp.format import layout, tree
from gitcp.format.commit import Trailers, trailers_of
from gitcp.format.ledger import ledger_trailers
from gitcp.format.tree import GITLINK
from gitcp.git.repository import Repository
from gitcp.names import decode


class FirstSeen(NamedTuple):
    """The commit that brings something; `trailers` where it is a checkpoint.

    `ledger` is the component of the session where it is of a ledger of steps.
    """

    commit: str
    trailers: Trailers | None
    ledger: str | None = None


class Piece(NamedTuple):
    """A blob that a commit brings, at a path; without a blob: text of the commit."""

    origin: FirstSeen
    path: bytes
    oid: bytes | None
    text: bytes = b""


# In place of a remote's name: all of them.
ANY = "*"
MESSAGE = b"(message)"
NAMES = b"(names)"


def commits(
    repository: Repository,
    tips: Iterable[str],
    known: Iterable[str] = (),
    remote: str | None = None,
) -> list[str]:
    """Returns the commits that the tips reach and the other side has not, oldest first.

    It has what `known` reaches, and what the remote-tracking branches of `remote` do.
    """
    objects = repository.objects
    lines = [tip.encode() for tip in sorted(set(tips))]
    lines += [
        b"^" + oid.encode()
        for oid in sorted(set(known))
        if objects.exists(bytes.fromhex(oid))
    ]
    has = []
    if remote is not None:
        has = ["--not", "--remotes" if remote == ANY else f"--remotes={remote}"]
    out = repository.git(
        "rev-list",
        "--topo-order",
        "--reverse",
        "--stdin",
        *has,
        data=b"\n".join(lines) + b"\n",
    )
    return out.decode("ascii").split()


def pieces(repository: Repository, chosen: Sequence[str]) -> Iterator[Piece]:
    """Yields what each of the commits brings that its first parent does not hold.

    Together that is everything they hold and the other side has not: what comes from
    another parent came with that one's own commit.
    """
    objects = repository.objects
    for oid in chosen:
        commit = objects.commit(bytes.fromhex(oid))
        trailers = trailers_of(commit)
        steps = ledger_trailers(commit) if trailers is None else None
        origin = FirstSeen(oid, trailers, steps.session if steps is not None else None)
        before = None
        if commit.parents:
            try:
                before = objects.commit(commit.parents[0]).tree
            except CorruptError:
                # A shallow clone ends here: all of it counts as new.
                before = None
        yield Piece(origin, MESSAGE, None, commit.message)
        names = [
            decode(part) or part
            for part in ((trailers.session, trailers.branch) if trailers else ())
        ]
        if steps is not None and before is None:
            names = [decode(steps.session) or steps.session]
        added: list[bytes] = [name.encode() for name in names]
        for change in tree.diff(before, commit.tree, objects.tree):
            if change.new is None:
                continue
            if change.old is None and not change.path.startswith(
                layout.RESERVED + b"/"
            ):
                added.append(change.path)
            if change.new.mode != GITLINK:
                yield Piece(origin, change.path, change.new.oid)
        if added:
            yield Piece(origin, NAMES, None, b"\n".join(added))
