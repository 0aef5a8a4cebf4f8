"""`gitcp search`: finds words in conversations, decisions and files."""

import datetime
from typing import TYPE_CHECKING, Any

import click

from gitcp.cli import documents
from gitcp.cli.emit import Output, one_line, safe, safe_path
from gitcp.cli.layout import age, fit, width
from gitcp.cli.options import command, left_out, reader
from gitcp.errors import ProgramNotFoundError, UsageError
from gitcp.format.checkpoint import show_path
from gitcp.names import quoted

if TYPE_CHECKING:
    from gitcp.project.workspace import Workspace
    from gitcp.search.hits import Filters, Found, Hit
    from gitcp.search.words import Excerpt, Query

_PLACES = ("prompts", "talk", "tools", "reasons", "notes", "paths", "files")
_HITS = 10


def _place(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> set[str]:
    """Returns the places to search; accepts their singular as well."""
    plural = {name.removesuffix("s"): name for name in _PLACES}
    places = {plural.get(name, name) for name in given}
    for name in sorted(places.difference(_PLACES)):
        raise UsageError(
            f"there is no place {name!a} to search in",
            hint=f"it is one of {', '.join(_PLACES)}",
        )
    return places


@command("search")
@click.argument("words", metavar="WORDS...", nargs=-1, required=True)
@click.option(
    "-n", "--count", "count", type=click.IntRange(min=1), help="Show at most N hits"
)
@click.option(
    "--in",
    "places",
    callback=_place,
    multiple=True,
    metavar="WHERE",
    help=f"Search only {', '.join(_PLACES[:-1])} or {_PLACES[-1]} (repeatable)",
)
@click.option("--since", metavar="TIME", help="Only hits since then")
@click.option("--agent", metavar="NAME", help="Only hits of one agent")
@click.option("--all", "everything", is_flag=True, help="Search the whole repository")
def search_command(
    out: Output,
    words: tuple[str, ...],
    count: int | None,
    places: set[str],
    since: str | None,
    agent: str | None,
    everything: bool,
) -> int:
    """Find words in conversations, reasons, notes, paths and files.

    Finds passages that have all the words, best match first; passages with the words in a
    row rank higher. A phrase in double quotes ('"race in sessions"') must match exactly.
    Case and accents do not matter. WHERE is prompts, talk (the agents' answers), tools
    (calls and their output), reasons, notes (and labels), paths, or files (their content).
    The first search builds an index, which takes a while if there are long conversations;
    later searches add what is new.
    """
    from gitcp.checkpoints.times import when
    from gitcp.search.hits import Filters
    from gitcp.search.words import Query

    query = Query.parse(words)
    from_then = (
        datetime.datetime.fromisoformat(when(since)).timestamp() if since else None
    )
    workspace = reader(out, paged=True)
    found = _search(
        workspace,
        query,
        Filters(
            frozenset(places or _PLACES),
            from_then,
            agent,
            everything or workspace.bare,
            count or _HITS,
        ),
    )
    if out.json:
        out.document(
            {
                "schema": "gitcp.search/1",
                "hits": [_document(hit) for hit in found.hits],
                "unreadable": found.unreadable,
            }
        )
        return left_out(out, found.unreadable)
    for hit in found.hits:
        _show(out, hit)
    if not query.items:
        out.note("the query has no words (letters or digits)")
    elif not found.hits:
        from gitcp.cli.agent_lines import tell_other_names

        where_else = "" if everything else "; --all looks in the whole repository"
        out.note(f"nothing was found here{where_else}")
        tell_other_names(out, agent)
    if found.unkept is not None:
        out.note(f"the index was built for this search only: {found.unkept}")
    return left_out(out, found.unreadable)


def _search(workspace: "Workspace", query: "Query", filters: "Filters") -> "Found":
    try:
        from gitcp.search.find import search
    except ModuleNotFoundError as exc:
        raise ProgramNotFoundError(
            f"this Python was built without SQLite: {exc}",
            hint="use another Python, for instance from Debian, Fedora, Homebrew or"
            " python.org",
        ) from exc
    return search(workspace, query, filters)


def _show(out: Output, hit: "Hit") -> None:
    columns = width()
    name = f"#{hit.number}" if hit.number is not None else hit.id
    parts = [name, age(hit.at), hit.where]
    if hit.made_at is not None:
        parts.append(f"<{one_line(hit.made_at, 20)}>")
    if hit.path is not None:
        place = safe_path(hit.path)
        parts.append(f"{place}:{hit.line}" if hit.line is not None else place)
    elif hit.prompt:
        parts.append(f'"{one_line(hit.prompt)}"')
    out.print(out.style(fit("  ".join(parts), columns), fg="cyan"))
    if hit.where != "paths":
        out.print(f"    {_marked(out, hit.excerpt)}")
    out.print(out.style(f"    {_command(hit, name)}", dim=True), whole=True)


def _marked(out: Output, excerpt: "Excerpt") -> str:
    """Returns an excerpt with its matches in bold, or in brackets."""
    parts: list[str] = []
    at = 0
    for start, end in excerpt.marks:
        found = safe(excerpt.text[start:end])
        marked = out.style(found, bold=True) if out.color else f"[{found}]"
        parts += [safe(excerpt.text[at:start]), marked]
        at = end
    return "".join([*parts, safe(excerpt.text[at:])])


def _command(hit: "Hit", name: str) -> str:
    """Returns the command that shows a hit."""
    name = name.removeprefix("#")
    path = quoted(show_path(hit.path)) if hit.path is not None else ""
    dashes = "-- " if hit.path is not None and hit.path.startswith(b"-") else ""
    match hit.where:
        case "files":
            return f"gitcp cat {name} {dashes}{path}"
        case "paths":
            return f"gitcp show {name} -p -- {path}"
        case "reasons":
            return f"gitcp decisions {name}"
        case "notes":
            return f"gitcp show {name}"
        case _:
            return f"gitcp messages {name}"


def _document(hit: "Hit") -> dict[str, Any]:
    return {
        "number": hit.number,
        "id": hit.id,
        "session": hit.session,
        "branch": hit.branch,
        "where": hit.where,
        **(documents.path_fields(hit.path) if hit.path is not None else {"path": None}),
        "line": hit.line,
        "excerpt": hit.excerpt.text,
        "marks": [list(mark) for mark in hit.excerpt.marks],
        "prompt": hit.prompt,
        "at": hit.at,
    }
