"""Where things lie: ref names and paths inside the tree (docs/format.md, 2 and 4)."""

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


def ledger_log(session: str) -> str:
    """Returns the name of the redo log of a session's ledger.

    No session's component has a dot: it is not the log of a thread.
    """
    return f"fx.{encode(session)}"


def segment_path(number: int) -> bytes:
    """Returns the path of a segment below its source's directory."""
    high, low = divmod(number, SEGMENTS_PER_DIRECTORY)
    return f"{high:04x}/{low:02x}.jsonl".encode()
