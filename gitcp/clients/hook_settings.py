"""Hooks in a client's JSON settings, in the shapes that clients share.

{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "…"}]}]}}, or without groups:
{"version": 1, "hooks": {"stop": [{"command": "…"}]}}
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from gitcp.clients import jsonedit
from gitcp.clients.jsonedit import JsonNode

_STRING = rb'"(?:[^"\\\n]|\\.)*"'


def merge(
    text: bytes | None,
    agent: str,
    our_hooks: Mapping[str, Mapping[str, Any]],
    head: Mapping[str, Any] | None = None,
) -> bytes:
    """Returns settings with one group of hooks for each event; other hooks stay.

    `head` are further fields that the file needs; existing ones are not changed.

    Raises:
        ValueError: the text is not JSON, or `hooks` is not what it should be.
    """
    before = (text or b"").decode()
    if not before.strip():
        hooks_only = {event: [dict(group)] for event, group in our_hooks.items()}
        settings = {**(head or {}), "hooks": hooks_only}
        return (json.dumps(settings, indent=2, ensure_ascii=False) + "\n").encode()
    if _ours(before, agent) == {
        event: [dict(group)] for event, group in our_hooks.items()
    }:
        return before.encode()
    cleaned = _without(before, agent)
    for event, group in our_hooks.items():
        root = _checked(cleaned)
        hooks = root.get("hooks")
        if hooks is None:
            cleaned = jsonedit.add(cleaned, root, {event: [dict(group)]}, name="hooks")
            continue
        groups = hooks.get(event)
        if groups is None:
            cleaned = jsonedit.add(cleaned, hooks, [dict(group)], name=event)
        else:
            cleaned = jsonedit.add(cleaned, groups, dict(group))
    for name, each in (head or {}).items():
        root = _checked(cleaned)
        if root.get(name) is None:
            cleaned = jsonedit.add(cleaned, root, each, name=name)
    _checked(cleaned)
    return cleaned.encode()


def unmerge(
    text: bytes, agent: str, head: Mapping[str, Any] | None = None
) -> bytes | None:
    """Returns settings without our hooks, and without parts that are then empty.

    None if the settings held only our hooks and `head`.

    Raises:
        ValueError: the text is not JSON, or `hooks` is not what it should be.
    """
    before = text.decode()
    if not before.strip() or not _ours(before, agent):
        return text
    after = _without(before, agent)
    root = jsonedit.parse(after)
    left = [name for name, _, _ in root.members if name not in (head or {})]
    return None if not left and "/" not in after else after.encode()


def installed(text: bytes, agent: str) -> bool:
    """Whether a hook of ours is there; false if the settings cannot be read."""
    try:
        return bool(text.strip() and _ours(text.decode(), agent))
    except ValueError:
        return False


class OurHook(NamedTuple):
    """A hook of ours and its place: the event, the group, the number within the group."""

    event: str
    group: int
    number: int
    command: str
    timeout: Any = None
    matcher: Any = None


def ours(text: bytes, agent: str) -> list[OurHook]:
    """Returns our hooks; an empty list if the settings cannot be read."""
    found = []
    try:
        decoded = text.decode()
        root = _checked(decoded)
        for event, index, group in _groups(decoded, root, agent):
            found += [
                OurHook(
                    event,
                    index,
                    number,
                    hook["command"],
                    hook.get("timeout"),
                    group.get("matcher"),
                )
                for number, hook in enumerate(_inner(group))
                if _is_mine(hook, agent)
            ]
    except ValueError:
        return []
    return found


def commands(text: bytes, agent: str) -> list[str]:
    """Returns the commands that call gitcp, in settings or in a plugin made from them."""
    found = []
    for literal in re.findall(_STRING, text):
        with suppress(ValueError):
            word = json.loads(literal)
            if is_ours(word, agent):
                found.append(word)
    return found


def field(text: bytes, *names: str) -> Any:
    """Returns the value of a field of the settings, or None."""
    try:
        decoded = text.decode()
        node: JsonNode | None = jsonedit.parse(decoded)
        for name in names:
            node = node.get(name) if node is not None and node.kind == "{" else None
        return None if node is None else jsonedit.value(decoded, node)
    except ValueError:
        return None


def is_ours(command: object, agent: str) -> bool:
    """Whether a hook's command calls gitcp for an agent."""
    return (
        isinstance(command, str) and "gitcp" in command and f" hook {agent} " in command
    )


def _checked(text: str) -> JsonNode:
    root = jsonedit.parse(text)
    hooks = root.get("hooks")
    if root.kind != "{" or (hooks is not None and hooks.kind != "{"):
        raise ValueError("it is not an object with an object `hooks`")
    for _, _, groups in hooks.members if hooks else ():
        if groups.kind != "[":
            raise ValueError("the hooks of an event are not an array")
    return root


def _groups(text: str, root: JsonNode, agent: str) -> Iterator[tuple[str, int, Any]]:
    """Yields event, index and value of each group that holds only our hooks."""
    hooks = root.get("hooks")
    for event, _, groups in hooks.members if hooks else ():
        for index, (_, _, group) in enumerate(groups.members):
            value = jsonedit.value(text, group)
            if any(_is_mine(one, agent) for one in _inner(value)):
                yield event, index, value


def _inner(group: Any) -> list[Any]:
    """Returns the hooks of a group; a single hook is a group by itself."""
    if not isinstance(group, dict):
        return []
    hooks = group.get("hooks", [group])
    return hooks if isinstance(hooks, list) else []


def _ours(text: str, agent: str) -> dict[str, list[Any]]:
    ours: dict[str, list[Any]] = {}
    for event, _, group in _groups(text, _checked(text), agent):
        ours.setdefault(event, []).append(group)
    return ours


def _without(text: str, agent: str) -> str:
    """Removes our hooks one by one, and parses the text again each time."""
    while True:
        root = _checked(text)
        first = next(_groups(text, root, agent), None)
        if first is None:
            return text
        event, index, group = first
        hooks = root.get("hooks")
        assert hooks is not None
        at = [name for name, _, _ in hooks.members].index(event)
        groups = hooks.members[at][2]
        others = [one for one in _inner(group) if not _is_mine(one, agent)]
        if others:
            # The user added a hook to our group: that hook stays.
            inner = groups.members[index][2].get("hooks")
            assert inner is not None
            mine = [_is_mine(one, agent) for one in _inner(group)].index(True)
            text = jsonedit.remove(text, inner, mine)
        elif len(groups.members) > 1:
            text = jsonedit.remove(text, groups, index)
        elif len(hooks.members) > 1:
            text = jsonedit.remove(text, hooks, at)
        else:
            names = [name for name, _, _ in root.members]
            text = jsonedit.remove(text, root, names.index("hooks"))


def _is_mine(hook: object, agent: str) -> bool:
    return isinstance(hook, dict) and is_ours(hook.get("command"), agent)
