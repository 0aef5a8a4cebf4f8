"""Permissions of the files that gitcp writes, by git's rules for `core.sharedRepository`.

It does what git's `adjust_shared_perm` does: all members of a group can use a shared
file, whatever the umask of the member who wrote it.
"""

import os
import re
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gitcp import durable
from gitcp.errors import UnsupportedRepositoryError

_GROUP = 0o660
_EVERYBODY = 0o664
_WORDS = {
    **dict.fromkeys(("umask", "false", "no", "off", ""), 0),
    **dict.fromkeys(("group", "true", "yes", "on"), _GROUP),
    **dict.fromkeys(("all", "world", "everybody"), _EVERYBODY),
}
_OCTAL = r"[0-7]+"
_NUMBERS = {0: 0, 1: _GROUP, 2: _EVERYBODY}
_OWNER = 0o600
# If new files inherit a directory's group anyway, git leaves this bit alone.
_SET_GROUP = stat.S_ISGID if sys.platform.startswith("linux") else 0


class Access(NamedTuple):
    """The permissions that `core.sharedRepository` asks for.

    `bits` are permissions of files: added to those that the umask leaves or, if they
    are `exact`, in place of them. Without the setting they are 0, and nothing is
    adjusted.
    """

    bits: int = 0
    exact: bool = False

    @property
    def shared(self) -> bool:
        """Whether users other than the owner may use the repository."""
        return self.bits != 0

    def mode(self, mode: int) -> int:
        """Returns the permissions for a file whose `mode`, with its type, is given."""
        if not self.shared:
            return stat.S_IMODE(mode)
        bits = self.bits
        if not mode & stat.S_IWUSR:
            bits &= ~0o222
        if mode & stat.S_IXUSR:
            bits |= (bits & 0o444) >> 2
        found = (mode & 0o7000 if self.exact else stat.S_IMODE(mode)) | bits
        if stat.S_ISDIR(mode):
            found |= (found & 0o444) >> 2
            if found & 0o060:
                found |= _SET_GROUP
        return found

    def adjust(self, path: str | os.PathLike[str]) -> None:
        """Gives a file or directory of ours the permissions that git would give it."""
        if not self.shared:
            return
        status = os.lstat(path)
        wanted = self.mode(status.st_mode)
        if stat.S_IMODE(status.st_mode) != wanted and not stat.S_ISLNK(status.st_mode):
            os.chmod(path, wanted)

    def make_directories(self, directory: Path) -> None:
        """Makes a directory of git's, and those above it, as git would; durably."""
        if directory.is_dir():
            return
        self.make_directories(directory.parent)
        # If another process has just made it, it may not be durable yet.
        with suppress(FileExistsError):
            directory.mkdir()
            self.adjust(directory)
        durable.sync_directory(directory.parent)


PRIVATE = Access()


def parse(value: str | None) -> Access:
    """Returns what a value of `core.sharedRepository` means; None if it is not set.

    Raises:
        UnsupportedRepositoryError: git does not understand it either.
    """
    word = (value or "").strip()
    if word.lower() in _WORDS:
        return Access(_WORDS[word.lower()])
    number = int(word, 8) if re.fullmatch(_OCTAL, word) else None
    if number in _NUMBERS:
        return Access(_NUMBERS[number])
    if number is not None and number & _OWNER == _OWNER:
        # A directory that may be read may also be entered.
        return Access(number & 0o666, exact=True)
    if number is None and re.fullmatch(r"[+-]?\d+", word):
        return Access(_GROUP)
    raise UnsupportedRepositoryError(
        f"core.sharedRepository is {value!a}, which git does not understand",
        hint="see core.sharedRepository in `git help config`",
    )
