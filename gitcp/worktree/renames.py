"""System calls: rename without replacing, and exchange of two names.

Both are one call on Linux (`renameat2`) and macOS (`renameatx_np`). A kernel or file
system without them says so, and the callers take the longer way.
"""

import errno
import os
import platform
import sys
from collections.abc import Callable
from functools import cache

_LINUX_NOREPLACE, _LINUX_EXCHANGE = 1, 2
_MAC_SWAP, _MAC_EXCL = 2, 4
# For a C library without the function; the same numbers hold for every kernel.
_NUMBERS = {"x86_64": 316, "aarch64": 276, "riscv64": 276}
# A sandbox that does not know the call answers EPERM.
_UNSUPPORTED = frozenset(
    {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}
)
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS})

# Takes directory, old name, directory, new name and flags; 0 or -1.
_Call = Callable[[int, bytes, int, bytes, int], int]


@cache
def _system() -> tuple[_Call | None, int, int]:
    """Returns the system's call, and its flags for no replacement and exchange."""
    import ctypes  # noqa: PLC0415  a plan alone renames nothing

    library = ctypes.CDLL(None, use_errno=True)
    pair = (ctypes.c_int, ctypes.c_char_p)
    kinds = (*pair, *pair, ctypes.c_uint)
    mac = sys.platform == "darwin"
    flags = (_MAC_EXCL, _MAC_SWAP) if mac else (_LINUX_NOREPLACE, _LINUX_EXCHANGE)
    function = getattr(library, "renameatx_np" if mac else "renameat2", None)
    if function is not None:
        function.argtypes = kinds
        return function, *flags
    number = _NUMBERS.get(platform.machine())
    if sys.platform != "linux" or number is None or not hasattr(library, "syscall"):
        return None, *flags
    library.syscall.argtypes = (ctypes.c_long, *kinds)
    return lambda *given: int(library.syscall(number, *given)), *flags


def _attempt(directory: int, old: bytes, new: bytes, flag: int) -> bool:
    call, *_ = _system()
    if call is None:
        return False
    if call(directory, old, directory, new, flag) == 0:
        return True
    import ctypes  # noqa: PLC0415

    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), old)


def exchange(directory: int, one: bytes, two: bytes) -> bool:
    """Exchanges two names in one step; False if that cannot be done here.

    Raises:
        OSError: a file is missing, or the disk refused.
    """
    return _attempt(directory, one, two, _system()[2])


def move_directory(directory: int, old: bytes, new: bytes) -> bool:
    """Renames a directory to a name that is free; False if only that cannot be had here.

    Raises:
        FileExistsError: something has the new name.
        OSError: the disk refused.
    """
    return _attempt(directory, old, new, _system()[1])


def move(directory: int, old: bytes, new: bytes) -> None:
    """Renames within a directory and never replaces what has the new name.

    If the file system offers neither such a rename nor hard links, a name that
    appears between the last look and the rename is replaced.

    Raises:
        FileExistsError: something has the new name.
        OSError: the disk refused.
    """
    if _attempt(directory, old, new, _system()[1]):
        return
    try:
        os.link(
            old, new, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False
        )
    except OSError as exc:
        if exc.errno not in _NO_LINKS:
            raise
    else:
        os.unlink(old, dir_fd=directory)
        return
    try:
        os.stat(new, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(old, new, src_dir_fd=directory, dst_dir_fd=directory)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
