"""An input line at the bottom of the picker."""

from collections.abc import Callable

from gitcp.cli.emit import safe_line
from gitcp.cli.picker.lines import Part

# In characters: longer than any name or path that users type, to limit text pasted by mistake.
_LONGEST = 400


class Asking:
    """A question, and the text typed so far.

    `typed` is called at each change, `done` at Enter.
    """

    def __init__(
        self,
        label: str,
        done: Callable[[str], None],
        *,
        text: str = "",
        typed: Callable[[str], None] | None = None,
    ) -> None:
        self.label = label
        self.text = text
        self.done = done
        self.typed = typed

    def add(self, text: str) -> None:
        """Adds typed or pasted text: the printable characters of its first line."""
        kept = "".join(filter(str.isprintable, text.split("\n", 1)[0]))
        self._set(f"{self.text}{kept}"[:_LONGEST])

    def erase(self) -> None:
        """Removes the last character."""
        self._set(self.text[:-1])

    def clear(self) -> None:
        """Removes all characters."""
        self._set("")

    def _set(self, text: str) -> None:
        if text != self.text:
            self.text = text
            if self.typed is not None:
                self.typed(text)

    def parts(self) -> tuple[Part, ...]:
        """Returns the line as shown."""
        return (
            Part(f" {self.label} ", "bold"),
            Part(safe_line(self.text)),
            Part("█"),
        )
