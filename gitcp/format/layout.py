"""Ref names, and paths inside a checkpoint's tree (docs/format.md, 2 and 4)."""

import re
from collections.abc import Collection
from typing import NamedTuple

from gitcp.format.oid import PATTERN
from gitcp.names import encode

FORMAT = 1
# Of a checkpoint with chunked files: an older gitcp would restore their pointers. What
# stands in place of an encrypted checkpoint says 2 (format.md, 19).
FORMAT_WITH_CHUNKS = 3
RESERVED = b".gitcp"
SESSIONS = "refs/gitcp/s/"
REMOTES = "refs/gitcp/r/"
EFFECTS = "refs/gitcp/fx/"
REMOTE_EFFECTS = "refs/gitcp/rfx/"
ENCRYPTED = "refs/gitcp/e/"
ENCRYPTED_EFFECTS = "refs/gitcp/efx/"

CHECKPOINT = b"checkpoint.json"
SUMMARY = b"summary.md"
SKIPPED = b"skipped.jsonl"
EMPTY_DIRS = b"empty-dirs.txt"
LOG = b"log"
CHUNKS = b"chunks"
META = b"meta.json"

# Threads of LangGraph (docs/format.md, 15).
GRAPH = "graph"
EVENT = b"graph.json"
WRITES = b"graph-writes"

SEGMENTS_PER_DIRECTORY = 256

_COMPONENT = re.compile(r"[a-z0-9_%][a-z0-9_%-]{0,199}")
_OID = re.compile(PATTERN)
_TWO = 2
# Up to so many sessions a remote is asked for theirs only.
_NAMED = 50


class LedgerKey(NamedTuple):
    """Which ledger, by the encoded name of its session. Sorts before its branches."""

    session: str

    @classmethod
    def of(cls, session: str) -> "LedgerKey":
        """Returns the key of the ledger of a session, by the session's name."""
        return cls(encode(session))

    @property
    def ledger(self) -> "LedgerKey":
        """The ledger itself: a branch has one, too."""
        return self

    @property
    def ref(self) -> str:
        """The ref of the ledger."""
        return f"{EFFECTS}{self.session}"

    def tracking_ref(self, remote: str) -> str:
        """Returns the ref that keeps what a remote had of it when it was last seen."""
        return f"{REMOTE_EFFECTS}{encode(remote)}/{self.session}"

    def encrypted_ref(self, remote: str) -> str:
        """Returns the ref of the encrypted commit that stands for it on a remote."""
        return f"{ENCRYPTED_EFFECTS}{encode(remote)}/{self.session}"


class BranchKey(NamedTuple):
    """Which branch, by the encoded names of its session and itself."""

    session: str
    branch: str

    @classmethod
    def of(cls, session: str, branch: str) -> "BranchKey":
        """Returns the key of a branch, by its names."""
        return cls(encode(session), encode(branch))

    @property
    def ledger(self) -> LedgerKey:
        """The ledger of its session."""
        return LedgerKey(self.session)

    @property
    def ref(self) -> str:
        """The ref of the branch."""
        return f"{SESSIONS}{self.session}/{self.branch}"

    def tracking_ref(self, remote: str) -> str:
        """Returns the ref that keeps what a remote had of it when it was last seen."""
        return f"{REMOTES}{encode(remote)}/{self.session}/{self.branch}"

    def encrypted_ref(self, remote: str) -> str:
        """Returns the ref of the encrypted commit that stands for it on a remote."""
        return f"{ENCRYPTED}{encode(remote)}/{self.session}/{self.branch}"


# What a push or pull carries: a branch, or the ledger of a session's steps.
RefKey = BranchKey | LedgerKey


class LogName(NamedTuple):
    """One log of one source, for instance `("conversation", "main")`."""

    log: str
    source: str = "main"

    @property
    def path(self) -> bytes:
        """The directory of the source below `.gitcp/log`."""
        return f"{self.log}/{encode(self.source)}".encode()


DECISIONS = LogName("decisions")
# Reserved: no version wrote it, as ledgers took its place; checked and kept all the same.
STEPS = LogName("steps")
REWRITES = LogName("rewrites")


def branch_ref(session: str, branch: str) -> str:
    """Returns the ref of a branch."""
    return BranchKey.of(session, branch).ref


def session_prefix(session: str) -> str:
    """Returns what the refs of a session's branches start with."""
    return f"{SESSIONS}{encode(session)}/"


def ledger_ref(session: str) -> str:
    """Returns the ref of a session's effects ledger."""
    return LedgerKey.of(session).ref


def branch_key(ref: str) -> BranchKey | None:
    """Returns the key of a branch's ref, or None if it is not a branch's."""
    parts = ref.removeprefix(SESSIONS).split("/")
    if len(parts) != _TWO or not all(map(_COMPONENT.fullmatch, parts)):
        return None
    return BranchKey(*parts)


def ledger_key(ref: str) -> LedgerKey | None:
    """Returns the key of a ledger's ref, or None if it is not a ledger's."""
    component = ref.removeprefix(EFFECTS)
    same = component == ref or not _COMPONENT.fullmatch(component)
    return None if same else LedgerKey(component)


def ref_key(ref: str) -> RefKey | None:
    """Returns the key of a branch's or a ledger's ref, or None for any other ref."""
    branch = branch_key(ref) if ref.startswith(SESSIONS) else None
    return branch or ledger_key(ref)


def is_own(ref: str) -> bool:
    """Whether a ref is a branch's or a ledger's of this repository."""
    return ref_key(ref) is not None


def is_oid(text: str | None) -> bool:
    """Whether a text is a whole object id."""
    return text is not None and _OID.fullmatch(text) is not None


def prefixes_of(ledgers: Collection[LedgerKey], named: int | None = None) -> list[str]:
    """Returns the prefixes of the refs of some sessions; of all where there are many.

    Many are more than `named`, if that is given.

    There may be thousands of others, and nothing stands on them.
    """
    if not 0 < len(ledgers) <= (_NAMED if named is None else named):
        return [SESSIONS, EFFECTS]
    sessions = [f"{SESSIONS}{key.session}/" for key in sorted(ledgers)]
    return sessions + [key.ref for key in sorted(ledgers)]


def ledger_log(session: str) -> str:
    """Returns the name of the redo log of a session's ledger.

    No session's component has a dot: it is not the log of a thread.
    """
    return f"fx.{encode(session)}"


def segment_path(number: int) -> bytes:
    """Returns the path of a segment below its source's directory."""
    high, low = divmod(number, SEGMENTS_PER_DIRECTORY)
    return f"{high:04x}/{low:02x}.jsonl".encode()
