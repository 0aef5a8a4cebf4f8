"""Keys for encryption, and a remote that changes what it has."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.support.gitrepo import git, git_line

BITS = ["-b", "2048"]


class Key:
    """A key pair in files: `secret` is a path, `public` what to encrypt to."""

    def __init__(self, place: Path, name: str, kind: str = "age", phrase: str = ""):
        self.secret = place / name
        if kind == "age":
            import pyrage

            identity = pyrage.x25519.Identity.generate()
            self.secret.write_text(f"# a key\n{identity}\n")
            self.public = str(identity.to_public())
            return
        command = ["ssh-keygen", "-q", "-t", kind, "-N", phrase, "-C", name]
        bits = BITS if kind == "rsa" else []
        subprocess.run([*command, *bits, "-f", self.secret], check=True)
        self.public = self.secret.with_suffix(".pub").read_text().strip()


def encrypt_to(repo: Path, *keys: Key) -> None:
    git(repo, "config", "--unset-all", "gitcp.encryptTo", check=False)
    for key in keys:
        git(repo, "config", "--add", "gitcp.encryptTo", key.public)


def reads_with(repo: Path, key: Key) -> None:
    git(repo, "config", "--replace-all", "gitcp.identity", str(key.secret))


def holders(repo: Path, marker: bytes) -> list[str]:
    """All objects of a repository, reachable or not, that hold some bytes."""
    out = git(repo, "cat-file", "--batch-all-objects", "--batch", "--unordered")
    found = []
    at = 0
    while at < len(out):
        end = out.index(b"\n", at)
        oid, _, size = out[at:end].split()
        body = out[end + 1 : end + 1 + int(size)]
        if marker in body:
            found.append(oid.decode())
        at = end + 2 + int(size)
    return found


def tree_with(repo: Path, tree: str, changes: Mapping[str, str | None]) -> str:
    """A tree with other blobs at some paths, or none."""
    with tempfile.TemporaryDirectory() as place:
        env = {"GIT_INDEX_FILE": f"{place}/index", "GIT_WORK_TREE": place}
        git(repo, "read-tree", tree, env=env)
        for path, blob in changes.items():
            if blob is None:
                git(repo, "update-index", "--force-remove", path, env=env)
            else:
                info = f"100644,{blob},{path}"
                git(repo, "update-index", "--add", "--cacheinfo", info, env=env)
        return git(repo, "write-tree", env=env).decode().strip()


def blob(repo: Path, data: bytes) -> str:
    made = git(repo, "hash-object", "-w", "-t", "blob", "--stdin", input=data)
    return made.decode().strip()


def forge(
    repo: Path,
    ref: str,
    changes: Mapping[str, str | None] | None = None,
    message: Callable[[bytes], bytes] = lambda raw: raw,
) -> str:
    """Puts in place of a tip one that holds something else, or says so."""
    raw = git(repo, "cat-file", "commit", ref)
    tree = git_line(repo, "rev-parse", f"{ref}^{{tree}}")
    new = tree_with(repo, tree, changes or {})
    raw = message(raw.replace(tree.encode(), new.encode(), 1))
    made = git(repo, "hash-object", "-w", "-t", "commit", "--stdin", input=raw)
    oid = made.decode().strip()
    git(repo, "update-ref", ref, oid)
    return oid


def records(repo: Path, ref: str) -> dict[str, str]:
    """Path and blob of each ciphertext of a checkpoint; the head is one of them."""
    listed = git(repo, "ls-tree", "-r", ref, "--", ".gitcp/encrypted").decode()
    found = {}
    for line in listed.splitlines():
        said, path = line.split("\t")
        found[path] = said.split()[2]
    return found
