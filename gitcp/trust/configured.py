"""Finds work tree paths that git's configuration makes git read or run.

The next git command runs or obeys these files. Only the user's configuration names them: a
folder of hooks, an included file, a program.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from gitcp.git.repository import Repository
from gitcp.trust.autoexec import folded, words

# The last parts of keys whose value is a command, a program, or a file that names programs.
_RUNS = words(
    """
    alternaterefscommand askpass attributesfile authorsprog cccmd clean cmd command
    defaultkeycommand difffilter driver editor external fsmonitor gitproxy headercmd helper
    hookspath httpd packobjectshook pager path process program receivepack
    recentobjectshook sendmailcmd smtpserver smudge sshcommand templatedir textconv tocmd
    tunnel update uploadpack vcs viewer
    """
)
_BARE = r"""[^\s"'`;&|<>()$=,!]+"""
_QUOTED = r"""'([^']+)'|"([^"]+)\""""
_SETS = r"(^|\s)(-c|--config-env|--exec-path|--upload-pack|--receive-pack)\b"
_HOOKS = "core.hookspath"
_INCLUDES = r"(?s)include\.path|includeif\..*\.path"


class Configured(NamedTuple):
    """Paths, with folded names, that the configuration names.

    `top` says that the top of the work tree is the folder of hooks; `hooks` are the folders
    in which git looks for hooks.
    """

    paths: frozenset[tuple[str, ...]] = frozenset()
    top: bool = False
    hooks: tuple[Path, ...] = ()

    def names(self, path: bytes) -> bool:
        """Whether a path is one of these, is below one, or contains one."""
        if not self.paths and not self.top:
            return False
        parts = tuple(folded(path))
        if self.top and len(parts) == 1 and parts[0] in _HOOK_NAMES:
            return True
        return any(
            parts[: len(one)] == one or one[: len(parts)] == parts for one in self.paths
        )


_HOOK_NAMES = words(
    """
    applypatch-msg commit-msg fsmonitor-watchman p4-changelist p4-post-changelist
    p4-pre-submit p4-prepare-changelist post-applypatch post-checkout post-commit
    post-index-change post-merge post-receive post-rewrite post-update pre-applypatch
    pre-auto-gc pre-commit pre-merge-commit pre-push pre-rebase pre-receive
    prepare-commit-msg proc-receive push-to-checkout reference-transaction
    sendemail-validate update
    """
)


def configured(repository: Repository, top: Path) -> Configured:
    """Returns the paths in a work tree that git's configuration names.

    Raises:
        GitFailedError: git cannot read its configuration.
    """
    raw = repository.git("config", "--list", "--show-origin", "-z")
    found: set[tuple[str, ...]] = set()
    hooks_here = False
    hooks = [repository.common_dir / "hooks"]
    tops = {os.fspath(top), os.path.realpath(top)}
    fields = raw.decode("utf-8", "surrogateescape").split("\0")
    for origin, setting in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = setting.partition("\n")
        key = key.lower()
        kind, _, source = origin.partition(":")
        # A relative origin is relative to the directory that git was started in.
        file = os.path.join(top, source) if kind == "file" else ""
        named = [file] if file else []
        if re.fullmatch(_INCLUDES, key):
            named += [value, os.path.join(os.path.dirname(file), value)]
        elif key == _HOOKS:
            named.append(value)
            hooks.append(top / os.path.expanduser(value))
            hooks_here = hooks_here or _inside(value or ".", tops) == [()]
        elif _runs(key, value):
            named += tokens(value)
        for one in named:
            found.update(parts for parts in _inside(one, tops) if parts)
    return Configured(frozenset(found), hooks_here, tuple(hooks))


def _runs(key: str, value: str) -> bool:
    """Whether a setting names a program, or a file that names one."""
    if key.startswith("alias."):
        # An alias of git's own commands can set a program for one of them.
        return value.lstrip().startswith("!") or re.search(_SETS, value) is not None
    return key.rpartition(".")[2] in _RUNS or key.startswith(("pager.", "hook."))


def tokens(value: str) -> Iterator[str]:
    """Yields the parts of a command that may be paths: quoted parts and words."""
    yield value
    for match in re.finditer(_QUOTED, value):
        yield match[1] or match[2]
    yield from re.findall(_BARE, value)


def _inside(value: str, tops: set[str]) -> list[tuple[str, ...]]:
    """Returns the paths in the work tree that a value may mean, with and without links."""
    if not value or "\0" in value:
        return []
    spelled = os.path.expanduser(value)
    found: set[tuple[str, ...]] = set()
    for top in sorted(tops):
        whole = os.path.join(top, spelled)
        for one in {os.path.normpath(whole), os.path.realpath(whole)}:
            inner = os.path.relpath(one, top)
            if inner == ".":
                found.add(())
            elif inner != ".." and not inner.startswith("../"):
                found.add(tuple(folded(os.fsencode(inner))))
    return sorted(found)
