"""Builds the rows of the picker: the present state, conversations, their forks, and turns."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple

from gitcp import Checkpoint
from gitcp.checkpoints import history, scopes, tested
from gitcp.checkpoints.history import Filters, Listed, Lister
from gitcp.checkpoints.numbered import with_numbers
from gitcp.checkpoints.turns import Row, rows
from gitcp.cli.emit import one_line
from gitcp.cli.render import title_of
from gitcp.errors import CorruptError, GitcpError, TransferError
from gitcp.project.workspace import Workspace

# How many rows to read before checking for more urgent work.
_STEP = 8
# More rows than any screen has: the rest is read while these are drawn.
FIRST = 200

NOW, HEAD, TURN = "now", "head", "turn"


class Name(NamedTuple):
    """The name of a row, which stays while the picker is open, even if the row grows."""

    kind: str
    ident: str = ""
    branch: tuple[str, str] | None = None
    by_hand: bool = False


class Item:
    """One row as shown; `listed` is read when the row comes into view.

    `tested` says whether the tests of the turn passed, None if that is not known. `by_hand`
    are changes by hand before a turn, which form a row of their own below it. A row that is
    `gone` cannot be read.
    """

    __slots__ = ("about", "by_hand", "depth", "gone", "listed", "name", "row", "tested")

    def __init__(self, name: Name, row: Row | None = None, depth: int = 0) -> None:
        self.name = name
        self.row = row
        self.depth = depth
        self.about = ""
        self.listed: Listed | None = None
        self.by_hand: Listed | None = None
        self.gone = False
        self.tested: bool | None = None

    @property
    def selectable(self) -> bool:
        """Whether the row stands for a state, and is not a header."""
        return self.name.kind != HEAD


class Read(NamedTuple):
    """The content read of a row: empty if it is gone, two rows if changes by hand precede it."""

    name: Name
    listed: tuple[Listed, ...]
    about: str
    commit: str
    tested: bool | None = None


class Named(NamedTuple):
    """A row with its name."""

    name: Name
    row: Row


def _named(found: scopes.Found) -> Iterator[Named]:
    """Yields rows, named by their first checkpoint, which later checkpoints do not change."""
    for row in rows(found.entries):
        first = row.entries[-1]
        # Foreign checkpoints may have the same id twice.
        yield Named(Name(TURN, first.id, first.key), row)


def selector(item: Item) -> str | None:
    """Returns the selector of a row's checkpoint; None for the present state."""
    if item.row is None:
        return None
    last = item.row.last
    return str(last.number) if last.number else last.id


def first_rows(workspace: Workspace) -> Iterator[tuple[Named, ...]]:
    """Yields the newest rows of a work tree's timeline; reads no checkpoint."""
    yield tuple(islice(_named(_found(workspace)), FIRST))


def all_rows(workspace: Workspace) -> Iterator[tuple[Named, ...]]:
    """Yields every row of a work tree's timeline, newest first."""
    yield tuple(_named(_found(workspace)))


def _found(workspace: Workspace) -> scopes.Found:
    """Returns the rows of a work tree's timeline; for a bare store, those of all branches."""
    with_numbers(workspace)
    scope = scopes.Scope(everything=workspace.bare)
    return scopes.find(workspace, scope, [])


class Items:
    """The rows as shown; the content of a row is cached as long as the row is the same."""

    def __init__(self) -> None:
        self._known: dict[Name, Item] = {}
        self._now = Item(Name(NOW))

    def arranged(self, found: Sequence[Named], *, tree: bool) -> list[Item]:
        """Returns rows under headers, by conversation and fork; or all by time."""
        if not tree:
            return [self._now, *(self._item(each, 0) for each in found)]
        items = [self._now]
        sessions: dict[str, dict[str, list[Named]]] = {}
        for each in found:
            session, branch = each.row.entries[0].key
            sessions.setdefault(session, {}).setdefault(branch, []).append(each)
        for session, branches in sessions.items():
            newest = next(iter(branches.values()))[0].row
            items.append(self._item(Named(Name(HEAD, session), newest), 0))
            several = len(branches) > 1
            for branch, lines in branches.items():
                if several:
                    where = Name(HEAD, session, lines[0].row.last.key)
                    head = self._item(Named(where, lines[0].row), 1)
                    what = "" if branch == "main" else "fork "
                    head.about = f"{what}{one_line(branch, 40)}"
                    items.append(head)
                depth = 1 if several else 0
                items += [self._item(each, depth) for each in lines]
        return items

    def _item(self, named: Named, depth: int) -> Item:
        name, row = named
        item = self._known.get(name)
        if item is None:
            item = self._known[name] = Item(name, row)
        elif item.row is None or item.row.last.commit != row.last.commit:
            item.row = row
            item.listed = item.by_hand = item.tested = None
            item.gone = False
        item.depth = depth
        return item


def fill(item: Item, read: Read) -> None:
    """Takes the content read of a row, unless the row has grown since."""
    if item.row is None or item.row.last.commit != read.commit:
        return
    item.about = item.about or read.about
    item.listed = read.listed[0] if read.listed else None
    item.gone = not read.listed
    item.tested = read.tested
    if len(read.listed) > 1 and item.name.kind != HEAD:
        item.by_hand = read.listed[1]


def with_hand(items: Iterable[Item]) -> list[Item]:
    """Returns rows with those of changes by hand below them."""
    whole: list[Item] = []
    for item in items:
        if item.name.by_hand:
            continue
        whole.append(item)
        if item.by_hand is not None:
            name = item.name._replace(by_hand=True)
            made = Item(name, item.by_hand.row, item.depth)
            made.listed = item.by_hand
            whole.append(made)
    return whole


def lister(workspace: Workspace) -> Lister:
    """Returns the reader of rows as `gitcp log` lists them."""
    return Lister(
        workspace,
        scopes.Found([], reached=workspace.bare),
        Filters(),
        [],
        full=False,
    )


def read_rows(
    workspace: Workspace, wanted: Iterable[Item], reads: Lister | None = None
) -> Iterator[list[Read]]:
    """Yields the content of rows, a few at a time.

    Raises:
        FormatTooNewError: a newer gitcp wrote the newest row.
    """
    reads = reads or lister(workspace)
    done: list[Read] = []
    for item in wanted:
        row = item.row
        assert row is not None
        listed = tuple(reads.of(row))
        about, came = "", None
        if item.name.kind == HEAD and listed:
            about = about_session(workspace, listed[0].checkpoint)
        elif listed:
            with suppress(CorruptError, TransferError):
                came = tested.of_turn(workspace.store, row, listed[0].checkpoint)
        done.append(Read(item.name, listed, about, row.last.commit, came))
        if len(done) == _STEP:
            yield done
            done = []
    if done:
        yield done


def about_session(workspace: Workspace, checkpoint: Checkpoint) -> str:
    """Returns the client and the first prompt, as in the headers of `gitcp log`."""
    held = checkpoint.manifest.conversation
    if held is None or held.agent_session is None:
        return one_line(checkpoint.session)
    about = history.first_prompt(workspace.store, checkpoint)
    asked = f' · "{one_line(about)}"' if about else ""
    return f"{title_of(held.kind)}{asked}"


def state_of(workspace: Workspace) -> tuple[object, ...]:
    """Returns a value that changes with each save, label or prune here."""
    store = workspace.store
    try:
        refs = tuple(sorted(store.refs().items()))
        return (refs, workspace.is_interrupted())
    except CorruptError as exc:
        return (exc.message,)


def refusal(exc: GitcpError) -> str:
    """Returns an error on one line."""
    return f"{exc.message}; {exc.hint}" if exc.hint else exc.message
