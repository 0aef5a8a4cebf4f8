"""Prints safe text, colours, JSON and progress: results to stdout, the rest to stderr."""

import codecs
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import msgspec

from gitcp import progress
from gitcp.cli.progress_line import ProgressLine
from gitcp.cli.streams import discard, write
from gitcp.errors import ConfirmationError, NothingToDoError, StorageError
from gitcp.format.checkpoint import show_path

# Invisible marks, marks that change the direction of text, and separators of lines.
_MARKS = frozenset(
    "\u2028\u2029\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


def safe(text: str) -> str:
    """Returns text that cannot control a terminal; newlines and tabs stay."""
    if text.isprintable():
        return text
    return "".join(
        char
        if char in "\n\t"
        or (unicodedata.category(char)[0] != "C" and char not in _MARKS)
        else ascii(char)[1:-1]
        for char in text
    )


def safe_line(text: str) -> str:
    """Returns text as safe text on one line: newlines and tabs are escaped, as in git."""
    return safe(text).replace("\n", "\\n").replace("\t", "\\t")


def safe_path(path: bytes | str) -> str:
    """Returns a path as safe text on one line."""
    return safe_line(show_path(path) if isinstance(path, bytes) else path)


def path_line(path: bytes | str, why: str) -> str:
    """Returns a path and why it is listed as safe text on one line; both may be a stranger's."""
    return f"{safe_path(path)} ({safe_line(why)})"


def one_line(text: str, width: int = 0) -> str:
    """Returns the first line of a text as safe text, cut to a width if one is given."""
    line = safe(text.strip().split("\n", 1)[0].replace("\t", " "))
    return line[: width - 1] + "…" if width and len(line) > width else line


def color_wanted(choice: str, stream: TextIO) -> bool:
    """Whether to colour, by the flag, NO_COLOR, FORCE_COLOR, TERM and the terminal."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return os.environ.get("TERM") != "dumb" and stream.isatty()


# Marks what `Output.style` adds. No foreign text can contain it, because it is random.
_MARK = f"\0{os.urandom(8).hex()}\0"


# The sequence that ends a style, and the numbers of ECMA-48 that begin one, by name.
_PLAIN = "\033[0m"
_FOREGROUND = {
    name: number
    for number, name in enumerate(
        ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"), 30
    )
}
_ON_AND_OFF = {"bold": (1, 22), "dim": (2, 22), "underline": (4, 24)}


def _printable(text: str) -> bytes:
    """Returns the bytes of a line, safe except for the styles between marks."""
    parts = text.split(_MARK)
    parts[::2] = map(safe, parts[::2])
    return "".join(parts).encode("utf-8", "backslashreplace")


def unstyled(text: str) -> str:
    """Returns a line without the parts that `Output.style` added: as long as it looks."""
    return "".join(text.split(_MARK)[::2])


def spans(text: str) -> Iterator[tuple[str, str]]:
    """Yields the parts of a line, each behind the escape sequences that style it.

    The parts are safe; newlines and tabs are not among them.
    """
    style = ""
    for at, part in enumerate(text.split(_MARK)):
        if at % 2:
            style = "" if part == _PLAIN else part
        elif part:
            yield style, safe(part).replace("\n", "\\n").expandtabs(4)


def folded(text: str, less: int = 0) -> str:
    """Returns a text broken between words to the width of the terminal.

    The last line leaves `less` columns free. If stdout is not a terminal, the text is
    unchanged.
    """
    from gitcp.cli import layout

    room = layout.width()
    if room is None:
        return text
    *lines, last = text.split("\n")
    parts = [part for line in lines for part in layout.folded(line, room, bare=_shown)]
    return "\n".join([*parts, *layout.folded(last, room - less, bare=_shown)])


def _shown(text: str) -> str:
    return safe(unstyled(text))


def _encoded(document: Any) -> bytes:
    """Returns a document as JSON; bytes of an argument that are no text are escaped."""
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError:
        import json

        text = json.dumps(msgspec.to_builtins(document), ensure_ascii=False)
        # In JSON, `\\udcff` is the text that a terminal shows; `\udcff` is no character.
        return "".join(
            f"\\{ascii(char)[1:-1]}" if "\ud800" <= char <= "\udfff" else char
            for char in text
        ).encode()


def _at_terminal(raw: bytes, terminal: bool) -> bytes:
    """Returns JSON for a terminal with escapes for all characters that could control it."""
    text = raw.decode("utf-8", "backslashreplace")
    if not terminal or text.isprintable():
        return raw
    import json

    # Outside strings JSON is plain ASCII, so only strings change.
    return "".join(
        char if safe(char) == char else json.dumps(char)[1:-1] for char in text
    ).encode()


@contextmanager
def writing() -> Iterator[None]:
    """Distinguishes a full disk behind the output from all other failures.

    Raises:
        StorageError: the output cannot be written; not raised for a closed pipe.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as exc:
        # At exit Python would try to write the buffer, and report the error again.
        discard(sys.stdout)
        raise StorageError(
            f"the output cannot be written: {exc.strerror}",
            hint="the command itself may have succeeded: `gitcp log` shows what was"
            " saved",
        ) from exc


_ANSWERS = " [y/N/d=diff]: "


def _agreed(question: str, diff: Callable[[], None]) -> bool:
    """Asks until the answer is yes or no; shows the diff each time it is requested."""
    import click

    while True:
        answer = click.prompt(
            f"{folded(question, len(_ANSWERS))}{_ANSWERS[:-2]}",
            default="",
            show_default=False,
            err=True,
        )
        match answer.strip().lower():
            case "y" | "yes":
                return True
            case "n" | "no" | "":
                return False
            case "d" | "diff":
                diff()
            case _:
                write(b"Answer y (yes), n (no) or d (show the diff).\n", err=True)


class Output:
    """The output of a command, and the global options."""

    def __init__(self) -> None:
        self.quiet = False
        self.silent = False
        self.verbose = False
        self.color = False
        self.json = False
        # Whether a pager may be used, and whether the output goes to one.
        self.pager = True
        self.paged = False
        self.directory = "."
        self._progress = ProgressLine()
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def style(self, text: str, *, fg: str | None = None, **how: bool) -> str:
        """Returns text in a colour, if colours are on; for `print` and `tell`.

        `how` may have `bold`, `dim` and `underline`.
        """
        if not self.color:
            return text
        numbers = [_FOREGROUND[fg]] if fg else []
        numbers += [_ON_AND_OFF[name][not wanted] for name, wanted in how.items()]
        start = "".join(f"\033[{number}m" for number in numbers)
        return f"{_MARK}{start}{_MARK}{text}{_MARK}{_PLAIN}{_MARK}"

    def print(self, text: str = "", *, whole: bool = False) -> None:
        """Prints a line of the result; only the codes of `style` control a terminal.

        On a terminal the line is broken between words, unless it is `whole`: a text that
        users copy from the screen, or foreign text. Prints nothing if a command that changes
        something is called with `-q`.
        """
        if self.silent:
            return
        self._progress.clear()
        with writing():
            write(_printable(text if whole else folded(text)) + b"\n")

    def tell(self, text: str, *, whole: bool = False) -> None:
        """Prints a line that is not the result to stderr, in the colours of `style`."""
        self._say(_printable(text if whole else folded(text)))

    def raw(self, data: bytes) -> None:
        """Prints bytes as they are, but safe text to a terminal."""
        self._progress.clear()
        if self.paged or sys.stdout.isatty():
            # A terminal would obey control sequences; a file or a pipe gets every byte.
            data = safe(self._decoder.decode(data)).encode("utf-8", "backslashreplace")
        with writing():
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def note(self, text: str) -> None:
        """Prints a message that is not the result to stderr."""
        if not self.quiet:
            self._message(text)

    def warn(self, text: str, *more: str) -> None:
        """Prints a message that a user must not miss to stderr, and `more` lines below it."""
        self._message(f"gitcp: warning: {text}", *more)

    def error(self, message: str, hint: str | None) -> None:
        """Prints an error and its hint."""
        self._message(f"gitcp: {message}", *([hint] if hint else ()))

    def _message(self, text: str, *more: str) -> None:
        """Prints a message; a name in it, which may be a stranger's, begins no line."""
        lines = [text, *(f"  {line}" for line in more)]
        whole = "\n".join(line.replace("\n", "\\n") for line in lines)
        self._say(_printable(folded(whole)))

    def document(self, document: Any) -> None:
        """Prints one JSON document."""
        self.json_text(_encoded(document) + b"\n")

    def json_text(self, raw: bytes) -> None:
        """Prints JSON as it is; escapes characters that could control a terminal."""
        self.raw(_at_terminal(raw, self.paged or sys.stdout.isatty()))

    def error_document(self, document: dict[str, Any]) -> None:
        """Prints an error as a JSON document to stderr."""
        self._say(_at_terminal(_encoded({"error": document}), sys.stderr.isatty()))

    def _say(self, raw: bytes) -> None:
        self._progress.clear()
        if self.paged and sys.stderr.isatty():
            # In the pager it appears next to the lines that it is about.
            with writing():
                write(raw + b"\n")
            return
        write(raw + b"\n", err=True)

    def confirm(
        self, question: str, *, yes: bool, diff: Callable[[], None] | None = None
    ) -> None:
        """Asks the user, unless `yes` was given; the answer `d` shows a `diff` and asks again.

        Raises:
            ConfirmationError: there is no terminal to ask at.
            NothingToDoError: the answer was no.
        """
        if yes:
            return
        if self.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise ConfirmationError(
                "confirmation is required, but there is no terminal to ask at",
                hint="add --yes, or --dry-run to see what would be done",
            )
        self._progress.clear()
        if diff is None:
            import click

            agreed = click.confirm(
                folded(question, len(_ANSWERS)), default=False, err=True
            )
        else:
            agreed = _agreed(question, diff)
        # The user took that time, not gitcp.
        self._progress.begin()
        if not agreed:
            raise NothingToDoError("nothing was changed")

    def transient(self, text: str) -> None:
        """Shows the current work once it has taken half a second, until it is done.

        Only on a terminal, and not with `-q` or JSON.
        """
        if not (self.quiet or self.json):
            self._progress.show(one_line(text))

    def progress(self, doing: str) -> Callable[[int, int], None]:
        """Returns a callback that shows the number of parts done, and of all parts."""
        return lambda done, total: self._count(doing, done, total)

    @contextmanager
    def showing_progress(self) -> Iterator[None]:
        """Shows the progress of the work inside, and removes the line at the end."""
        self._progress.begin()
        hidden = self.quiet or self.json or not sys.stderr.isatty()
        try:
            with progress.shown_by(None if hidden else self._count):
                yield
        finally:
            self._progress.clear()

    def _count(self, doing: str, done: int, total: int) -> None:
        if done + 1 == total:
            # Another program may print next, and does not know of the line.
            self._progress.clear()
        elif self._progress.is_due():
            self.transient(f"{doing} {done:,} of {total:,}")
