"""One hook: adds gitcp to the file, brings it up to date, and removes it again."""

import os
import stat
from pathlib import Path

from gitcp.errors import UsageError
from gitcp.githooks import script_text

# Suffixes that frameworks give to a hook that was there before them.
_MOVED_ASIDE = (".legacy", ".old")


def is_joined(path: Path) -> bool:
    """Whether gitcp's lines are in a hook."""
    content = read(path)
    return content is not None and script_text.is_joined(content)


def join(directory: Path, name: str) -> bool:
    """Adds gitcp to one hook; returns whether that changed anything."""
    path = directory / name
    _unchain_moved(path)
    try:
        status = path.lstat()
    except FileNotFoundError:
        return write(path, script_text.made(name))
    if stat.S_ISREG(status.st_mode):
        content = path.read_bytes()
        if script_text.is_joined(content):
            return _renew(path, name, content)
        if script_text.is_shell(content) and status.st_mode & stat.S_IXUSR:
            return write(path, script_text.insert(content, name))
    elif not stat.S_ISLNK(status.st_mode):
        raise UsageError(
            f"{path} is neither a file nor a link", hint="move it out of git's way"
        )
    _move_aside(path)
    return write(path, script_text.made(name, then=script_text.beside(name)))


def _renew(path: Path, name: str, content: bytes) -> bool:
    """Updates gitcp's lines in a hook to those of this gitcp."""
    if not script_text.is_made(content):
        return write(path, script_text.insert(script_text.remove(content), name))
    chained = os.path.lexists(_beside(path))
    return write(
        path, script_text.made(name, then=script_text.beside(name) if chained else None)
    )


def _unchain_moved(path: Path) -> None:
    """Removes gitcp from a hook that a framework has moved aside, and may still call.

    gitcp adds itself to the new hook; if both called it, it would run twice.
    """
    for suffix in _MOVED_ASIDE:
        moved = path.with_name(path.name + suffix)
        content = read(moved)
        if content is None or not script_text.is_joined(content):
            continue
        chained = _beside(path)
        if not script_text.is_made(content):
            write(moved, script_text.remove(content))
        elif os.path.lexists(chained):
            _move_back(chained, moved)
        else:
            moved.unlink()


def leave(directory: Path, name: str) -> bool:
    """Removes gitcp from one hook; returns whether that changed anything."""
    path = directory / name
    _unchain_moved(path)
    content = read(path)
    chained = _beside(path)
    if content is None or not script_text.is_joined(content):
        if _same(chained, path):
            # A process was killed after it gave the hook a second name, before it removed
            # the first.
            chained.unlink()
        return False
    if not script_text.is_made(content):
        return write(path, script_text.remove(content))
    if os.path.lexists(chained):
        _move_back(chained, path)
    else:
        path.unlink()
    return True


def _beside(path: Path) -> Path:
    """Returns where a hook is moved aside to: never through a link, out of the directory.

    Raises:
        UsageError: there is a link in place of the directory.
    """
    directory = path.parent / script_text.CHAINED
    if directory.is_symlink():
        raise UsageError(f"{directory} is a link", hint="move it out of git's way")
    return directory / path.name


def _same(chained: Path, path: Path) -> bool:
    """Whether a hook that was moved aside still has its first name as well."""
    if chained.is_symlink():
        return path.is_symlink() and _target(chained) == os.readlink(path)
    return chained.exists() and path.exists() and chained.samefile(path)


def _target(chained: Path) -> str:
    """Returns the target that a link had before it was moved aside."""
    return os.readlink(chained).removeprefix(os.pardir + os.sep)


def _move_aside(path: Path) -> None:
    """Gives a hook a second name before it loses the first, so that it is never missing."""
    chained = _beside(path)
    chained.parent.mkdir(exist_ok=True)
    chained.unlink(missing_ok=True)
    if path.is_symlink():
        chained.symlink_to(os.path.join(os.pardir, os.readlink(path)))
    else:
        os.link(path, chained)


def _move_back(chained: Path, path: Path) -> None:
    if chained.is_symlink():
        temporary = path.with_name(f".{path.name}.gitcp-{os.getpid()}")
        temporary.symlink_to(_target(chained))
        temporary.replace(path)
        chained.unlink()
    else:
        chained.replace(path)


def read(path: Path) -> bytes | None:
    """Returns the content of a regular file, or None."""
    try:
        # Opening a pipe would wait for its other end.
        return path.read_bytes() if stat.S_ISREG(path.lstat().st_mode) else None
    except OSError:
        return None


def write(path: Path, content: bytes) -> bool:
    """Writes `content` to an executable file, atomically; False if it is there already."""
    old = read(path)
    if old == content and os.access(path, os.X_OK):
        return False
    mask = os.umask(0)
    os.umask(mask)
    mode = stat.S_IMODE(path.stat().st_mode) if old is not None else 0o777 & ~mask
    temporary = path.with_name(f".{path.name}.gitcp-{os.getpid()}")
    try:
        temporary.write_bytes(content)
        temporary.chmod(mode | stat.S_IXUSR)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return True
