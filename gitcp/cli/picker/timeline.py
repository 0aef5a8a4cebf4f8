"""The rows of the picker: what is now, conversations and their forks, a row for each turn."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gitcp import Checkpoint
from gitcp.checkpoints import history, scopes
from gitcp.checkpoints.history import Filters, Listed, Lister
from gitcp.checkpoints.numbered import with_numbers
from gitcp.checkpoints.turns import Row, rows
from gitcp.cli.emit import one_line
from gitcp.cli.render import title_of
from gitcp.errors import CorruptError, GitcpError
from gitcp.project.workspace import Workspace

# How many rows are read between two looks for something more urgent.
_STEP = 8

NOW, HEAD, TURN = "now", "head", "turn"


class Name(NamedTuple):
    """What a row is called as long as the picker is open, however it grows."""

    kind: str
    ident: str = ""
    by_hand: bool = False


class Item:
    """One row as it is shown; `listed` is read when it comes into view.

    `by_hand` is what was done before a turn: a row of its own below it. Of one that is
    `gone` nothing can be read.
    """

    __slots__ = ("about", "by_hand", "depth", "gone", "listed", "name", "row")

    def __init__(
        self, name: Name, row: Row | None = None, depth: int = 0, about: str = ""
    ) -> None:
        self.name = name
        self.row = row
        self.depth = depth
        self.about = about
        self.listed: Listed | None = None
        self.by_hand: Listed | None = None
        self.gone = False

    @property
    def selectable(self) -> bool:
        """Whether it stands for a state, and is no header."""
        return self.name.kind != HEAD


class Read(NamedTuple):
    """What was read of a row: nothing where it is gone, two rows with what was by hand."""

    name: Name
    listed: tuple[Listed, ...]
    about: str


def name_of(row: Row) -> Name:
    """Returns a row's name: its first checkpoint stays, whatever comes after it."""
    return Name(TURN, row.first.id)


def selector(item: Item) -> str | None:
    """Returns what selects the checkpoint of a row; None for what is now."""
    if item.row is None:
        return None
    last = item.row.last
    return str(last.number) if last.number else last.id


def found_rows(workspace: Workspace) -> tuple[Row, ...]:
    """Returns every row of a work tree's timeline, newest first; reads no checkpoint.

    Of a bare store those of all its branches.
    """
    with_numbers(workspace)
    scope = scopes.Scope(everything=workspace.bare)
    return tuple(rows(scopes.find(workspace, scope, []).entries))


def arranged(found: Sequence[Row], *, tree: bool) -> list[Item]:
    """Returns the rows under headers, by conversation and fork; or all by time."""
    items = [Item(Name(NOW))]
    if not tree:
        return items + [Item(name_of(row), row) for row in found]
    sessions: dict[str, dict[str, list[Row]]] = {}
    for row in found:
        branches = sessions.setdefault(row.last.key.session, {})
        branches.setdefault(row.last.key.branch, []).append(row)
    for session, branches in sessions.items():
        first = next(iter(branches.values()))[0]
        items.append(Item(Name(HEAD, session), first))
        several = len(branches) > 1
        for branch, lines in branches.items():
            if several:
                about = "" if branch == "main" else "fork "
                head = Item(Name(HEAD, f"{session}/{branch}"), lines[0], 1)
                head.about = f"{about}{one_line(branch, 40)}"
                items.append(head)
            depth = 1 if several else 0
            items += [Item(name_of(row), row, depth) for row in lines]
    return items


def with_hand(items: Iterable[Item]) -> list[Item]:
    """Returns rows with those below them of what was done by hand."""
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
    """Returns what reads rows, as `gitcp log` lists them."""
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
    """Yields what rows are, a few at a time.

    Raises:
        FormatTooNewError: a newer gitcp wrote the newest of them.
    """
    reads = reads or lister(workspace)
    done: list[Read] = []
    for item in wanted:
        assert item.row is not None
        listed = tuple(reads.of(item.row))
        about = ""
        if item.name.kind == HEAD and listed:
            about = about_session(workspace, listed[0].checkpoint)
        done.append(Read(item.name, listed, about))
        if len(done) == _STEP:
            yield done
            done = []
    if done:
        yield done


def about_session(workspace: Workspace, checkpoint: Checkpoint) -> str:
    """Returns who talked and what was asked first, as the headers of `gitcp log` do."""
    held = checkpoint.manifest.conversation
    if held is None or held.agent_session is None:
        return one_line(checkpoint.session)
    about = history.first_prompt(workspace.store, checkpoint)
    asked = f' · "{one_line(about)}"' if about else ""
    return f"{title_of(held.kind)}{asked}"


def newest_of(workspace: Workspace, found: Sequence[Row]) -> Checkpoint | None:
    """Returns the newest checkpoint that can be read, of the first rows."""
    reads = lister(workspace)
    for row in found[:_STEP]:
        for listed in reads.of(row):
            return listed.checkpoint
    return None


def state_of(workspace: Workspace) -> tuple[object, ...]:
    """Returns what differs once something was saved, labelled or pruned here."""
    store = workspace.store
    try:
        refs = tuple(sorted(store.refs().items()))
        return (refs, workspace.is_interrupted())
    except CorruptError as exc:
        return (exc.message,)


def refusal(exc: GitcpError) -> str:
    """Returns an error on one line."""
    return f"{exc.message}; {exc.hint}" if exc.hint else exc.message
