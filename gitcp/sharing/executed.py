"""Files that tools execute or obey by themselves, and links that lead outside.

From a stranger they come only when asked for: opening a project must not be enough to
run a stranger's commands.
"""

from gitcp.errors import CorruptError
from gitcp.format import safety
from gitcp.format.tree import LINK, Entry
from gitcp.git.objects import Objects
from gitcp.worktree.plan import Withheld

EXECUTED = "tools execute it by themselves"
OUTSIDE = "a link that leads outside the project"

# Everything below these: agents, editors, hook managers, containers, CI.
_DIRECTORIES = frozenset(
    {
        ".aider",
        ".circleci",
        ".claude",
        ".clinerules",
        ".codex",
        ".continue",
        ".cursor",
        ".devcontainer",
        ".direnv",
        ".gemini",
        ".githooks",
        ".github",
        ".gitlab",
        ".husky",
        ".idea",
        ".opencode",
        ".vscode",
        ".windsurf",
        ".zed",
    }
)
_NAMES = frozenset(
    {
        ".aider.conf.yml",
        ".clinerules",
        ".cursorrules",
        ".dir-locals.el",
        ".envrc",
        ".exrc",
        ".gitattributes",
        ".gitconfig",
        ".gitlab-ci.yml",
        ".gitmodules",
        ".gitpod.yml",
        ".lefthook.yml",
        ".mcp.json",
        ".mise.toml",
        ".npmrc",
        ".nvim.lua",
        ".nvimrc",
        ".pnpmfile.cjs",
        ".pre-commit-config.yaml",
        ".vimrc",
        ".windsurfrules",
        ".yarnrc",
        ".yarnrc.yml",
        "agents.md",
        "agents.override.md",
        "claude.local.md",
        "claude.md",
        "conftest.py",
        "gemini.md",
        "gnumakefile",
        "justfile",
        "lefthook.yml",
        "makefile",
        "mise.toml",
        "opencode.json",
        "opencode.jsonc",
        "package.json",
        "sitecustomize.py",
        "usercustomize.py",
    }
)
_ENDINGS = (".pth", ".code-workspace")


def executed(path: bytes) -> bool:
    """Whether tools execute or obey a file at this path by themselves."""
    # Where names fold case, any spelling is the same file.
    *parents, name = path.decode("utf-8", "surrogateescape").casefold().split("/")
    return (
        name in _NAMES
        or name.endswith(_ENDINGS)
        or not _DIRECTORIES.isdisjoint((*parents, name))
    )


def leads_outside(path: bytes, target: bytes) -> bool:
    """Whether a link at this path could lead out of the project, or into `.git`.

    `..` is followed only at the start of a target: behind a name it depends on what
    that name is.
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


def withheld_from(objects: Objects) -> Withheld:
    """Returns what says why a change of a path is left out, or None if it is not."""

    def why(path: bytes, old: Entry | None, new: Entry | None) -> str | None:
        del old
        if executed(path):
            return EXECUTED
        if new is None or new.mode != LINK:
            return None
        try:
            _, size = objects.header(new.oid)
            if size > safety.PATH_LIMIT or leads_outside(path, objects.blob(new.oid)):
                return OUTSIDE
        except CorruptError:
            # That it is damaged is said where it would be read.
            return None
        return None

    return why
