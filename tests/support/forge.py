"""Objects that no git would write, packed by hand; bundles and loose objects of them."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

from gitcp.format.oid import SHA256, ObjectFormat
from tests.support.forms import new_form
from tests.support.gitrepo import git

KINDS = {"commit": 1, "tree": 2, "blob": 3}
OFS_DELTA, REF_DELTA = 6, 7
WHO = b"gitcp <gitcp@localhost> 1700000000 +0000"
Entry = tuple[bytes, bytes, bytes]


def object_id(kind: str, data: bytes, form: ObjectFormat | None = None) -> bytes:
    hasher = hashlib.new((form or new_form()).name)
    hasher.update(f"{kind} {len(data)}\0".encode() + data)
    return hasher.digest()


class Forge:
    """Collects objects, whatever they hold; nothing is checked.

    Their ids are those of the repositories that git makes here.
    """

    def __init__(self) -> None:
        self.form = new_form()
        self.packed: list[bytes] = []
        self.loose: dict[bytes, bytes] = {}

    def add(self, kind: str, data: bytes) -> bytes:
        oid = object_id(kind, data, self.form)
        if oid not in self.loose:
            self.packed.append(head(KINDS[kind], len(data)) + zlib.compress(data, 1))
            self.loose[oid] = zlib.compress(
                f"{kind} {len(data)}\0".encode() + data, level=1
            )
        return oid

    def blob(self, data: bytes) -> bytes:
        return self.add("blob", data)

    def tree(self, entries: Iterable[Entry]) -> bytes:
        """A tree of (mode, name, oid), in the order given."""
        return self.add(
            "tree",
            b"".join(b"%b %b\0%b" % (mode, name, oid) for mode, name, oid in entries),
        )

    def zeros(self, size: int) -> bytes:
        """A blob of zeros of any size, never in memory as a whole."""
        digest = hashlib.new(self.form.name, f"blob {size}\0".encode())
        deflate = zlib.compressobj(9)
        parts = [head(KINDS["blob"], size)]
        chunk = bytes(1 << 20)
        for start in range(0, size, len(chunk)):
            piece = chunk[: size - start]
            digest.update(piece)
            parts.append(deflate.compress(piece))
        parts.append(deflate.flush())
        self.packed.append(b"".join(parts))
        return digest.digest()

    def delta(self, base: bytes, delta: bytes) -> None:
        """An object given as a delta on another."""
        self.packed.append(head(REF_DELTA, len(delta)) + base + zlib.compress(delta))

    def checkpoint(
        self,
        files: Iterable[Entry] = (),
        *,
        session: str = "evil",
        branch: str = "main",
        parent: bytes | None = None,
        seq: int = 1,
        manifest: bytes | None = None,
        own: Iterable[Entry] = (),
        message: bytes | None = None,
        extra: bytes = b"",
        **fields: object,
    ) -> bytes:
        """A commit that is a sound checkpoint but for what is given."""
        files = list(files)
        only = self.tree(files) if files else None
        if manifest is None:
            manifest = record(
                only, **{"session": session, "branch": branch, "seq": seq, **fields}
            )
        reserved = self.tree(
            sorted(
                [(b"100644", b"checkpoint.json", self.blob(manifest)), *own],
                key=lambda entry: entry[1],
            )
        )
        at = sum(1 for _, name, _ in files if name < b".gitcp/")
        whole = [*files[:at], (b"40000", b".gitcp", reserved), *files[at:]]
        root = self.tree(whole)
        return self.commit(
            root,
            [parent] if parent else [],
            message or trailers(session, branch, seq),
            extra,
        )

    def commit(
        self, tree: bytes, parents: Iterable[bytes], message: bytes, extra: bytes = b""
    ) -> bytes:
        lines = [b"tree " + tree.hex().encode()]
        lines += [b"parent " + one.hex().encode() for one in parents]
        lines += [b"author " + WHO, b"committer " + WHO]
        return self.add("commit", b"\n".join(lines) + b"\n" + extra + b"\n" + message)

    def into(self, repo: Path, refs: dict[str, bytes]) -> None:
        """Puts everything into a repository as it is, and points refs at it."""
        for oid, raw in self.loose.items():
            name = oid.hex()
            path = repo / "objects" / name[:2] / name[2:]
            path.parent.mkdir(exist_ok=True)
            if not path.exists():
                path.write_bytes(raw)
        if (repo / "reftable").is_dir():
            lines = (f"update {ref} {oid.hex()}\n" for ref, oid in refs.items())
            git(
                repo,
                *("update-ref", "--stdin"),
                input="".join(lines).encode(),
                env={"GIT_DIR": str(repo)},
            )
            return
        for ref, oid in refs.items():
            path = repo / ref
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{oid.hex()}\n")

    def bundle(self, path: Path, refs: dict[str, bytes]) -> Path:
        """Writes a bundle of everything, as `git bundle` would if it were let."""
        lines = [f"{oid.hex()} {ref}\n".encode() for ref, oid in refs.items()]
        digest = hashlib.new(self.form.name)
        kind = b"# v2 git bundle\n"
        if self.form == SHA256:
            kind = b"# v3 git bundle\n@object-format=sha256\n"
        with path.open("wb") as file:
            file.write(kind + b"".join(lines) + b"\n")
            start = struct.pack(">4sII", b"PACK", 2, len(self.packed))
            for part in (start, *self.packed):
                digest.update(part)
                file.write(part)
            file.write(digest.digest())
        return path


def record(tree: bytes | None, **fields: object) -> bytes:
    """A checkpoint.json."""
    whole = {
        "format": 1,
        "id": "0123456789ab",
        "session": "evil",
        "branch": "main",
        "seq": 1,
        "created": "2026-01-01T00:00:00.000Z",
        "trigger": "manual",
        "note": "hello",
        "label": None,
        "author": "Mallory",
        "base": None,
        "position": None,
        "metadata": None,
        "files": {
            "tree": tree.hex() if tree else None,
            "added": 0,
            "modified": 0,
            "deleted": 0,
        },
        "conversation": None,
        "decisions": None,
        "steps": None,
        "task": None,
        "skipped": 0,
        "restored_from": None,
        "replaced": None,
        "forked_from": None,
        **fields,
    }
    return json.dumps(whole, indent=2).encode() + b"\n"


def trailers(session: str = "evil", branch: str = "main", seq: int = 1) -> bytes:
    return (
        "hello\n\nGitcp-Checkpoint: 0123456789ab\n"
        f"Gitcp-Session: {session}\nGitcp-Branch: {branch}\nGitcp-Seq: {seq}\n"
        "Gitcp-Trigger: manual\n"
    ).encode()


def head(kind: int, size: int) -> bytes:
    byte = kind << 4 | size & 15
    size >>= 4
    found = bytearray()
    while size:
        found.append(byte | 0x80)
        byte = size & 0x7F
        size >>= 7
    return bytes([*found, byte])


def number(value: int) -> bytes:
    """A size as deltas have it."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
