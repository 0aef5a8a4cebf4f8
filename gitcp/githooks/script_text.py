"""The lines in a hook script that call gitcp: insert, find, remove.

gitcp inserts a few lines after the first line of a hook that is a shell script. The hook keeps
its name, directory, input and exit status. Removing the lines restores the former content.
"""

import re
import shlex

RUNNER = "gitcp-hook"
CHAINED = "gitcp-chained"
_SHEBANG = b"#!/bin/sh\n"
_BEGIN = "# >>> gitcp"
_WHOLE = "# >>> gitcp made this file"
_END = "# <<< gitcp"
_BLOCK = rb"(?ms)^# >>> gitcp[^\n]*\n.*?^# <<< gitcp\n"
_SHELL = (
    rb"#![ \t]*(?:/[\w./+-]*/)?(?:env[ \t]+(?:-S[ \t]+)?)?"
    rb"(?:ba|da|a|z|k|mk)?sh(?:[ \t][^\n\r]*)?\n"
)
# These hooks read rewritten commits from their input; chained hooks have to read it, too.
_LISTENS = frozenset({"post-rewrite"})


def lines(name: str, *, whole: bool = False, then: str | None = None) -> bytes:
    """Returns the lines that call gitcp; `then` is a hook to `exec` afterwards.

    With `whole` they state that gitcp made the whole file.
    """
    beside = f'"${{0%/*}}/{RUNNER}"'
    head = f"{_WHOLE if whole else _BEGIN}; `gitcp uninstall git-hooks` takes it away"
    if name in _LISTENS:
        body = (
            f"if [ -f {beside} ]; then\n"
            "  gitcp_input=$(cat)\n"
            f'  printf \'%s\\n\' "$gitcp_input" | sh {beside} {name} "$@" || :\n'
            '  if [ -n "$gitcp_input" ]; then\n'
            "    exec <<GITCP_INPUT\n$gitcp_input\nGITCP_INPUT\n"
            "  fi\n"
            "fi\n"
        )
    else:
        body = f'if [ -f {beside} ]; then sh {beside} {name} "$@" </dev/null || :; fi\n'
    if then is not None:
        body += f'if [ -x {then} ]; then exec {then} "$@"; fi\n'
    return f"{head}\n{body}{_END}\n".encode("utf-8", "surrogateescape")


def made(name: str, *, then: str | None = None) -> bytes:
    """Returns a whole hook that calls gitcp, and then runs another hook if there is one."""
    return _SHEBANG + lines(name, whole=True, then=then)


def forward(then: str) -> bytes:
    """Returns a whole hook that only runs another hook."""
    body = f'{_WHOLE}\nif [ -x {then} ]; then exec {then} "$@"; fi\n{_END}\n'
    return _SHEBANG + body.encode("utf-8", "surrogateescape")


def beside(name: str) -> str:
    """Returns the path, for the shell, of a hook that gitcp has moved aside."""
    return f'"${{0%/*}}/{CHAINED}/{name}"'


def elsewhere(directory: str, name: str) -> str:
    """Returns the path, for the shell, of a hook in another directory."""
    return shlex.quote(f"{directory}/{name}")


def is_shell(content: bytes) -> bool:
    """Whether shell lines can be inserted after the first line of a hook."""
    return re.match(_SHELL, content) is not None and b"\0" not in content


def insert(content: bytes, name: str) -> bytes:
    """Returns a shell script with the lines that call gitcp after its first line."""
    first, newline, rest = content.partition(b"\n")
    return first + newline + lines(name) + rest


def is_joined(content: bytes) -> bool:
    """Whether a hook has gitcp's lines."""
    return re.search(_BLOCK, content) is not None


def is_made(content: bytes) -> bool:
    """Whether gitcp made the whole hook."""
    return (
        content.startswith(_SHEBANG + _WHOLE.encode()) and remove(content) == _SHEBANG
    )


def remove(content: bytes) -> bytes:
    """Returns a hook without gitcp's lines."""
    return re.sub(_BLOCK, b"", content)


def runner(template: bytes, program: list[str]) -> bytes:
    """Returns the script that gitcp's lines call, for this installation of gitcp."""
    words = " ".join(map(shlex.quote, program)).encode("utf-8", "surrogateescape")
    first = shlex.quote(program[0]).encode("utf-8", "surrogateescape")
    return template.replace(b"@PROGRAM@", words).replace(b"@FIRST@", first)
