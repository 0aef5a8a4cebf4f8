"""Renders the page of a session again whenever the session has changed, for `Live`."""

import hashlib
import time
from typing import NamedTuple

from gitcp.checkpoints.numbered import with_numbers
from gitcp.git.read_lock import reading
from gitcp.project.workspace import Workspace, open_workspace
from gitcp.view.chosen import Chosen, choose
from gitcp.view.document import Page
from gitcp.view.live import Source
from gitcp.view.rows import Wanted, page_of


class Served(NamedTuple):
    """A session, and the content to serve of it."""

    chosen: Chosen
    source: Source


def serve(
    directory: str, selector: str | None, wanted: Wanted, *, bare: bool
) -> Served:
    """Returns the content that `Live` serves for the session that `[SEL|SESSION]` names.

    Each rendering opens the repository by itself: its objects stay until it is done, and a
    prune need not wait for the server.

    Raises:
        NotFoundError, AmbiguousError, UsageError: see `choose`.
    """

    def opened() -> Workspace:
        workspace = open_workspace(directory, bare=bare)
        with_numbers(workspace)
        return workspace

    watched = opened()
    with reading(watched.repository):
        chosen = choose(watched, selector)

    def version() -> str:
        digest = hashlib.sha256()
        for key, oid in sorted(watched.store.refs_of(chosen.session).items()):
            digest.update(f"{key.session}/{key.branch} {oid}\n".encode())
        return digest.hexdigest()

    def page() -> Page:
        workspace = opened()
        with reading(workspace.repository):
            return page_of(workspace, chosen, wanted, now=time.time)

    return Served(chosen, Source(version, page))
