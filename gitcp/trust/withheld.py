"""Decides which changes of a checkpoint made elsewhere a restore withholds."""

from typing import NamedTuple

from gitcp.errors import CorruptError
from gitcp.format import safety
from gitcp.format import tree as trees
from gitcp.format.tree import EXECUTABLE, LINK, Entry
from gitcp.git.objects import Objects
from gitcp.trust.autoexec import executed, has_dot
from gitcp.trust.configured import Configured
from gitcp.trust.obeyed import Obeyed
from gitcp.worktree.plan import Withheld

EXECUTED = "tools execute it by themselves"
CONFIGURED = "git's configuration names it"
OBEYED = "a link or hook that tools obey leads to it"
OUTSIDE = "a link that leads outside the project"
DOT = "a dot path that differs in HEAD"
DOT_LINK = "a dot link leads to it"
BECOMES_EXECUTABLE = "it would become executable"
# Only trust allows these changes; the others are allowed if the user says so when asked.
NEVER_ASKED = frozenset({EXECUTED, CONFIGURED, OBEYED, OUTSIDE})
ASKED = frozenset({DOT, DOT_LINK, BECOMES_EXECUTABLE})
HELD = NEVER_ASKED | ASKED


class Bounds(NamedTuple):
    """The user's own state, which decides what a checkpoint made elsewhere may bring.

    `head` is the tree of HEAD. `configured` are paths that git's configuration names, and
    `obeyed` those that links and hooks lead to.
    """

    head: bytes | None = None
    configured: Configured = Configured()
    obeyed: Obeyed = Obeyed()


def leads_outside(path: bytes, target: bytes) -> bool:
    """Whether a link at this path could lead out of the project, or into `.git`.

    `..` is resolved only at the start of a target: after a name, its meaning depends on
    whether that name is a link.
    """
    if target.startswith(b"/"):
        return True
    depth = path.count(b"/")
    climbing = True
    for part in target.split(b"/"):
        if part in {b"", b"."}:
            continue
        if part == b"..":
            if not climbing or depth == 0:
                return True
            depth -= 1
        else:
            climbing = False
            if safety.name_problem(part) is not None:
                return True
    return False


def withheld_from(
    objects: Objects, bounds: Bounds, brought: frozenset[bytes] = frozenset()
) -> Withheld:
    """Returns a function that says why a change of a path is withheld; None if it is not.

    Content that HEAD has at a path is the user's own already. A file that tools obey is not
    deleted either, even if it is not committed. `brought` are paths that the user was shown
    and has allowed: the rules in `ASKED` let them pass.
    """

    def why(path: bytes, old: Entry | None, new: Entry | None) -> str | None:
        own = trees.lookup(bounds.head, path, objects.files)
        if new is not None and new == own:
            return None
        if executed(path):
            return EXECUTED
        if bounds.configured.names(path):
            return CONFIGURED
        if bounds.obeyed.executed.names(path):
            return OBEYED
        if new is not None and new.mode == LINK and _leads_out(objects, path, new):
            return OUTSIDE
        if new == own or path in brought:
            return None
        if has_dot(path):
            return DOT
        if bounds.obeyed.dot.names(path):
            return DOT_LINK
        if _executable(new) and not _executable(old) and not _executable(own):
            return BECOMES_EXECUTABLE
        return None

    return why


def _executable(entry: Entry | None) -> bool:
    return entry is not None and entry.mode == EXECUTABLE


def _leads_out(objects: Objects, path: bytes, link: Entry) -> bool:
    try:
        _, size = objects.header(link.oid)
        return size > safety.PATH_LIMIT or leads_outside(path, objects.blob(link.oid))
    except CorruptError:
        # A command that reads the link reports the damage.
        return False
