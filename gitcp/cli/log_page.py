"""Prints rows of the timeline, under a header for each conversation."""

from collections.abc import Sequence

from gitcp.checkpoints import history
from gitcp.checkpoints.history import Listed
from gitcp.checkpoints.own_notes import note_of
from gitcp.cli.beside_lines import beside_mark
from gitcp.cli.emit import Output, one_line
from gitcp.cli.layout import age, cells, fit, pad, width
from gitcp.cli.render import title_of
from gitcp.cli.row_marks import row_counts, row_mark
from gitcp.project.workspace import Workspace

# The minimum columns of a prompt; tools are named beside it only if there is more room.
_PROMPT = 24
_TOOLS = 4


class LogPage:
    """Prints rows under a header for each conversation."""

    def __init__(
        self, out: Output, workspace: Workspace, paths: tuple[bytes, ...], *, full: bool
    ) -> None:
        self._out = out
        self._store = workspace.store
        self._session: str | None = None
        self._width = width()
        self._paths = paths
        self._full = full

    def row(self, listed: Listed, prefix: str = "", *, headers: bool = True) -> None:
        """Prints a row, after a header if another conversation begins."""
        if headers and listed.checkpoint.session != self._session:
            self._session = listed.checkpoint.session
            self._out.print(self._header(listed))
        self._out.print(self._line(listed, prefix))

    def _header(self, listed: Listed) -> str:
        """Returns the client, the first prompt, and the time."""
        checkpoint = listed.checkpoint
        held = checkpoint.manifest.conversation
        about = history.first_prompt(self._store, checkpoint)
        parts = [one_line(checkpoint.session)]
        if held is not None and held.agent_session is not None:
            parts = [title_of(held.kind), *([f'"{one_line(about)}"'] if about else [])]
        parts.append(age(checkpoint.manifest.created))
        text = fit(" · ".join(parts), self._width)
        return self._out.style(text, bold=True)

    def _line(self, listed: Listed, prefix: str) -> str:
        out, checkpoint = self._out, listed.checkpoint
        name = f"#{checkpoint.number}" if checkpoint.number else checkpoint.id
        left = f"{prefix}{name:>6}  {age(checkpoint.manifest.created):>10}  "
        counts = "  ".join(
            part
            for part in (
                row_counts(listed, self._paths),
                beside_mark(listed.beside) if listed.beside else "",
                _inside(listed.before_commands),
            )
            if part
        )
        mark = row_mark(listed, full=self._full)
        used = history.tools_of(self._store, listed)[:_TOOLS]
        tools = " ".join(one_line(tool, _PROMPT) for tool in used)
        room = None
        if self._width is not None:
            room = self._width - cells(left) - cells(mark) - len(counts) - 2
            if tools and room - cells(tools) - 2 >= _PROMPT:
                room -= cells(tools) + 2
            else:
                tools = ""
        text = one_line(listed.prompt or note_of(checkpoint))
        text = fit(text, room)
        if room is not None:
            text = pad(text, room)
        behind = "  ".join(part for part in (tools, counts) if part)
        line = f"{out.style(left, fg='cyan')}{out.style(mark, fg='green')}"
        if not behind:
            return f"{line}{text.rstrip()}"
        return f"{line}{text}  {out.style(behind, dim=True)}"


def _inside(numbers: Sequence[int]) -> str:
    """Returns `inside #45`, which names the checkpoints before the commands of a turn."""
    if not numbers:
        return ""
    more = f" +{len(numbers) - 1}" if len(numbers) > 1 else ""
    return f"inside #{numbers[-1]}{more}"
