"""Steps that change a work tree, by hand and with git."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace

from tests.model.world import LIMIT, Tree, World

CONTENTS: dict[str, bytes] = {
    "none": b"",
    "one": b"one\n",
    "two": b"two\n",
    "six": b"six\n",
    "crlf": b"one\r\ntwo\r\n",
    "binary": b"\0\xff\x80" * 40,
    "lines": b"".join(b"line %d\n" % n for n in range(40)),
    "lines2": b"".join(b"line %d\n" % (n * (n != 20)) for n in range(40)),
    "long": b"x" * 9000,
    "large": b"L" * (LIMIT + 1),
}
RULES: dict[str, bytes] = {
    "ign": b"*.ign\n",
    "build": b"*.ign\n/build/\n",
    "a": b"*.ign\na\n",
    "d": b"d/\n",
    "not": b"*.ign\n!keep.ign\n/d/*\n!/d/a\n",
    "all": b"*\n!.gitignore\n!/a\n",
    "nothing": b"",
}


def place(tree: Tree, path: bytes) -> bytes:
    """Where a path lies."""
    return os.path.join(os.fsencode(tree.root), path)


def clear(tree: Tree, path: bytes) -> None:
    """Removes what there is at a path, if anything."""
    where = place(tree, path)
    if os.path.isdir(where) and not os.path.islink(where):
        shutil.rmtree(where)
    elif os.path.lexists(where):
        os.unlink(where)


def make_way(tree: Tree, path: bytes) -> None:
    """Makes the directories that a path lies in, in place of whatever is there."""
    above = b""
    for part in path.split(b"/")[:-1]:
        above = above + b"/" + part if above else part
        where = place(tree, above)
        if os.path.islink(where) or not os.path.isdir(where):
            clear(tree, above)
            os.mkdir(where)


def through_link(tree: Tree, path: bytes) -> bool:
    """Whether a symbolic link is on the way to a path."""
    parts = path.split(b"/")
    return any(
        os.path.islink(place(tree, b"/".join(parts[:at])))
        for at in range(1, len(parts))
    )


def write(world: World, tree: Tree, path: bytes, what: str, x: bool) -> None:
    """A file is rewritten, with another inode."""
    world.note(tree, "write", path, what, *(["+x"] if x else []))
    make_way(tree, path)
    clear(tree, path)
    with open(place(tree, path), "wb") as file:
        file.write(CONTENTS[what])
    os.chmod(place(tree, path), 0o755 if x else 0o644)


def touch_up(world: World, tree: Tree, path: bytes, byte: int) -> None:
    """A file is changed in place and keeps its size, its inode and its time."""
    where = place(tree, path)
    if through_link(tree, path) or os.path.islink(where) or not os.path.isfile(where):
        return
    world.note(tree, "touch-up", path, str(byte))
    status = os.stat(where)
    with open(where, "r+b") as file:
        file.write(bytes([byte]) if status.st_size else b"")
    os.utime(where, ns=(status.st_atime_ns, status.st_mtime_ns))


def append(world: World, tree: Tree, path: bytes) -> None:
    """A file grows."""
    where = place(tree, path)
    if through_link(tree, path) or os.path.islink(where) or not os.path.isfile(where):
        return
    world.note(tree, "append", path)
    with open(where, "ab") as file:
        file.write(b"more\n")


def chmod(world: World, tree: Tree, path: bytes, x: bool) -> None:
    """The exec bit is set or taken."""
    where = place(tree, path)
    if through_link(tree, path) or os.path.islink(where) or not os.path.isfile(where):
        return
    world.note(tree, "chmod", "+x" if x else "-x", path)
    os.chmod(where, 0o755 if x else 0o644)


def respelled(tree: Tree, path: bytes, to: bytes) -> bool:
    """Whether two names are one file to the disk, which has it by the first of them."""
    above, _, last = to.rpartition(b"/")
    names = os.listdir(place(tree, above))
    return os.path.lexists(place(tree, to)) and last not in names


def rename(world: World, tree: Tree, path: bytes, to: bytes, back: bool) -> None:
    """A file or directory gets another name; with `back` the two change places."""
    old, new = place(tree, path), place(tree, to)
    if (
        through_link(tree, path)
        or not os.path.lexists(old)
        or to.startswith(path + b"/")
        or path.startswith(to + b"/")
    ):
        return
    world.note(tree, "exchange" if back else "rename", path, to)
    make_way(tree, to)
    if not os.path.lexists(old):
        return
    if back and os.path.lexists(new) and not respelled(tree, path, to):
        os.rename(new, old + b".swap")
    elif not respelled(tree, path, to):
        clear(tree, to)
    try:
        if os.path.lexists(old):
            os.rename(old, new)
    except OSError as error:
        # As with a directory of the lower layer of an overlay.
        world.note(tree, "#", str(error))
    if os.path.lexists(old + b".swap"):
        os.rename(old + b".swap", new if os.path.lexists(old) else old)


def symlink(world: World, tree: Tree, path: bytes, to: bytes) -> None:
    """A symbolic link is made."""
    world.note(tree, "ln", "-s", to, path)
    make_way(tree, path)
    clear(tree, path)
    os.symlink(to, place(tree, path))


def hardlink(world: World, tree: Tree, path: bytes, to: bytes) -> None:
    """A file gets a second name, where the disk can do that."""
    where = place(tree, path)
    if through_link(tree, path) or os.path.islink(where) or not os.path.isfile(where):
        return
    if path == to or to.startswith(path + b"/") or path.startswith(to + b"/"):
        return
    world.note(tree, "ln", path, to)
    make_way(tree, to)
    if os.path.lexists(place(tree, to)) and os.path.samestat(
        os.lstat(where), os.lstat(place(tree, to))
    ):
        return
    clear(tree, to)
    try:
        os.link(where, place(tree, to))
    except OSError:
        shutil.copy2(where, place(tree, to))


def mkdir(world: World, tree: Tree, path: bytes) -> None:
    """An empty directory is made."""
    world.note(tree, "mkdir", "-p", path)
    make_way(tree, path + b"/x")


def delete(world: World, tree: Tree, path: bytes) -> None:
    """A file, or a whole directory, is deleted."""
    if through_link(tree, path):
        return
    world.note(tree, "rm", "-rf", path)
    clear(tree, path)


def wreck(world: World, tree: Tree, every: int) -> None:
    """An agent removes nearly everything, ignored files included."""
    world.note(tree, "wreck", str(every))
    for number, path in enumerate(sorted(os.listdir(os.fsencode(tree.root)))):
        if path != b".git" and number % 3 != every:
            clear(tree, path)


def fifo(world: World, tree: Tree, path: bytes) -> None:
    """A named pipe is made."""
    world.note(tree, "mkfifo", path)
    make_way(tree, path)
    clear(tree, path)
    os.mkfifo(place(tree, path))


def rules(world: World, tree: Tree, path: bytes, what: str) -> None:
    """An ignore file changes."""
    world.note(tree, "rules", path, what)
    if path == b"info/exclude":
        where = tree.repo.git_dir / "info"
        where.mkdir(exist_ok=True)
        (where / "exclude").write_bytes(RULES[what])
        return
    make_way(tree, path)
    clear(tree, path)
    with open(place(tree, path), "wb") as file:
        file.write(RULES[what])


def configure(world: World, tree: Tree, key: str, value: str | None) -> None:
    """A setting of gitcp's changes."""
    world.git(tree, "config", "--unset-all", key)
    if value is not None:
        world.git(tree, "config", "--add", key, value)


def nested(world: World, tree: Tree, path: bytes, commit: bool) -> None:
    """A directory, whatever it holds, becomes a repository of its own."""
    make_way(tree, path + b"/x")
    where = replace(tree, root=tree.root / os.fsdecode(path))
    world.git(where, "init", "-q", "--template=", "-b", "main")
    if commit:
        world.git(where, "add", "-A")
        world.git(where, "commit", "-q", "--allow-empty", "-m", "nested")


def unnest(world: World, tree: Tree, path: bytes) -> None:
    """A nested repository becomes a plain directory."""
    if os.path.isdir(place(tree, path + b"/.git")) and not through_link(tree, path):
        world.note(tree, "rm", "-rf", path + b"/.git")
        shutil.rmtree(place(tree, path + b"/.git"))


def submodule(world: World, tree: Tree, path: str) -> None:
    """A submodule is added."""
    source = world.home / "sub"
    world.git(tree, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add",
              "--force", str(source), path)  # fmt: skip


def git(world: World, tree: Tree, commands: Sequence[Sequence[str]]) -> None:
    """git at work; what fails, fails."""
    for command in commands:
        world.git(tree, *command)
