"""Decides for each message what to record, what to hold back, and when to save."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from gitcp.acp import observed, replay
from gitcp.acp.checkpointer import NO_REPOSITORY, Checkpointer, Outcome
from gitcp.acp.held import HandOver, Held
from gitcp.acp.observed import Agent, Message, Params
from gitcp.acp.sessions import LiveSession, Sessions, working_directory
from gitcp.acp.stderr_log import StderrLog
from gitcp.clients import triggers
from gitcp.clients.acp_folder import About, SessionFolder
from gitcp.errors import GitcpError

# Updates that say nothing of the talk.
_UNTOLD = frozenset(
    {
        *("available_commands_update", "current_mode_update", "usage_update"),
        *("config_option_update", "session_info_update", "user_message_chunk"),
    }
)
# ValueError: a path with a zero byte, or one that is not UTF-8.
_UNWRITABLE = (OSError, ValueError, GitcpError)


class _Request(NamedTuple):
    """A request of the editor's whose response is waited for."""

    method: str
    session: str | None = None
    cwd: str = ""
    restored: tuple[SessionFolder, About] | None = None
    line: bytes = b""


class Turns:
    """The turns of all sessions that pass.

    `from_client` is called in one thread, `from_agent` in another, and what is held back is
    handed over in that of the checkpoints.
    """

    def __init__(
        self,
        directory: Path,
        agent: str,
        checkpointer: Checkpointer,
        hand_over: HandOver,
    ) -> None:
        self._sessions = Sessions(directory, agent)
        self._checkpointer = checkpointer
        self._hand_over = hand_over
        self._agent = Agent()
        # Held for a moment only, and never while anything is written to either end.
        self._state = threading.RLock()
        self._requests: dict[Any, _Request] = {}
        # Answers of the user that wait for a checkpoint, by the id of what the agent asked.
        self._answers: dict[Any, list[bytes]] = {}
        self._log = StderrLog()

    def take_up(self) -> None:
        """Saves what a killed proxy had written down."""
        for folder, upto in self._sessions.abandoned():
            about = folder.about()
            if about is not None:
                request = {
                    "event": triggers.TURN_END,
                    "session": folder.name,
                    "cwd": about.cwd,
                    "upto": upto,
                }
                self._checkpointer.ask(request, lambda _: None)

    def finish(self) -> None:
        """Ends all turns and sessions: the agent is gone."""
        for session in self._sessions.all():
            if session.is_kept and session.turn is not None:
                upto = session.end_turn()
                self._ask(triggers.TURN_END, session, upto=upto)
                self._ask(triggers.SESSION_END, session)

    # --- what the editor says -------------------------------------------------------

    def from_client(self, found: Message, line: bytes) -> bytes | None:
        """Returns what the agent gets of a line now; None if it waits."""
        if found.method is None:
            return self._answered(found, line)
        params = observed.params(found)
        match found.method:
            case observed.INITIALIZE:
                self._expect(found, _Request(found.method))
            case observed.NEW:
                return self._new(found, params, line)
            case observed.CLOSE | observed.FORK:
                self._expect(
                    found, _Request(found.method, params.sessionId, params.cwd or "")
                )
            case method if method in observed.CONTINUING:
                self._expect(
                    found, _Request(method, params.sessionId, params.cwd or "")
                )
            case observed.PROMPT:
                return self._prompt(found, params, line)
            case _:
                pass
        return None if self._queue(params, line) else line

    def _expect(self, found: Message, request: _Request) -> None:
        if found.id is not None:
            self._requests[found.id] = request

    def _answered(self, found: Message, line: bytes) -> bytes | None:
        with self._state:
            waiting = self._answers.get(found.id)
            if waiting is None:
                return line
            waiting.append(line)
            return None

    def _queue(self, params: Params, line: bytes) -> bool:
        """Whether a line waits behind a prompt of its session."""
        with self._state:
            for session in self._sessions.all():
                if session.held is not None and (
                    params.sessionId == session.ident
                    or (
                        params.requestId is not None
                        and params.requestId == session.held_id
                    )
                ):
                    session.held.append(line)
                    return True
        return False

    def _new(self, found: Message, params: Params, line: bytes) -> bytes:
        """Notes that a session is made; one with a restored talk may be a fork."""
        cwd = params.cwd or working_directory()
        restored = self._sessions.restored(cwd)
        whole = restored[1].whole if restored is not None else None
        forks = whole is not None and self._agent.forks
        fork = replay.as_fork(line, whole) if whole is not None and forks else None
        if fork is None:
            self._expect(found, _Request(observed.NEW, None, cwd, restored))
            return line
        self._expect(found, _Request(observed.FORK, whole, cwd, restored, line))
        return fork

    def _prompt(self, found: Message, params: Params, line: bytes) -> bytes | None:
        session = self._session_of(params)
        if session is None or not session.is_kept:
            return line
        with self._state:
            if session.held is not None:
                session.held.append(line)
                return None
            if session.is_open:
                # The agent is told more while it works: the same turn.
                session.prompts.add(found.id)
                self._expect(found, _Request(observed.PROMPT, session.ident))
                self._write(session, line)
                return line
            session.held, session.held_id = [line], found.id
        self._checkpointer.ask(
            {
                "event": triggers.TURN_START,
                "session": session.folder.name,
                "cwd": session.cwd,
                "prompt": observed.prompt_text(found),
                "upto": session.turn or 0,
            },
            lambda outcome: self._release(session, found, outcome),
        )
        return None

    def _session_of(self, params: Params) -> LiveSession | None:
        """Returns the session of a prompt; one that was not seen yet works where we do."""
        if params.sessionId is None:
            return None
        with self._state:
            known = self._sessions.find(params.sessionId)
            if known is None:
                try:
                    known = self._sessions.go_on(params.sessionId, working_directory())
                except _UNWRITABLE as exc:
                    self._log.tell(f"its turns are not saved: {exc}")
            return known

    def _release(self, session: LiveSession, found: Message, outcome: Outcome) -> None:
        """Hands a prompt on: its checkpoint is made, or cannot be made."""
        self._judge(session, outcome)
        self._hand_over(lambda: self._released(session, found, outcome))

    def _released(self, session: LiveSession, found: Message, outcome: Outcome) -> Held:
        with self._state:
            lines, session.held = session.held or [], None
            first = lines[0]
            if session.is_kept:
                self._expect(found, _Request(observed.PROMPT, session.ident))
                try:
                    session.begin_turn(found.id, first)
                    first = self._prefixed(session, first, outcome)
                except _UNWRITABLE as exc:
                    self._give_up(session, exc)
        return Held(first, lines[1:])

    def _prefixed(self, session: LiveSession, line: bytes, outcome: Outcome) -> bytes:
        """Returns a prompt with what its agent has to know of a restore, if anything."""
        texts = [outcome.tell] if outcome.tell else []
        if session.replays:
            texts.insert(0, replay.text_of(session.folder.talk.read_bytes()))
        given = replay.with_texts(line, texts) if texts else line
        if given is not None and session.replays:
            session.replayed()
        return line if given is None else given

    # --- what the agent says --------------------------------------------------------

    def from_agent(self, found: Message, line: bytes) -> bool:
        """Writes down what belongs to a turn; returns whether the editor gets the line."""
        if found.method is None:
            request = self._requests.pop(found.id, None)
            return request is None or self._response(request, found, line)
        if found.method == observed.UPDATE:
            self._update(observed.params(found), line)
        elif found.method == observed.PERMISSION:
            self._asked(found, observed.params(found))
        return True

    def _update(self, params: Params, line: bytes) -> None:
        update = params.update
        with self._state:
            session = self._sessions.find(params.sessionId)
            if session is None or update is None or not session.is_open:
                return
            if update.sessionUpdate not in _UNTOLD:
                self._write(session, line)
            idle = update.sessionUpdate == "state_update" and update.state == "idle"
            if idle and self._agent.accepts:
                self._end(session)
        if update.sessionUpdate == "tool_call_update" and update.status == "completed":
            self._ask(triggers.TOOL, session, tool=update.title or "tool")

    def _asked(self, found: Message, params: Params) -> None:
        """Holds the user's answer back until there is a checkpoint before a command."""
        call = params.toolCall
        session = self._sessions.find(params.sessionId)
        if call is None or call.kind != "execute" or session is None:
            return
        if not session.is_kept:
            return
        given = call.rawInput
        named = given.get("command") if isinstance(given, dict) else None
        command = named if isinstance(named, str) else (call.title or "").strip("`")
        with self._state:
            self._answers[found.id] = []
        self._ask(
            triggers.BEFORE_COMMAND,
            session,
            command=command or "?",
            then=lambda: self._answer(found.id),
        )

    def _answer(self, ident: Any) -> None:
        def take() -> Held:
            with self._state:
                return Held(lines=self._answers.pop(ident, []))

        self._hand_over(take)

    def _response(self, request: _Request, found: Message, line: bytes) -> bool:
        match request.method:
            case observed.INITIALIZE if not found.failed:
                self._agent = observed.initialized(found)
            case observed.PROMPT:
                self._answered_prompt(request, found, line)
            case observed.FORK if request.restored is not None and found.failed:
                # The agent cannot after all: a new session, and the talk before its prompt.
                again = request._replace(method=observed.NEW, line=b"")
                self._requests[found.id] = again
                # Nothing that the agent reads late may keep us from reading what it says.
                held = Held(request.line)
                self._checkpointer.ask(None, lambda _: self._hand_over(lambda: held))
                return False
            case observed.NEW | observed.FORK:
                self._made(request, found)
            case observed.CLOSE if not found.failed:
                self._closed(request)
            case _ if not found.failed and request.session is not None:
                self._begin(request.session, request, continued=True)
        return True

    def _answered_prompt(self, request: _Request, found: Message, line: bytes) -> None:
        with self._state:
            session = self._sessions.find(request.session)
            if session is None or not session.is_open:
                return
            self._write(session, line)
            session.prompts.discard(found.id)
            if not session.prompts and (found.failed or not self._agent.accepts):
                self._end(session)

    def _made(self, request: _Request, found: Message) -> None:
        ident = None if found.failed else observed.new_session(found)
        if ident is not None:
            self._begin(ident, request)
        elif request.restored is not None:
            self._sessions.give_back(request.restored[0])

    def _begin(self, ident: str, request: _Request, *, continued: bool = False) -> None:
        restored = request.restored[0] if request.restored is not None else None
        cwd = request.cwd or working_directory()
        try:
            with self._state:
                if continued:
                    session = self._sessions.go_on(ident, cwd)
                else:
                    session = self._sessions.begin(ident, cwd, restored)
                if request.method == observed.FORK:
                    session.replayed()
                    self._copy(request.session, session)
        except _UNWRITABLE as exc:
            self._log.tell(f"its turns are not saved: {exc}")
            return
        self._ask(triggers.SESSION_START, session)

    def _copy(self, origin: str | None, session: LiveSession) -> None:
        """Begins a fork with the talk of the session that it was made from."""
        before = self._sessions.find(origin)
        if before is None:
            return

        def copy(_: Outcome) -> None:
            if not session.folder.talk.exists():
                with suppress(OSError):
                    session.folder.talk.write_bytes(before.folder.talk.read_bytes())

        # Its last turn is added to its talk with the checkpoint before this.
        self._checkpointer.ask(None, copy)

    def _closed(self, request: _Request) -> None:
        with self._state:
            session = self._sessions.find(request.session)
            if session is None:
                return
            self._sessions.forget(session)
        self._ask(triggers.SESSION_END, session, upto=session.turn or 0)

    # --- both -----------------------------------------------------------------------

    def _end(self, session: LiveSession) -> None:
        # Before the editor has the last line: its next prompt comes after this.
        self._ask(triggers.TURN_END, session, upto=session.end_turn())

    def _write(self, session: LiveSession, line: bytes) -> None:
        try:
            session.write(line)
        except OSError as exc:
            self._give_up(session, exc)

    def _ask(
        self,
        event: str,
        session: LiveSession,
        *,
        then: Callable[[], None] = lambda: None,
        **more: Any,
    ) -> None:
        def done(outcome: Outcome) -> None:
            self._judge(session, outcome)
            then()

        if not session.is_kept:
            self._checkpointer.ask(None, done)
            return
        request = {"event": event, "session": session.folder.name, "cwd": session.cwd}
        self._checkpointer.ask({**request, **more}, done)

    def _judge(self, session: LiveSession, outcome: Outcome) -> None:
        """Says what went wrong with a checkpoint."""
        if outcome.code == NO_REPOSITORY:
            if session.is_kept:
                self._log.tell(
                    f"{session.cwd} is not in a git repository; nothing is saved"
                )
                session.is_kept = False
                with self._state:
                    session.end_turn()
        elif outcome.error is not None:
            self._log.tell(f"not saved: {outcome.error}")

    def _give_up(self, session: LiveSession, exc: Exception) -> None:
        session.is_kept = False
        session.end_turn()
        said = exc.message if isinstance(exc, GitcpError) else str(exc)
        self._log.tell(f"the conversation in {session.cwd} is no longer saved: {said}")
