"""Serialises results and arguments of steps as JSON: exactly, or refuses."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from gitcp.errors import UsageError
from gitcp.format import jsontext
from gitcp.steps.model import Codec

_DEPTH = 200
_SHOWN = 60


def dump(value: Any, codec: Codec | None, what: str) -> bytes:
    """Returns a value as JSON text.

    Raises:
        UsageError: JSON cannot hold the value; names the part that it cannot hold.
    """
    if codec is not None:
        try:
            value = codec.dump(value)
        except Exception as exc:
            # The step is done, even if its result cannot be stored.
            raise UsageError(
                f"the codec {codec.name!a} did not make {what} JSON:"
                f" {type(exc).__qualname__}: {exc}",
                hint="check the codec",
            ) from exc
    _check(value, what, 0)
    try:
        # ASCII, so that a lone surrogate, as in the output of programs, survives as an escape.
        return json.dumps(
            value, separators=(",", ":"), allow_nan=False, default=dict
        ).encode()
    except ValueError as exc:
        raise UsageError(
            f"{what} has a number that is too long: {exc}", hint="make it text"
        ) from exc


def load(raw: bytes, codec: Codec | None) -> Any:
    """Returns the value of a JSON text."""
    value = jsontext.decode(raw)
    return codec.load(value) if codec is not None else value


def digest(arguments: Sequence[Any]) -> str:
    """Returns a digest of arguments; empty if JSON cannot hold them."""
    try:
        _check(list(arguments), "", 0)
    except UsageError:
        return ""
    try:
        text = json.dumps(
            list(arguments), separators=(",", ":"), sort_keys=True, default=dict
        )
    except ValueError:
        # A number is too long to convert to text.
        return ""
    return hashlib.sha256(text.encode()).hexdigest()


def _check(value: Any, where: str, depth: int) -> None:
    if value is None or isinstance(value, bool | str | int):
        return
    if depth > _DEPTH:
        raise UsageError(f"{where[:_SHOWN]}… is nested too deeply", hint="flatten it")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise UsageError(
                f"{where} is {value}, which JSON cannot hold", hint="None, or text"
            )
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            _check(inner, f"{where}[{number}]", depth + 1)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise UsageError(
                    f"{where} has the key {key!a}, but JSON keys must be text",
                    hint="make the keys text, or give the step a codec",
                )
            _check(inner, f"{where}[{key!a}]", depth + 1)
    else:
        raise UsageError(
            f"{where} is a {type(value).__qualname__}, which JSON cannot hold",
            hint="return dicts, lists, text, numbers; or give the step a codec",
        )
