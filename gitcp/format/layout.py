"""Ref names, and paths inside a checkpoint's tree (docs/format.md, 2 and 4)."""

import re
from typing import NamedTuple

from gitcp.names import encode

FORMAT = 1
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
META = b"meta.json"

# Threads of LangGraph (docs/format.md, 15).
GRAPH = "graph"
EVENT = b"graph.json"
WRITES = b"graph-writes"

SEGMENTS_PER_DIRECTORY = 256

_COMPONENT = re.compile(r"[a-z0-9_%][a-z0-9_%-]{0,199}")
_OID = re.compile(r"[0-9a-f]{40}")
_TWO = 2

# The encoded session and branch of a ref.
Key = tuple[str, str]


class LogName(NamedTuple):
    """One log of one source, for instance `("conversation", "main")`."""

    log: str
    source: str = "main"

    @property
    def path(self) -> bytes:
        """The directory of the source below `.gitcp/log`."""
        return f"{self.log}/{encode(self.source)}".encode()


DECISIONS = LogName("decisions")
STEPS = LogName("steps")
REWRITES = LogName("rewrites")


def branch_ref(session: str, branch: str) -> str:
    """Returns the ref of a branch."""
    return f"{SESSIONS}{encode(session)}/{encode(branch)}"


def session_prefix(session: str) -> str:
    """Returns what the refs of a session's branches start with."""
    return f"{SESSIONS}{encode(session)}/"


def ledger_ref(session: str) -> str:
    """Returns the ref of a session's effects ledger."""
    return f"{EFFECTS}{encode(session)}"


def branch_key(ref: str) -> Key | None:
    """Returns the encoded session and branch of a ref, or None if it is not a branch's."""
    parts = ref.removeprefix(SESSIONS).split("/")
    if len(parts) != _TWO or not all(map(_COMPONENT.fullmatch, parts)):
        return None
    return parts[0], parts[1]


def ledger_key(ref: str) -> str | None:
    """Returns the encoded session of a ledger's ref, or None if it is not a ledger's."""
    component = ref.removeprefix(EFFECTS)
    same = component == ref or not _COMPONENT.fullmatch(component)
    return None if same else component


def is_own(ref: str) -> bool:
    """Whether a ref is a branch's or a ledger's of this repository."""
    branch = ref.startswith(SESSIONS) and branch_key(ref) is not None
    return branch or ledger_key(ref) is not None


def is_oid(text: str | None) -> bool:
    """Whether a text is a whole object id."""
    return text is not None and _OID.fullmatch(text) is not None


def ledger_log(session: str) -> str:
    """Returns the name of the redo log of a session's ledger.

    No session's component has a dot: it is not the log of a thread.
    """
    return f"fx.{encode(session)}"


def segment_path(number: int) -> bytes:
    """Returns the path of a segment below its source's directory."""
    high, low = divmod(number, SEGMENTS_PER_DIRECTORY)
    return f"{high:04x}/{low:02x}.jsonl".encode()
