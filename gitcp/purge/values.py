"""Finds the values behind the fingerprints of secrets, wherever checkpoints hold them."""

from collections.abc import Sequence
from contextlib import suppress

from gitcp.errors import CorruptError, NotFoundError, UsageError
from gitcp.format import layout
from gitcp.git.objects import Objects
from gitcp.project.workspace import Workspace
from gitcp.purge.redact import SHORTEST
from gitcp.secrets import cache, dotenv, outgoing
from gitcp.secrets.outgoing import Piece
from gitcp.secrets.policy import pieces, scanner_of
from gitcp.secrets.scanner import Hit, Scanner
from gitcp.sync import ledgers


def long_enough(value: bytes) -> bytes:
    """Returns a value without line ends around it.

    Raises:
        UsageError: the value is so short that it would match other text.
    """
    if len(value.strip()) < SHORTEST:
        raise UsageError(
            f"a value of {len(value.strip())} bytes is too short: it would match unrelated text",
            hint=f"give at least {SHORTEST} bytes, or purge the file: gitcp purge PATH",
        )
    return value.strip(b"\r\n")


def find_values(
    workspace: Workspace, wanted: Sequence[str]
) -> tuple[list[tuple[bytes, str]], NotFoundError | None]:
    """Finds the values behind fingerprints, wherever checkpoints hold them.

    The second part is an error if some were not found.
    """
    if not wanted:
        return [], None
    repository = workspace.repository
    scan = scanner_of(workspace)
    clean = cache.Clean(repository, scan.identity)
    found: dict[bytes, str] = {}
    looked: set[tuple[bytes, bytes]] = set()
    tips = [
        *repository.refs.list(layout.SESSIONS).values(),
        *ledgers.here(workspace).values(),
    ]
    commits = outgoing.commits(repository, tips, remote=outgoing.ANY)
    # Of damaged commits, those pieces that can be read.
    for piece in pieces(workspace, commits, unreadable=lambda *_: None):
        key = piece.oid or piece.text, piece.path
        # In an `.env` file, more counts as a secret than in other files.
        strict = dotenv.is_dotenv(piece.path)
        known = piece.oid is not None and piece.oid in clean and not strict
        if known or key in looked:
            continue
        looked.add(key)
        with suppress(CorruptError):
            for hit in _hits(repository.objects, scan, piece):
                if hit.fingerprint in wanted and hit.value:
                    found[hit.value] = hit.fingerprint
    names = ", ".join(sorted(set(wanted) - set(found.values())))
    missing = NotFoundError(
        f"no checkpoint holds {names}",
        hint="`gitcp scan` lists fingerprints, which differ between clones; `gitcp"
        " purge --value-from-stdin` takes the value itself",
    )
    return list(found.items()), missing if names else None


def _hits(objects: Objects, scan: Scanner, piece: Piece) -> list[Hit]:
    if piece.oid is None:
        return scan.scan([piece.text])
    return scan.scan(outgoing.content(objects, piece.oid), piece.path)
