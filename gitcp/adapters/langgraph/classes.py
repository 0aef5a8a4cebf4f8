"""Decides which classes gitcp may load when it rebuilds a graph's state.

LangGraph stores an object as its class's module and name, and its fields. Its own
serializer either imports what a checkpoint names, even one made elsewhere, or returns the
fields as a dict. The one here imports nothing: it rebuilds plain data of classes that
the program has loaded itself, and refuses the rest by name.
"""

import dataclasses
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.event_hooks import (
    SerdeEvent,
    register_serde_event_listener,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from gitcp.errors import UsageError

_Named = tuple[str, str]
_STRICT = "LANGGRAPH_STRICT_MSGPACK"
_BLOCKED = "msgpack_blocked"
_active = threading.local()


class BlockedClassError(UsageError):
    """A state holds an object of a class that is not allowed to be rebuilt."""


def default_serializer() -> SerializerProtocol:
    """Returns the serializer of a saver that was given none.

    With LANGGRAPH_STRICT_MSGPACK, LangGraph registers the classes that a graph's state
    is declared with: then nothing else is allowed, and nothing has to be judged here.
    """
    if os.environ.get(_STRICT, "").lower() in {"1", "true", "yes"}:
        return JsonPlusSerializer(allowed_msgpack_modules=None)
    return LoadedClasses()


class LoadedClasses(JsonPlusSerializer):
    """Rebuilds data classes of loaded modules: pydantic, dataclass, enum, NamedTuple."""

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=None)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Returns the value.

        Raises:
            BlockedClassError: the data holds an object of a class that is not loaded, or of
                one that is more than data.
        """
        with _collecting() as blocked:
            value = super().loads_typed(data)
        if not blocked:
            return value
        judged = {named: _judge(*named) for named in sorted(blocked)}
        for (module, name), reason in judged.items():
            if reason is not None:
                raise BlockedClassError(
                    f"the state holds an object of {module}.{name}, {reason}",
                    hint="the user who wrote the state chose that class; if you trust them,"
                    " import the module first, or allow the class: GitcpSaver(path,"
                    " serde=JsonPlusSerializer(allowed_msgpack_modules="
                    f"[({module!r}, {name!r})]))",
                )
        allowing = self.with_msgpack_allowlist(
            [named for named in judged if _find(*named) is not None]
        )
        # Later loads allow these at once.
        vars(self).update(vars(allowing))
        with _collecting():
            return super().loads_typed(data)


def _judge(module: str, name: str) -> str | None:
    """Returns why a class may not be rebuilt, or None if it may.

    A name that a loaded module does not have is allowed: nothing can be called by it,
    and LangGraph returns the fields, as it does for a class inside a function.
    """
    if module not in sys.modules:
        return "and that module is not imported"
    cls = _find(module, name)
    if cls is None or _is_data(cls):
        return None
    return "which is not a class of plain data"


def _find(module: str, name: str) -> object | None:
    # Not getattr: a module may import on demand.
    return vars(sys.modules[module]).get(name)


def _is_data(cls: object) -> bool:
    return isinstance(cls, type) and (
        issubclass(cls, Enum)
        or dataclasses.is_dataclass(cls)
        or (issubclass(cls, tuple) and hasattr(cls, "_fields"))
        or any(map(_is_of_pydantic, cls.__mro__))
    )


def _is_of_pydantic(base: type) -> bool:
    # By name: pydantic's own version 1 classes are others than those of `pydantic.v1`.
    return base.__module__.partition(".")[0] == "pydantic" and (
        base.__name__ == "BaseModel" or hasattr(base, "get_secret_value")
    )


# --- learning what LangGraph blocked ----------------------------------------------------


@contextmanager
def _collecting() -> Iterator[set[_Named]]:
    """Collects the classes that LangGraph blocks in this thread meanwhile."""
    outer: set[_Named] | None = getattr(_active, "blocked", None)
    _active.blocked = blocked = set[_Named]()
    try:
        yield blocked
    finally:
        _active.blocked = outer


def _note(event: SerdeEvent) -> None:
    blocked: set[_Named] | None = getattr(_active, "blocked", None)
    if blocked is not None and event["kind"] == _BLOCKED:
        blocked.add((event["module"], event["name"]))


def _is_for_others(record: logging.LogRecord) -> bool:
    """Drops LangGraph's warning of a block that is judged here."""
    return not (
        getattr(_active, "blocked", None) is not None
        and record.getMessage().startswith("Blocked deserialization of ")
    )


register_serde_event_listener(_note)
logging.getLogger(JsonPlusSerializer.__module__).addFilter(_is_for_others)
