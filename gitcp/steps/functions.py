"""Inspects the functions of steps: their kind, and their arguments."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gitcp.errors import UsageError
from gitcp.steps.model import Options, OutcomeUnknownError

Function = Callable[..., Any]


def is_async(function: Function) -> bool:
    """Whether calling a function returns a coroutine."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  an object that is called
    )


class NotAwaitedError(UsageError, OutcomeUnknownError):
    """The function of a step returned a coroutine, which was not run."""


def refuse_coroutine(options: Options, value: Any) -> None:
    """Raises if a function returned something that still has to be awaited.

    Raises:
        NotAwaitedError: the value is a coroutine.
    """
    if inspect.iscoroutine(value):
        value.close()
        raise NotAwaitedError(
            f"the function of {options.name!a} returned a coroutine that is not awaited",
            hint=f"`await session.step({options.name!r}, …)` with the coroutine function"
            " itself, not one that calls it",
        )


def refuse_generator(name: str, function: Function) -> None:
    """Raises if calling a function would do nothing.

    Raises:
        UsageError: the function is a generator.
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(
            f"the function of {name!a} is a generator: calling it does nothing",
            hint="give the step a function that returns its result",
        )


def bound(
    function: Function, arguments: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Function, Sequence[Any]]:
    """Returns a function and its arguments in the order of its parameters.

    So the same arguments are the same step, whether they are given by name or not.
    Keyword-only arguments come last, together.
    """
    if not named:
        return function, arguments
    given = inspect.signature(function).bind_partial(*arguments, **named)
    if not given.kwargs:
        return function, given.args

    def call(*all_of_them: Any, **extra: Any) -> Any:
        return function(*all_of_them[:-1], **all_of_them[-1], **extra)

    async def acall(*all_of_them: Any, **extra: Any) -> Any:
        return await call(*all_of_them, **extra)

    wrapper = functools.wraps(function)(acall if is_async(function) else call)
    return wrapper, (*given.args, given.kwargs)


def importable(function: Callable[..., Any]) -> str:
    """Returns `module:name` of a function that another process can import, or nothing."""
    module = getattr(function, "__module__", "") or ""
    name = getattr(function, "__qualname__", "") or ""
    if not module or module == "__main__" or "<" in name or not name:
        return ""
    return f"{module}:{name}"
