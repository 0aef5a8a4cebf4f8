"""Finds the repository around a directory, and refuses those that gitcp cannot serve."""

import os
from contextlib import suppress
from pathlib import Path

from gitcp.errors import (
    GitFailedError,
    NoGitHereError,
    NotARepositoryError,
    UnsupportedRepositoryError,
)
from gitcp.format.oid import FORMS, SHA1, ObjectFormat
from gitcp.git import area, process, questions
from gitcp.git.gitfile import git_dir_of
from gitcp.git.migrating import (
    LEADS_NOWHERE,
    Patience,
    broken_off,
    is_unseen,
    migration,
)
from gitcp.git.ref_storage import TABLES, RefsMovedError, busy
from gitcp.git.refs import FileRefs
from gitcp.git.repository import Repository
from gitcp.git.served import check_place, check_supported

# The caller has named a git directory on purpose.
_NAMED = ("-c", "safe.bareRepository=all")
# Git's message if no directory above has a `.git`, not even a broken one.
_NOWHERE = "not a git repository (or any"
# Git's message about a format that it does not know, or was built without.
_UNKNOWN_FORM = (
    "extension",
    "repository version",
    "repo version",
    "compatibility hash",
)
# What git writes into the configuration of each repository.
_EVERYWHERE = "core.repositoryformatversion"
# The questions to git about every repository; each answer is a line.
_FIELDS = 5


def discover(directory: str | os.PathLike[str], *, worktree: bool = True) -> Repository:
    """Returns the repository around a directory.

    It ignores `GIT_DIR` and similar variables: those of a hook would lead to a wrong
    repository as often as to the right one. With `worktree=False` a bare repository is
    accepted.

    Raises:
        NotARepositoryError: the directory is in no repository.
        UnsupportedRepositoryError: gitcp cannot keep its promises in it.
    """
    where = Path(directory)
    if not where.is_dir():
        raise NotARepositoryError(
            f"{where} is not a directory",
            hint="name a directory inside a git repository",
        )
    named, (listed, lines, refused, since) = _ask(where, worktree=worktree)
    if refused is not None:
        return _unseen(where, refused, worktree=worktree)
    fields = os.fsdecode(lines).split("\n")[:-1]
    # The way up to the top is told only inside a work tree: empty, "../" or a path.
    up = "" if fields[-1].isalnum() else fields.pop()
    if len(fields) != _FIELDS:
        # The paths contain newlines, so their ends cannot be found.
        raise UnsupportedRepositoryError(
            f"the path {os.path.realpath(where)!a} has a line break in it",
            hint="rename the directory",
        )
    git_dir, common_dir, bare, inside, object_format = fields
    form = FORMS.get(object_format, SHA1)
    places = Path(git_dir), Path(common_dir)
    repository = Repository(*places, form=form, listed=listed, since=since)
    if not named:
        _refuse_implicit(where, repository.git_dir)
    check_supported(repository.common_dir, listed.values, object_format)
    for top in {repository.store_dir, repository.worktree_dir}:
        area.check(top, repository.access)
    if not worktree:
        return repository
    _refuse_without_files(where, git_dir, bare=bare == "true", inside=inside == "true")
    repository.top = Path(os.path.realpath(where / up))
    check_place(repository.top)
    return repository


def _ask(where: Path, *, worktree: bool) -> "tuple[tuple[str, ...], questions.Answers]":
    """Asks git about a repository; again if `git refs migrate` hid it from git.

    Returns the options with which `where` itself was named, and the answers.
    """
    patience = Patience(where)

    def options() -> tuple[str, ...]:
        return () if worktree or not _is_git_dir(where) else _NAMED

    while True:
        named = options()
        answers = questions.ask(where, named)
        listed, _, refused, _ = answers
        if refused is None and _EVERYWHERE not in listed.values:
            # It was hidden only from the git that listed the configuration.
            answers = questions.ask(where, named)
        if refused is None:
            return named, answers
        # A directory that became a git directory meanwhile was not named as one.
        if not (is_unseen(refused) or named != options()) or not patience.lasts():
            return named, answers


def _refuse_without_files(
    where: Path, git_dir: str, *, bare: bool, inside: bool
) -> None:
    """Raises where a directory of a repository is not in its work tree."""
    if bare:
        raise UnsupportedRepositoryError(
            f"{git_dir} is a bare repository: it has no files to save",
            hint="run gitcp in a clone or a worktree of it",
        )
    if not inside:
        raise NotARepositoryError(
            f"{where} is inside the git directory {git_dir}, not in its work tree",
            hint="change to the project's own directory",
        )


def nested_head(top: Path, form: ObjectFormat) -> bytes | None:
    """Returns the HEAD commit of a repository inside a work tree.

    None if it is unborn, or has ids of another form: no tree can name it.
    """
    try:
        git_dir = git_dir_of(top)
        common = git_dir / "commondir"
        common_dir = (
            git_dir / common.read_text().strip() if common.is_file() else git_dir
        )
        if (common_dir / TABLES).is_dir():
            head = _said_by_git(git_dir, top)
        else:
            refs = FileRefs(git_dir, common_dir, form=form)
            head = refs.read(refs.symbolic("HEAD") or "HEAD")
        return bytes.fromhex(head) if head and len(head) == form.digits else None
    except (OSError, ValueError, RecursionError, RefsMovedError):
        return None


def _said_by_git(git_dir: Path, top: Path) -> str | None:
    with suppress(GitFailedError):
        # The submodule was moved without git: `core.worktree` in its configuration still
        # names the old path, and git stops if that folder does not exist.
        env = {"GIT_DIR": str(git_dir), "GIT_WORK_TREE": str(top)}
        said = process.run(
            ["rev-parse", "-q", "--verify", "HEAD"], cwd=git_dir, env=env
        )
        return said.decode().strip()
    return None


def _is_git_dir(where: Path) -> bool:
    """Whether a directory is a git directory, by git's own criteria."""
    return all((where / name).exists() for name in ("HEAD", "objects", "refs"))


def _refuse_implicit(where: Path, git_dir: Path) -> None:
    """Raises if git found a git directory around `where` only because it looks like one.

    git before 2.38 does not know safe.bareRepository.
    """
    real = Path(os.path.realpath(where))
    if real.is_relative_to(os.path.realpath(git_dir)) and ".git" not in git_dir.parts:
        raise _implicit(where)


def _implicit(where: Path) -> UnsupportedRepositoryError:
    return UnsupportedRepositoryError(
        f"{where} is in a bare repository that you did not name; a project may"
        " contain such a repository",
        hint="run gitcp in a clone or a work tree of it",
    )


def _private(where: Path, said: str) -> Repository | None:
    """Returns the private store of a folder in which git found nothing at all."""
    if _NOWHERE not in said:
        return None
    from gitcp.git import private_stores  # noqa: PLC0415  rarely needed

    return private_stores.repository_around(where)


def _unseen(where: Path, said: str, *, worktree: bool) -> Repository:
    """Returns the repository around a directory where git sees none."""
    broken = broken_off(where)
    if broken is not None and migration(broken.parent) is not None:
        raise busy(broken.parent)
    if broken is not None:
        raise UnsupportedRepositoryError(
            f"`git refs migrate` was interrupted in {broken.parent}",
            hint=f"move the content of {broken} to {broken.parent}, and set"
            " extensions.refStorage to the new storage",
        )
    found = _private(where, said) if worktree else None
    if found is None:
        raise _refusal(where, said)
    return found


def _refusal(where: Path, said: str) -> Exception:
    if _NOWHERE in said:
        return NoGitHereError(
            f"{where} is not in a git repository",
            hint="run `git init` there first, or go to your project; in a folder"
            " without git, use `gitcp save --init`",
        )
    if any(words in said for words in LEADS_NOWHERE):
        return NotARepositoryError(
            f"{where} has a .git that leads to no repository",
            hint="`git status` there may show more",
        )
    if "safe.bareRepository" in said:
        if ".git" in Path(os.path.realpath(where)).parts:
            return NotARepositoryError(
                f"{where} is inside the git directory of a project, not in its work tree",
                hint="change to the project's own directory",
            )
        return _implicit(where)
    if "dubious ownership" in said:
        return UnsupportedRepositoryError(
            f"git does not trust the repository at {where}: another user owns it",
            hint=f"if you trust it: {_way_out(said)}",
        )
    if any(words in said for words in _UNKNOWN_FORM):
        return UnsupportedRepositoryError(
            "git here does not know the format of this repository:"
            f" {process.last_words(said)}",
            hint="install a newer git",
        )
    return GitFailedError(
        f"git cannot read the repository at {where}: {said.splitlines()[-1] if said else '?'}",
        hint="`git status` there may show more",
    )


def _way_out(said: str) -> str:
    """Returns the command that git names, with the path as git wants to be told it."""
    named = [line.strip() for line in said.splitlines() if "safe.directory" in line]
    return named[-1] if named else "see safe.directory in `git help config`"
