"""Formats changed files: one line per file, or one per directory if there are many."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from gitcp.checkpoints.diff import FileDiff
from gitcp.cli.emit import Output, safe, safe_path
from gitcp.cli.layout import cells, pad
from gitcp.cli.render import SIGNS, change_lines, count
from gitcp.format.tree import Change

# Up to so many files are listed one by one; more are grouped into at most so many lines.
_FILES = 20
_GROUPS = 20
_SIGNS = {"added": "+", "modified": "~", "deleted": "-"}
_COLORS = {"+": "green", "-": "red", "@": "cyan"}
_HEADS = (
    *("diff ", "index ", "--- ", "+++ ", "new ", "deleted ", "old ", "similarity "),
    *("rename ", "dissimilarity "),
)


def arrow(old: bytes, new: bytes) -> str:
    """Returns the notation of a rename."""
    return f"{safe_path(old)} → {safe_path(new)}"


def grouped_lines(
    out: Output, changes: Sequence[Change], renamed: Mapping[bytes, bytes]
) -> Iterator[str]:
    """Yields a line for each file, or for each directory with the number of its files.

    `renamed` has the old paths of renamed files.
    """
    left = set(renamed.values())
    shown = [change for change in changes if change.path not in left]
    if len(shown) <= _FILES:
        for change in shown:
            if change.path in renamed:
                paths = arrow(renamed[change.path], change.path)
                yield f"  {out.style('R', fg='cyan')} {paths}"
            else:
                yield from change_lines(out, [change])
        return
    groups = _groups(shown)
    names = [f"{safe_path(name)}/" if name else "./" for name in groups]
    columns = max(map(cells, names))
    for name, changed in zip(names, groups.values(), strict=True):
        counts = Counter(
            "R" if change.path in renamed else _SIGNS[change.status]
            for change in changed
        )
        told = " ".join(f"{sign}{counts[sign]}" for sign in "R-~+" if counts[sign])
        yield f"  {pad(name, columns)}  {out.style(told, dim=True)}"


def _groups(changes: Iterable[Change]) -> dict[bytes, list[Change]]:
    """Returns changes by directory; uses parent directories if there are too many."""
    folders = [(change.path.split(b"/")[:-1], change) for change in changes]
    depth = max(len(folder) for folder, _ in folders)
    while True:
        groups: dict[bytes, list[Change]] = {}
        for folder, change in folders:
            groups.setdefault(b"/".join(folder[:depth]), []).append(change)
        if len(groups) <= _GROUPS or depth <= 1:
            return dict(sorted(groups.items()))
        depth -= 1


def stat_lines(out: Output, files: Sequence[FileDiff]) -> Iterator[str]:
    """Yields a line for each file, with the numbers of added and deleted lines."""
    shown = [file for file in files if file.renamed_to is None]
    names = [
        arrow(file.renamed_from, file.change.path)
        if file.renamed_from is not None
        else safe_path(file.change.path)
        for file in shown
    ]
    columns = max(map(cells, names), default=0)
    for name, file in zip(names, shown, strict=True):
        if file.added is None:
            counts = "binary"
        else:
            plus = out.style(f"+{file.added}", fg="green")
            counts = f"{plus} {out.style(f'-{file.deleted}', fg='red')}"
        renamed = file.renamed_from is not None
        sign = "R" if renamed else SIGNS[file.change.status]
        yield f"  {sign} {pad(name, columns)}  {counts}"


def patch_lines(out: Output, patch: bytes) -> Iterator[str]:
    """Yields the lines of a patch, safe, and coloured as in git."""
    for raw in patch.split(b"\n")[:-1]:
        yield colored(out, safe(raw.decode("utf-8", "backslashreplace")))


def colored(out: Output, line: str) -> str:
    """Returns a line of a patch in its colour."""
    if line.startswith(_HEADS):
        return out.style(line, bold=True)
    color = _COLORS.get(line[:1])
    return out.style(line, fg=color) if color else line


def changed_files(changes: Sequence[Change], renamed: Mapping[bytes, bytes]) -> str:
    """Returns the number of changed files for a heading: `3 changed, 1 of them renamed`."""
    total = len(changes) - len(renamed)
    more = f", {count(len(renamed), 'rename')}" if renamed else ""
    return f"{total:,} changed{more}"
