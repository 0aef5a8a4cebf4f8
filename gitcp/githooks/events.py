"""Handles each of git's hooks, and installs them."""

import os
import re
import secrets
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from gitcp import durable
from gitcp.checkpoints.save import save
from gitcp.errors import BusyError, NotFoundError
from gitcp.format.log import Rewrite
from gitcp.format.oid import PATTERN
from gitcp.git.repository import Repository
from gitcp.githooks import script_text, scripts
from gitcp.githooks.scripts import HooksReport
from gitcp.project import pending_rewrites
from gitcp.project.workspace import Workspace
from gitcp.store.draft import Draft

_PATIENCE = 1.0
_TAIL = 4096
# The same name as in `agent_sessions`: importing that takes longer than the check.
AGENTS = "agents"
_SQUASHED = "squash-msg"
_NEXT = "next-id"
_OID = re.compile(rf"^commit ({PATTERN})$".encode(), re.MULTILINE)
_NAMED = re.compile(rb"^Gitcp-Checkpoint: ([0-9a-f]{12})$", re.MULTILINE)


# --- installation ------------------------------------------------------------------------


def install(repository: Repository) -> HooksReport:
    """Adds gitcp to the repository's hooks.

    Raises:
        UnsupportedRepositoryError: gitcp may not write where git looks for hooks.
        StorageError: the disk refused.
    """
    return scripts.install(repository, runner())


def uninstall(repository: Repository) -> HooksReport | None:
    """Removes gitcp from the repository's hooks; None if it was not in them."""
    return scripts.uninstall(repository)


def mend(repository: Repository) -> tuple[str, ...]:
    """Adds gitcp again to hooks that a framework has overwritten, if hooks are installed."""
    return scripts.mend(repository, runner())


def runner() -> bytes:
    """Returns the script that hooks call, for this installation of gitcp."""
    package = Path(__file__).parents[1]
    # In a wheel the directory lies inside the package, in a checkout beside it.
    for directory in (package / "_hooks", package.parent / "hooks"):
        with suppress(FileNotFoundError):
            return script_text.runner(
                (directory / script_text.RUNNER).read_bytes(), program()
            )
    raise NotFoundError(
        f"this installation of gitcp has no script {script_text.RUNNER}",
        hint="install gitcp again",
    )


def program() -> list[str]:
    """Returns the command that starts this gitcp from any directory, without a PATH."""
    for candidate in (
        str(Path(sys.executable).with_name("gitcp")),
        shutil.which("gitcp"),
    ):
        if candidate and os.access(candidate, os.X_OK):
            return [os.path.abspath(candidate)]
    return [sys.executable, "-P", "-m", "gitcp"]


# --- what each hook does -----------------------------------------------------------------


def patient(workspace: Workspace) -> Workspace:
    """Returns a workspace that waits less for locks, because git waits for the hook."""
    return workspace.with_lock_timeout(_PATIENCE)


def post_commit(workspace: Workspace, *, rewrite_follows: bool = True) -> str:
    """Makes a checkpoint at the new commit."""
    repository = workspace.repository
    head, _ = repository.head()
    if head is None:
        return "there is no commit"
    if repository.operation() == "rebase":
        return "a rebase is under way: one checkpoint follows at its end"
    pending_rewrites.add(repository, _squashed(workspace, head))
    if rewrite_follows and _amended(repository, head):
        return "an amended commit: post-rewrite comes next"
    return _checkpoint(workspace, "commit", head)


def post_rewrite(workspace: Workspace, kind: str, entries: Iterable[Rewrite]) -> str:
    """Notes rewritten commits and their replacements, and makes a checkpoint with them."""
    repository = workspace.repository
    pending_rewrites.add(repository, entries)
    head, _ = repository.head()
    if head is None:
        return "there is no commit"
    if kind == "amend":
        if repository.operation() == "rebase":
            return "a rebase is under way: one checkpoint follows at its end"
        return _checkpoint(workspace, "commit", head)
    return _checkpoint(workspace, "rebase", head)


def post_merge(workspace: Workspace, *, squash: bool) -> str:
    """Makes a checkpoint at a merge; after a fast-forward only if files changed."""
    head, _ = workspace.repository.head()
    if squash or head is None:
        return "nothing was committed"
    commit = workspace.repository.objects.commit(bytes.fromhex(head))
    return _checkpoint(workspace, "merge", head, allow_empty=len(commit.parents) > 1)


def post_checkout(workspace: Workspace, before: str, after: str) -> str:
    """Makes a checkpoint of the files from git, before an agent continues from there."""
    if not _has_agents(workspace):
        return "no agent was ever at work here"
    from gitcp.agents.active_agent import is_at_work  # noqa: PLC0415  as below

    if not is_at_work(workspace):
        return "no agent is at work"
    if before == after or workspace.repository.operation() in {"rebase", "bisect"}:
        return "HEAD is not to stay there"
    return _checkpoint(workspace, "checkout", after, allow_empty=False)


def name_checkpoint(workspace: Workspace, message: Path) -> str:
    """Writes a checkpoint's id into a commit's message, before either of them exists.

    The checkpoint that post-commit makes gets that id. A message that already names a
    checkpoint stays as it is, and so does an empty message, because git would take the
    trailer for the text.
    """
    if not workspace.settings.commit_trailer:
        return "gitcp.commitTrailer is off"
    raw = message.read_bytes()
    if _NAMED.search(raw):
        return "the message names a checkpoint"
    repository = workspace.repository
    if not repository.git("stripspace", "--strip-comments", data=_above_cut(raw)):
        return "the message is empty yet"
    ident = secrets.token_hex(6)
    repository.git(
        "interpret-trailers",
        "--in-place",
        "--no-divider",
        "--if-exists=doNothing",
        f"--trailer=Gitcp-Checkpoint: {ident}",
        os.path.abspath(message),
    )
    with durable.storage("noting the id of the next checkpoint"):
        workspace.repository.make_directory(workspace.directory)
        durable.replace(workspace.directory / _NEXT, ident.encode(), sync=False)
    return f"named {ident}"


def rewritten(workspace: Workspace, kind: str, stdin: bytes) -> Sequence[Rewrite]:
    """Returns git's input to post-rewrite; reads git's files if the hook passed no input."""
    if not stdin.strip():
        stdin = _from_files(workspace.repository, kind)
    rewrites = []
    for line in stdin.decode("ascii", "replace").splitlines():
        words = line.split()
        if len(words) >= 2:  # noqa: PLR2004  old and new; git may add more
            rewrites.append(Rewrite(words[0], words[1]))
    return rewrites


def _from_files(repository: Repository, kind: str) -> bytes:
    if kind == "amend":
        last = _last_move(repository)
        return f"{last[0]} {last[1]}\n".encode() if last else b""
    for name in ("rebase-merge/rewritten-list", "rebase-apply/rewritten"):
        with suppress(OSError):
            return (repository.git_dir / name).read_bytes()
    return b""


def _checkpoint(
    workspace: Workspace, trigger: str, head: str, *, allow_empty: bool = True
) -> str:
    if not workspace.settings.auto_checkpoint:
        return "gitcp.autoCheckpoint is off"
    message = workspace.repository.objects.commit(bytes.fromhex(head)).message
    subject = message.decode("utf-8", "replace").strip().partition("\n")[0]
    session = branch = agent = None
    draft = Draft(
        trigger,
        note=subject or None,
        allow_empty=allow_empty,
        id=_awaited(workspace, message),
    )
    if _has_agents(workspace):
        from gitcp.agents.active_agent import live  # noqa: PLC0415  most commits are people's

        at_work = live(workspace, trigger, os.environ)
        session, branch, agent = at_work.session, at_work.branch, at_work.agent
        draft = draft._replace(records=at_work.records)
    try:
        saved = save(
            workspace, draft, session=session, branch=branch, steer=False, agent=agent
        )
    except BusyError as exc:
        return f"no checkpoint: {exc.message}"
    what = "made" if saved.created else "nothing changed since"
    return f"{what} {saved.checkpoint.id}, {trigger} at {head[:12]}"


def _has_agents(workspace: Workspace) -> bool:
    """Whether an agent has ever saved something in this work tree."""
    return (workspace.directory / AGENTS).is_dir()


def _awaited(workspace: Workspace, message: bytes) -> str | None:
    """Returns the id that a commit's message names, if that checkpoint does not exist yet."""
    path = workspace.directory / _NEXT
    try:
        ident = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    named = _NAMED.findall(message)
    if ident.encode() not in named:
        return None
    path.unlink(missing_ok=True)
    return ident


def _squashed(workspace: Workspace, head: str) -> list[Rewrite]:
    """Returns the commits that `git merge --squash` combined into this one."""
    path = workspace.directory / _SQUASHED
    try:
        raw = path.read_bytes()
    except OSError:
        return []
    path.unlink(missing_ok=True)
    return [Rewrite(oid.decode(), head) for oid in _OID.findall(raw)]


def _amended(repository: Repository, head: str) -> bool:
    last = _last_move(repository)
    return last is not None and last[1] == head and last[2].startswith("commit (amend)")


def _last_move(repository: Repository) -> tuple[str, str, str] | None:
    """Returns HEAD's old and new value and the command's name; None without a reflog."""
    if repository.ref_storage != "files":
        from gitcp.git import reflog  # noqa: PLC0415

        last = next(iter(reflog.moves(repository, 1)), None)
        return (last.old, last.new, last.what) if last and last.old else None
    try:
        with (repository.git_dir / "logs" / "HEAD").open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL))
            lines = file.read().splitlines()
    except OSError:
        return None
    if not lines:
        return None
    who, _, what = lines[-1].decode("utf-8", "replace").partition("\t")
    words = who.split()
    return (words[0], words[1], what) if len(words) > 1 else None


def _above_cut(raw: bytes) -> bytes:
    """Returns a message without the diff that `git commit --verbose` adds below it."""
    return re.split(rb"^. -+ >8 -+$", raw, maxsplit=1, flags=re.MULTILINE)[0]
