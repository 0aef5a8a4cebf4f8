"""Installs git's hooks for `gitcp install`."""

from contextlib import suppress

from gitcp.clients.client import ClientPlaces
from gitcp.errors import GitcpError, NotARepositoryError, UsageError
from gitcp.git.discover import discover
from gitcp.git.repository import Repository
from gitcp.git.versions import git_version
from gitcp.githooks import negotiation, scripts
from gitcp.project.installers import Done


def install(what: str, places: ClientPlaces, scope: str | None) -> Done:
    """Adds gitcp to the hooks of the repository; idempotent.

    Raises:
        UsageError: a scope was given; hooks belong to one clone.
        UnsupportedRepositoryError: the hooks lie where gitcp must not change them.
    """
    repository = _repository(places, scope)
    from gitcp.githooks import events  # noqa: PLC0415  `status` only asks what is installed

    report = events.install(repository)
    notes: tuple[str, ...] = ()
    if report.original is not None:
        note = (
            f"the hooks in {report.original} still work: git now uses"
            f" {report.directory}, which calls them"
        )
        notes = (note,)
    restricted: list[str] = []
    if git_version(repository.common_dir)[0] >= negotiation.SINCE:
        restricted = negotiation.restrict(repository)
    if restricted:
        note = (
            f"`git fetch` from {', '.join(restricted)} offers branches,"
            " but no checkpoints (remote.NAME.negotiationRestrict); uninstall"
            " removes this"
        )
        notes = (*notes, note)
    changed = bool(report.changed or restricted)
    return Done(what, None, str(report.directory), changed=changed, notes=notes)


def uninstall(what: str, places: ClientPlaces, scope: str | None) -> list[Done]:
    """Removes gitcp from the repository's hooks, which are then as they were before."""
    repository = _repository(places, scope)
    from gitcp.githooks import events  # noqa: PLC0415  as above

    report = events.uninstall(repository)
    released = negotiation.release(repository)
    if report is None:
        return [Done(what, None, str(repository.common_dir), changed=bool(released))]
    return [Done(what, None, str(report.directory), changed=True)]


def installed(what: str, places: ClientPlaces, repository: Repository) -> list[Done]:
    """Returns where the hooks are installed, and the problems that stop them."""
    if places.top is None:
        return []
    with suppress(GitcpError):
        state = scripts.found(repository)
        if state is not None:
            notes = tuple(scripts.problems(repository))
            return [Done(what, None, state.directory, changed=False, notes=notes)]
    return []


def _repository(places: ClientPlaces, scope: str | None) -> Repository:
    if scope is not None:
        raise UsageError(
            "git hooks belong to this clone and take no --scope",
            hint="gitcp install git-hooks",
        )
    repository = None if places.top is None else discover(places.top)
    if repository is None or repository.private:
        raise NotARepositoryError(
            "git hooks need a git repository, and this is not one",
            hint="run `git init` there first, or go to your project",
        )
    return repository
