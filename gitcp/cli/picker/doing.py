"""The picker's actions: restore, undo, fork, label, copy; each asks first."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gitcp.cli.picker import bars, timeline
from gitcp.cli.picker.asking import Asking
from gitcp.cli.picker.browsing import Browsing
from gitcp.cli.picker.choice import Choice, Into
from gitcp.cli.picker.views import Parts, Wanted
from gitcp.cli.picker.window import Window
from gitcp.errors import GitcpError
from gitcp.names import check_typed
from gitcp.project.workspace import Workspace

if TYPE_CHECKING:
    from gitcp.cli.picker.plans import Planned

_PARTS: dict[str, Parts] = {"b": "both", "f": "files", "t": "conversation"}


class Doing:
    """Plans the requested action, shows the plan, and ends the picker with it on agreement."""

    def __init__(self, app: Window, browsing: Browsing) -> None:
        self.app = app
        self.browsing = browsing
        self.plan: Planned | None = None
        self._help = False

    @property
    def shown(self) -> bool:
        """Whether a plan or the keys are shown over everything."""
        return self.plan is not None or self._help

    @property
    def hints(self) -> list[tuple[str, str]] | None:
        """The keys of the page shown; None if the rows are shown."""
        if self.plan is not None:
            fork = self.plan.wanted.name is not None or bool(self.plan.wanted.paths)
            return bars.of_plan(nothing=self.plan.nothing, fork=fork)
        return [("Esc", "back")] if self._help else None

    def show_help(self) -> None:
        """Shows the keys."""
        self._help = True
        self.app.show_full(bars.help_page())

    def leave(self) -> None:
        """Goes back to the rows without any action."""
        self.plan, self._help = None, False
        self.app.show_full(None)

    # --- keys -------------------------------------------------------------------------

    def pressed(self, key: str) -> bool:
        """Handles a key; False if it has no meaning here."""
        if self.shown:
            self._on_page(key)
            return True
        todo = {
            "r": self._restore,
            "u": self._undo,
            "F": self._fork,
            "W": self._fork_into,
            "l": self._label,
            "c": self._copy,
            "h": self._restore_hunk,
            "e": self._write_page,
        }.get(key)
        if todo is not None:
            todo()
        return todo is not None

    def _on_page(self, key: str) -> None:
        full, plan = self.app.full, self.plan
        screen = max(1, full.size.height - 1)
        by = {
            "j": 1,
            "down": 1,
            "k": -1,
            "up": -1,
            "pagedown": screen,
            " ": screen,
            "space": screen,
            "pageup": -screen,
            "G": full.length,
            "end": full.length,
            "g": -full.length,
            "home": -full.length,
        }.get(key)
        if by is not None:
            full.scroll(by)
        elif key in {"escape", "q", "n"} or (self._help and key in {"?", "enter"}):
            self.leave()
        elif plan is None:
            return
        elif key == "y" and not plan.nothing:
            self.app.exit(Choice(planned=plan))
        elif key == "T" and plan.foreign:
            self._ask(plan.wanted._replace(trust=not plan.wanted.trust))
        elif key in _PARTS and not (plan.wanted.name or plan.wanted.paths):
            self._ask(plan.wanted._replace(parts=_PARTS[key]))
        elif key == "enter":
            self.app.say("press y to confirm; Enter does not")

    def _restore(self) -> None:
        app = self.app
        number = self.browsing.number
        place = app.pane.line.place if app.in_pane and app.pane.line else None
        if app.in_pane and place is None:
            app.say("put the cursor on a file, or go back to the rows with Esc")
        elif number is None and place is None:
            app.say("this is the present state: choose a row below it")
        elif place is not None:
            self._ask(Wanted(number or "last", "files", (place.path,)))
        else:
            self._ask(Wanted(number))

    def _restore_hunk(self) -> None:
        """Plans to restore the lines of the hunk at the cursor."""
        app = self.app
        pane, number = app.pane, self.browsing.number or "last"
        place = pane.line.place if app.in_pane and pane.line else None
        if place is None or place.hunk is None:
            app.say("put the cursor on changed lines first (Enter)")
        elif not self.browsing.against_now:
            app.say("hunks are restored from the diff against now: press w")
        else:
            rows = tuple(one.text for one in pane.page.lines if one.place == place)
            self._ask(Wanted(number, "files", (place.path,), hunk=rows))

    def _undo(self) -> None:
        self._ask(Wanted(None))

    def _ask(self, wanted: Wanted) -> None:
        """Requests a plan, and shows it once it is made."""
        room = max(20, self.app.size.width - 2)
        self.app.say("scanning the files …")
        self.app.heavy.ask(
            "plan",
            lambda workspace: _planned(workspace, wanted, room),
            self._show,
            failed=self._refused,
            rank=0,
        )

    def _show(self, plan: "Planned") -> None:
        self.app.message = None
        self.plan, self._help = plan, False
        self.app.show_full(plan.page)
        # The question is at the end, and the summary above it.
        self.app.call_after_refresh(self.app.full.scroll, len(plan.page.lines))

    def _refused(self, exc: GitcpError) -> None:
        self.app.say(timeline.refusal(exc), bad=True)

    # --- actions with a name ----------------------------------------------------------

    def _start(self) -> str:
        """Returns the selector of the state that a fork begins at."""
        return self.browsing.number or "last"

    def _fork(self) -> None:
        number = self._start()

        def named(name: str) -> None:
            if self._is_name(name):
                self._ask(Wanted(number, name=name))

        self.app.ask(Asking("fork as:", named))

    def _fork_into(self) -> None:
        number = self._start()

        def named(name: str) -> None:
            if self._is_name(name):
                beside = f"../{name}"
                self.app.ask(
                    Asking("work tree in:", lambda at: into(name, at), text=beside)
                )

        def into(name: str, directory: str) -> None:
            if directory:
                self.app.exit(Choice(into=Into(number, name, directory)))

        self.app.ask(Asking("fork as:", named))

    def _is_name(self, name: str) -> bool:
        if not name:
            return False
        try:
            check_typed(name, "branch")
        except GitcpError as exc:
            self._refused(exc)
            return False
        return True

    def _label(self) -> None:
        item = self.browsing.item
        number = timeline.selector(item)
        if number is None or item.listed is None:
            self.app.say("choose a row to label")
            return
        before = item.listed.checkpoint.label or ""

        def named(name: str) -> None:
            if name == before:
                return

            self.app.heavy.ask(
                "label",
                lambda workspace: _labelled(workspace, number, name),
                given,
                failed=self._refused,
            )

        def given(name: str) -> None:
            item.listed = None
            self.app.rows.redraw()
            self.app.say(f"labelled {name}" if name else "label removed")

        self.app.ask(Asking("label:", named, text=before))

    def _write_page(self) -> None:
        """Ends the picker for `gitcp view`, which may ask about secrets and prints the path."""
        self.app.exit(Choice(page=self._start()))

    def _copy(self) -> None:
        number = self.browsing.number or "last"

        def copied(command: str) -> None:
            self.app.copy_to_clipboard(command)
            self.app.say(f"copied: {command}")

        self.app.reads.ask(
            "copy",
            lambda workspace: _resume_command(workspace, number),
            copied,
            failed=self._refused,
            rank=0,
        )


# The thread that needs it loads it, so the first paint does not wait for a restore's modules.


def _planned(workspace: Workspace, wanted: Wanted, room: int) -> Iterator["Planned"]:
    from gitcp.cli.picker.plans import planned

    return planned(workspace, wanted, room)


def _resume_command(workspace: Workspace, number: str) -> Iterator[str]:
    from gitcp.cli.picker.resuming import resume_command

    return resume_command(workspace, number)


def _labelled(workspace: Workspace, number: str, name: str) -> Iterator[str]:
    from gitcp.checkpoints import label
    from gitcp.checkpoints.selectors import select

    checkpoint = select(workspace, number)
    if name:
        label.give(workspace, checkpoint, name)
    else:
        label.take(workspace, checkpoint)
    yield name
