"""Parses the two commands that people type most, if they have few and simple arguments.

click takes longer to load than everything else that these commands do before they scan. All
other arguments go to click, which knows every option.
"""

import sys
from contextlib import ExitStack
from typing import Any, NamedTuple

from gitcp.cli import boundary
from gitcp.cli.emit import Output, color_wanted
from gitcp.cli.opening import Enter, shown_output, to_change
from gitcp.cli.streams import write

# Option -> the parameter that it sets, and whether a value follows.
_SAVE = {
    "-m": ("note", True),
    "--message": ("note", True),
    "--label": ("label", True),
    "-s": ("where", True),
    "--session": ("where", True),
    "--allow-empty": ("allow_empty", False),
}
_RESTORE = {"-y": ("yes", False), "--yes": ("yes", False)}
_COMMON = {
    "--json": ("json", False),
    "-q": ("quiet", False),
    "--quiet": ("quiet", False),
}
# The parameters of a save without options.
_DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("note", "label", "where", "messages", "append", "transcript")),
    **dict.fromkeys(("agent", "task", "position")),
    **dict.fromkeys(("decision", "tried", "fact", "next_step", "log_note"), ()),
    **dict.fromkeys(("bug", "why", "active", "include"), ()),
    "trigger": "manual",
    "allow_empty": False,
    "init": False,
}


class Call(NamedTuple):
    """A command line: the command, its parameters, and the options of every command."""

    name: str
    given: dict[str, Any]
    quiet: bool
    json: bool


def parse(arguments: list[str]) -> Call | None:
    """Returns the parsed command line; None if click has to parse it."""
    name, words = arguments[0], iter(arguments[1:])
    known = {"save": _SAVE, "restore": _RESTORE}.get(name)
    if known is None:
        return None
    options = {**known, **_COMMON}
    given: dict[str, Any] = {}
    named: list[str] = []
    for word in words:
        if not word.startswith("-"):
            named.append(word)
            continue
        parameter, has_value = options.get(word, ("", False))
        value = next(words, "-") if has_value else ""
        # click's rules decide about a value that looks like an option.
        if not parameter or value.startswith("-"):
            return None
        given[parameter] = value if has_value else True
    quiet, json = given.pop("quiet", False), given.pop("json", False)
    if name == "save":
        return None if named else Call(name, {**_DEFAULTS, **given}, quiet, json)
    # click parses a restore that asks, or that restores only a part.
    if not given or len(named) != 1 or not named[0]:
        return None
    return Call(name, {"selector": named[0]}, quiet, json)


def run(call: Call) -> int:
    """Runs a command; every error becomes one message and one exit status."""
    out = Output()
    out.quiet, out.json = call.quiet, call.json
    out.color = color_wanted("auto", sys.stdout)
    return boundary.run(out, lambda: _run(out, call))


def _run(out: Output, call: Call) -> None:
    """Runs a command, and handles an interrupt as click does."""
    try:
        with ExitStack() as stack, shown_output(out, call.name, call.given):
            if call.name == "save":
                from gitcp.cli.saving import save_as

                save_as(out, stack.enter_context, call.given, ())
            else:
                _restore(out, stack.enter_context, call.given["selector"])
    except KeyboardInterrupt:
        # The terminal shows ^C on the same line.
        write(b"\n", err=True)
        raise
    except RuntimeError as exc:
        # A question had loaded click, and was interrupted.
        from click import Abort

        if not isinstance(exc, Abort):
            raise
        raise KeyboardInterrupt from exc


def _restore(out: Output, enter: Enter, selector: str) -> None:
    """Restores everything that a checkpoint holds, without asking."""
    from gitcp.checkpoints.restore_request import request_restore
    from gitcp.checkpoints.selectors import select
    from gitcp.cli.restoring import carry_out, with_trust

    workspace = to_change(out, enter)
    target = select(workspace, selector)
    workspace.refuse_if_interrupted()
    request = request_restore(target, trust=with_trust(workspace, target, trust=False))
    carry_out(out, workspace, request, None, yes=True)
