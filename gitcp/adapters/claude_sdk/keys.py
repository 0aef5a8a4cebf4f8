"""Maps the SDK's keys to names of sessions and sources (docs/how-to/claude-agent-sdk.md).

The session is `claude-sdk@PROJECT_KEY@SESSION_ID`, its one branch `main`; the records
of the main transcript are the log source `main`, those of a subpath the source of that
name. All of it can be read back, whatever text the parts are.
"""

import re
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote

PREFIX = "claude-sdk@"
MAIN = "main"
_MARK = "="
# Lone surrogates are text for Python, and for no other program.
_PERCENT = re.compile("[%\ud800-\udfff]")
# A name with a slash could not be typed at the command line.
_IN_NAME = re.compile("[%/\ud800-\udfff]")
_IN_FIRST = re.compile("[%/@\ud800-\udfff]")


class Key(NamedTuple):
    """One session of the SDK."""

    project: str
    session: str

    @property
    def name(self) -> str:
        """The name of the session here."""
        return f"{project_prefix(self.project)}{_IN_NAME.sub(_escape, self.session)}"


def project_prefix(project: str) -> str:
    """Returns what the names of all sessions of a project start with."""
    return f"{PREFIX}{_IN_FIRST.sub(_escape, project)}@"


def parse(name: str) -> Key | None:
    """Returns the key behind the name of a session; None if it is none of ours."""
    if not name.startswith(PREFIX):
        return None
    project, mark, session = name.removeprefix(PREFIX).partition("@")
    return Key(_plain(project), _plain(session)) if mark else None


def source_of(subpath: str | None) -> str:
    """Returns the log source of a subpath; None and "" stand for the main transcript."""
    if not subpath:
        return MAIN
    name = _PERCENT.sub(_escape, subpath)
    return _MARK + name if name == MAIN or name.startswith(_MARK) else name


def subpath_of(source: str) -> str | None:
    """Returns the subpath behind a log source; None for the main transcript."""
    return None if source == MAIN else _plain(source.removeprefix(_MARK))


def _escape(found: re.Match[str]) -> str:
    return quote_from_bytes(found[0].encode("utf-8", "surrogatepass"), safe="")


def _plain(text: str) -> str:
    return unquote(text, "utf-8", "surrogatepass")
