"""Reads the conversation of each row: prompts, texts, tool calls with results, in order.

Each record is read once, even if several rows have it: a row adds the segments that the
checkpoint before it did not have.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate
from typing import Any

from gitcp.checkpoints import conversation
from gitcp.checkpoints.history import Listed
from gitcp.checkpoints.spoken_turns import main_argument, plain_text, prompt_in, time_of
from gitcp.checkpoints.turn_of import new_records, new_segments
from gitcp.clients import registry
from gitcp.clients.triggers import TURN_START
from gitcp.errors import CorruptError, FormatTooNewError, TransferError
from gitcp.format.checkpoint import Conversation
from gitcp.format.jsontext import unicode
from gitcp.format.layout import LogName
from gitcp.store import logs
from gitcp.store.checkpoint import Checkpoint
from gitcp.store.store import Store
from gitcp.view.document import Spoken, Step

# Characters to keep of a tool's output: of its beginning, and of its end.
_OUTPUT = 4_000
_END = 1_000
# Characters of one text; a larger page would open slowly, and `gitcp messages` shows it all.
_TEXT = 2_000_000
# Bytes of conversations made elsewhere, in all rows together: in memory they take many times
# more.
_FOREIGN = 8 * 1024 * 1024
# How far texts are looked for in a tool's result; a hostile one may nest hundreds.
_DEEPEST = 20
_IDS = ("id", "call_id", "callID", "tool_use_id", "tool_call_id")
_RESULTS = frozenset({"tool_result", "function_call_output", "custom_tool_call_output"})
_FAILED = frozenset({"error", "cancelled", "failed"})
# These checkpoints repeat a conversation that was shown before.
_REPEATS = frozenset({"restore", "before-restore", "fork"})


class Talk:
    """The conversations of a session, read row by row, oldest first."""

    def __init__(self, store: Store, *, prompts_only: bool) -> None:
        self._store = store
        self._prompts_only = prompts_only
        self._left = _FOREIGN
        # For each source: the segments of the longest state seen, and the end of each.
        self._known: dict[str, tuple[list[bytes], list[int]]] = {}
        # Segments that are read before they are shown.
        self._read: dict[bytes, bytes] = {}
        self.notes: list[str] = []

    def begin(self, tips: list[Checkpoint]) -> None:
        """Reads the newest checkpoints of the branches, which contain most others."""
        for tip in tips:
            held = tip.manifest.conversation
            if held is not None and tip.origin.logs is None:
                with suppress(CorruptError):
                    self._known[held.source] = self._measured(tip, held)

    def of(self, listed: Listed) -> list[Spoken]:
        """Returns the conversation of a row.

        Raises:
            CorruptError: a segment is missing or damaged.
        """
        end = listed.checkpoint
        if listed.by_hand or end.trigger in _REPEATS:
            return []
        held = end.manifest.conversation
        if held is None:
            return []
        first = self._store.checkpoint(listed.row.first.commit) or end
        if end.origin.logs is not None:
            # Before anything of it is read.
            oids = new_segments(self._store, first, end)
            size = sum(end.objects.header(oid)[1] for oid in oids)
            if size > self._left:
                return [Spoken(steps=[Step(_TOO_LONG)])]
            self._left -= size
        raw = self._records(first, end, held)
        found = spoken(raw)
        if self._prompts_only:
            asked = [each for each in found if each.prompt is not None]
            found = [Spoken(each.prompt, each.at) for each in asked]
        return found

    def taken_back(self, tip: Checkpoint) -> frozenset[tuple[str, float | None]]:
        """Returns prompt and time of the turns that the user rewound in the client."""
        held = tip.manifest.conversation
        if held is None or tip.origin.logs is not None or not registry.known(held.kind):
            return frozenset()
        with suppress(CorruptError, FormatTooNewError, TransferError):
            raw = self._whole(tip, held)
            active = registry.active(held.kind, raw)
            if len(active) < len(raw):
                return _asked(raw) - _asked(active)
        return frozenset()

    def _whole(self, tip: Checkpoint, held: Conversation) -> bytes:
        """Returns the conversation of the newest checkpoint of a branch."""
        oids, ends = self._known.get(held.source, ([], [0]))
        if len(oids) != held.segments or ends[-1] != held.bytes:
            return tip.conversation()
        self._read |= {oid: tip.objects.blob(oid) for oid in oids}
        return b"".join(map(self._read.__getitem__, oids))

    def _records(self, first: Checkpoint, end: Checkpoint, held: Conversation) -> bytes:
        before: Checkpoint | None = first
        if first.trigger != TURN_START or first == end:
            parents = first.raw.parents
            before = self._store.checkpoint(parents[0]) if parents else None
        old = before.manifest.conversation if before is not None else None
        start = old.segments if old is not None and old.source == held.source else 0
        oids, ends = self._known.get(held.source, ([], [0]))
        if (
            start <= held.segments < len(ends)
            and ends[held.segments] == held.bytes
            and (old is None or not start or ends[start] == old.bytes)
        ):
            wanted = oids[start : held.segments]
            return b"".join(
                self._read.pop(oid) if oid in self._read else end.objects.blob(oid)
                for oid in wanted
            )
        # The client has rewritten its file, or rewound turns.
        return new_records(self._store, first, end)

    def _measured(
        self, tip: Checkpoint, held: Conversation
    ) -> tuple[list[bytes], list[int]]:
        name = LogName("conversation", held.source)
        oids = logs.segments(tip.log_tree, name, tip.objects.tree)
        sizes = (tip.objects.header(oid)[1] for oid in oids)
        return oids, [0, *accumulate(sizes)]


_TOO_LONG = "(This conversation was pulled, and is too long to show.)"


def _asked(raw: bytes) -> frozenset[tuple[str, float | None]]:
    return frozenset(
        (prompt, time_of(message))
        for message in conversation.messages(raw)
        if (prompt := prompt_in(message))
    )


def spoken(raw: bytes) -> list[Spoken]:
    """Returns the turns in records, with all details that the page shows."""
    found: list[Spoken] = []
    calls: dict[str, Step] = {}
    for message in conversation.messages(raw):
        if message.get("isSidechain") is True or conversation.is_noted(message):
            continue
        prompt = prompt_in(message)
        if prompt:
            found.append(Spoken(_text(prompt), time_of(message)))
            continue
        for step in _steps(message, calls):
            if not found:
                found.append(Spoken(None, time_of(message)))
            found[-1].steps.append(step)
    return found


def _steps(message: dict[str, Any], calls: dict[str, Step]) -> Iterator[Step]:
    """Yields texts and calls; adds results to the calls that they answer."""
    role = conversation.role(message)
    by_agent = role is not None and role not in _NOT_AGENTS
    payload = message.get("payload")
    if isinstance(payload, dict) and conversation.type_of(payload) in _RESULTS:
        _answer(payload, calls)
    if role == "tool":
        _answer(message, calls)
        return
    for block in conversation.blocks(message):
        called = conversation.tool_call(block)
        if called is not None:
            step = Step(tool=_text(called[0]), arg=_text(main_argument(called[1])))
            for ident in _idents(block):
                calls[ident] = step
            _answer(block, calls)
            yield step
        elif isinstance(block, dict) and _is_result(block):
            _answer(block, calls)
        elif by_agent:
            text = plain_text(block)
            if text is not None and text.strip():
                yield Step(_text(text.strip()))


_NOT_AGENTS = frozenset({"user", "human", "system", "developer", "tool", "function"})


def _is_result(block: dict[str, Any]) -> bool:
    return conversation.type_of(block) in _RESULTS or isinstance(
        block.get("functionResponse"), dict
    )


def _idents(block: dict[str, Any]) -> list[str]:
    return [block[name] for name in _IDS if isinstance(block.get(name), str)]


def _answer(block: dict[str, Any], calls: dict[str, Step]) -> None:
    """Adds the result to a call, if a block has it."""
    response = block.get("functionResponse")
    if isinstance(response, dict):
        block = {**response, "content": response.get("response")}
    step = next((calls[one] for one in _idents(block) if one in calls), None)
    if step is None:
        return
    state = block.get("state")
    told = state if isinstance(state, dict) else block
    output = _shown(
        next(
            (
                told[name]
                for name in ("output", "content", "resultDisplay", "result", "error")
                if told.get(name) is not None
            ),
            None,
        )
    )
    if output:
        step.out, step.size = _shortened(output), len(output)
    if block.get("is_error") is True or str(told.get("status")) in _FAILED:
        step.failed = True


def _shown(value: Any, deep: int = 0) -> str:
    """Returns the texts in a result of any shape, but for those that lie too deep."""
    if isinstance(value, str):
        return _text(value)
    if deep == _DEEPEST or not isinstance(value, list | dict):
        return ""
    if isinstance(value, list):
        inner = (_shown(one, deep + 1) for one in value)
        return "\n".join(filter(None, inner))
    named = (value.get(name) for name in ("text", "output", "content", "response"))
    return next(filter(None, (_shown(one, deep + 1) for one in named)), "")


def _shortened(text: str) -> str:
    if len(text) <= _OUTPUT + _END:
        return text
    return f"{text[:_OUTPUT]}\n…\n{text[-_END:]}"


def _text(text: str) -> str:
    text = unicode(text)
    if len(text) <= _TEXT:
        return text
    return f"{text[:_TEXT]}\n… {len(text) - _TEXT:,} characters more: `gitcp messages`"
