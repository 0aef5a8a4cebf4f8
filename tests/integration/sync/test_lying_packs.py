"""Bundles and remotes whose packs and indexes lie: nothing of them is adopted.

Counts, offsets and bases that lead elsewhere, with checksums that are right; prerequisites
and tips that are nowhere.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.clones import refs, save
from tests.support.forms import new_form
from tests.support.gitrepo import git, git_line, make_repo, tree_bytes
from tests.support.inprocess import invoke, ok

OFS_DELTA, REF_DELTA = 6, 7
REF = "refs/gitcp/s/main/main"


def absent() -> str:
    """The id of an object that is nowhere."""
    return "ab" * new_form().size


def head(kind: int, size: int) -> bytes:
    raw = bytearray()
    byte = kind << 4 | size & 15
    size >>= 4
    while size:
        raw.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    return bytes(raw) + bytes([byte])


def distance(back: int) -> bytes:
    """An offset as an OFS_DELTA has it."""
    raw = [back & 0x7F]
    while back := back >> 7:
        back -= 1
        raw.insert(0, 0x80 | back & 0x7F)
    return bytes(raw)


# From a base of 4 bytes, the same 4 bytes.
COPY = b"\x04\x04\x90\x04"


def added(pack: bytes, *entries: bytes, count: int | None = None) -> bytes:
    """A pack with more entries, or with a number of them that is a lie."""
    (there,) = struct.unpack(">I", pack[8:12])
    number = there + len(entries) if count is None else count
    form = new_form()
    body = pack[:8] + struct.pack(">I", number) + pack[12 : -form.size]
    body += b"".join(entries)
    return body + hashlib.new(form.name, body).digest()


def ofs_delta(back: int) -> bytes:
    return head(OFS_DELTA, len(COPY)) + distance(back) + zlib.compress(COPY)


def ref_delta(base: str) -> bytes:
    return head(REF_DELTA, len(COPY)) + bytes.fromhex(base) + zlib.compress(COPY)


PACKS: dict[str, Callable[[bytes], bytes]] = {
    "fewer objects than it says": lambda pack: added(pack, count=9_000),
    "as many as no memory holds": lambda pack: added(pack, count=2**32 - 1),
    "more objects than it says": lambda pack: added(pack, count=1),
    "a base before the pack": lambda pack: added(pack, ofs_delta(len(pack) + 999)),
    "a base in the head": lambda pack: added(
        pack, ofs_delta(len(pack) - new_form().size - 3)
    ),
    "a base amid an object": lambda pack: added(pack, ofs_delta(5)),
    "a base that is itself": lambda pack: added(pack, ofs_delta(0)),
    "a base of too many bytes": lambda pack: added(
        pack, head(OFS_DELTA, 4) + b"\xff" * 20 + zlib.compress(COPY)
    ),
    "a base that is nowhere": lambda pack: added(pack, ref_delta(absent())),
    "a size that is a lie": lambda pack: added(
        pack, head(3, 2**40) + zlib.compress(b"small")
    ),
    "a kind that does not exist": lambda pack: added(
        pack, head(5, 4) + zlib.compress(b"four")
    ),
}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A session as `gitcp export` writes it."""
    repo = make_repo(tmp_path / "theirs", {"a": b"1\n"})
    ok(repo, "save", "-m", "first")
    path = tmp_path / "session.bundle"
    ok(repo, "export", "last", "-o", path)
    return path


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    repo = make_repo(tmp_path / "mine", {"mine": b"1\n"})
    ok(repo, "save", "-s", "own")
    return repo


def state(repo: Path) -> object:
    return refs(repo), tree_bytes(repo), tree_bytes(repo / ".git" / "objects")


def refused(repo: Path, *args: str | Path) -> str:
    before = state(repo)
    done = invoke(repo, *args)
    text = done.stderr.decode("utf-8", "backslashreplace")
    assert done.returncode in {15, 19, 21}, (done.returncode, text)
    assert "Traceback" not in text
    assert state(repo) == before
    assert list((repo / ".git" / "gitcp").glob("tmp/*")) == []
    ok(repo, "verify")
    return text


@pytest.mark.parametrize("what", PACKS)
def test_a_bundle_whose_pack_lies_is_refused(bundle, mine, what):
    lines, _, pack = bundle.read_bytes().partition(b"\n\n")
    assert pack.startswith(b"PACK")
    bundle.write_bytes(lines + b"\n\n" + PACKS[what](pack))
    refused(mine, "import", bundle)


def test_prerequisites_that_are_nowhere_are_refused(bundle, mine):
    lines, _, pack = bundle.read_bytes().partition(b"\n\n")
    first, *others = lines.split(b"\n")
    needs = [b"-" + absent().encode() + b" needed"]
    bundle.write_bytes(b"\n".join([first, *needs, *others]) + b"\n\n" + pack)
    assert absent() in refused(mine, "import", bundle)


@pytest.mark.parametrize("of", ["commit", "tree"])
def test_prerequisites_that_are_left_out_are_refused(tmp_path, mine, of):
    """A thin bundle whose head does not say on what it stands."""
    repo = make_repo(tmp_path / "theirs", {"a": b"1\n" * 900, "d/b": b"2\n"})
    ok(repo, "save", "-m", "first")
    start = git_line(repo, "rev-parse", REF)
    (repo / "a").write_bytes(b"1\n" * 900 + b"more\n")
    ok(repo, "save", "-m", "second")
    path = tmp_path / "thin.bundle"
    git(repo, "bundle", "create", "-q", str(path), REF, f"^{start}")
    raw = path.read_bytes()
    if of == "tree":
        # The same commit, with its own tree alone.
        needed = f"^{start}^{{tree}}"
        tip = git_line(repo, "rev-parse", REF)
        pack = git(
            repo,
            "pack-objects",
            "--stdout",
            "--revs",
            "-q",
            input=f"{tip}\n^{start}\n{needed}\n".encode(),
        )
        raw = raw.partition(b"\n\n")[0] + b"\n\n" + pack
    lines = [
        line for line in raw.partition(b"\n\n")[0].split(b"\n") if line[:1] != b"-"
    ]
    path.write_bytes(b"\n".join(lines) + b"\n\n" + raw.partition(b"\n\n")[2])
    refused(mine, "import", path)


def test_a_tip_that_is_not_in_the_pack_is_refused(bundle, mine):
    lines, _, pack = bundle.read_bytes().partition(b"\n\n")
    kept = [line for line in lines.split(b"\n") if not line.endswith(REF.encode())]
    kept.append(f"{absent()} {REF}".encode())
    bundle.write_bytes(b"\n".join(kept) + b"\n\n" + pack)
    refused(mine, "import", bundle)


# --- a remote whose own index lies ----------------------------------------------------

_OIDS = 8 + 256 * 4
Offsets = dict[str, int]


def exchanged(offsets: Offsets, one: str, other: str) -> Offsets:
    return {**offsets, one: offsets[other], other: offsets[one]}


INDEXES: dict[str, Callable[[Offsets, list[str]], Offsets]] = {
    "a commit for its tree": lambda offsets, line: exchanged(offsets, *line[:2]),
    "all amid an object": lambda offsets, _: {
        oid: offset + 3 for oid, offset in offsets.items()
    },
    "all behind the pack": lambda offsets, _: dict.fromkeys(offsets, 2**30),
    "all in a table that is not there": lambda offsets, _: dict.fromkeys(
        offsets, 2**31 + 7
    ),
}


def lie(hub: Path, change: Callable[[Offsets, list[str]], Offsets]) -> None:
    """Changes the offsets in the index of a remote's pack; its checksum is right."""
    line = [
        git_line(hub, "rev-parse", f"{REF}{part}")
        for part in ("", "^{tree}", ":.gitcp")
    ]
    # Its reverse index would not lie.
    git(hub, "-c", "pack.writeReverseIndex=false", "repack", "-adq")
    (index,) = (hub / "objects" / "pack").glob("*.idx")
    raw = index.read_bytes()
    (count,) = struct.unpack(">I", raw[_OIDS - 4 : _OIDS])
    form = new_form()
    oids = [raw[_OIDS + form.size * n :][: form.size].hex() for n in range(count)]
    # After the ids, a checksum of four bytes for each.
    at = _OIDS + count * (form.size + 4)
    offsets = struct.unpack(f">{count}I", raw[at : at + 4 * count])
    changed = change(dict(zip(oids, offsets, strict=True)), line)
    packed = struct.pack(f">{count}I", *(changed[oid] for oid in oids))
    body = raw[:at] + packed + raw[at + 4 * count : -form.size]
    index.chmod(0o644)
    index.write_bytes(body + hashlib.new(form.name, body).digest())


@pytest.fixture
def pushed(hub: Path, ann: Path) -> Path:
    save(ann, a_py=b"theirs\n")
    ok(ann, "push")
    return hub


@pytest.mark.parametrize("what", INDEXES)
def test_a_remote_whose_index_lies_is_refused(pushed, bob, what):
    ok(bob, "save", "-s", "own")
    lie(pushed, INDEXES[what])
    refused(bob, "pull")


def test_what_comes_whole_all_the_same_is_sound(pushed, bob):
    # Both are sent, each for the other, and have the ids of what they hold here.
    lie(pushed, lambda offsets, line: exchanged(offsets, *line[1:3]))
    ok(bob, "pull")
    assert ok(bob, "verify")["ok"]
    git(bob, "fsck", "--strict")


def test_the_same_remote_with_an_index_that_is_right_is_pulled(pushed, bob):
    lie(pushed, lambda offsets, _: offsets)
    assert [one["result"] for one in ok(bob, "pull")["branches"]] == ["created"]
