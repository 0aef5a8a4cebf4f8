"""`gitcp diff`: as git writes it, and nothing of a stranger's on the disk."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from gitcp.git import compare
from tests.support.bombs import LIMIT, measured
from tests.support.forge import Forge, object_id
from tests.support.gitrepo import Executable, Symlink, git, write_files
from tests.support.inprocess import fails, invoke, ok

REF = "refs/gitcp/s/evil/main"
FILE, LINK, TREE = b"100644", b"120000", b"40000"


@pytest.fixture
def forge() -> Forge:
    return Forge()


@pytest.fixture
def changed(repo) -> Path:
    """A repository with a checkpoint, and one of each kind of change after it."""
    write_files(
        repo,
        {
            "gone": b"x\n",
            "mode": b"x\n",
            "text": b"one\ntwo\n",
            "turns": b"file\n",
            "link": Symlink(b"text"),
            "big": b"a\n" * 5_000_000,
            "no end": b"x",
            "tab\tnew\nline \xc3\xa9": b"x\n",
        },
    )
    ok(repo, "save")
    (repo / "gone").unlink()
    for name in ("turns", "link"):
        (repo / name).unlink()
    write_files(
        repo,
        {
            "mode": Executable(b"x\n"),
            "text": b"one\n2\n",
            "turns": Symlink(b"text"),
            "link": Symlink(b"mode"),
            "big": b"b\n" * 5_000_000,
            "no end": b"y",
            "tab\tnew\nline \xc3\xa9": b"y\n",
            "sub/new": b"\0\1",
            ".gitattributes": b"text diff=evil\n* binary\n",
        },
    )
    return repo


def laid_out(repo: Path, old: str, new: str) -> bytes:
    """What git says of the two states as files in two directories."""
    top = repo.with_name("laid")
    for side, commit in (("a", old), ("b", new)):
        (top / side).mkdir(parents=True)
        raw = git(repo, "archive", "--format=tar", commit)
        subprocess.run(["tar", "x", "-C", top / side], input=raw, check=True)
        subprocess.run(["rm", "-rf", top / side / ".gitcp"], check=True)
        # What applies to the project's files does not apply to a comparison of them.
        (top / side / ".gitattributes").unlink(missing_ok=True)
    done = subprocess.run(
        [
            *("git", "-c", "core.quotePath=false", "diff", "--no-index", "--no-prefix"),
            *("--no-renames", "a", "b"),
        ],
        cwd=top,
        env={**os.environ, "GIT_DIR": str(repo / ".git")},
        capture_output=True,
        check=False,
    )
    return done.stdout


def test_it_is_what_git_writes_of_the_files(changed):
    text = invoke(changed, "diff", "1", "--", "text").stdout
    assert text == (
        b"diff --git a/text b/text\nindex %b..%b 100644\n--- a/text\n"
        b"+++ b/text\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
        % tuple(
            object_id("blob", content).hex()[:7].encode()
            for content in (b"one\ntwo\n", b"one\n2\n")
        )
    )
    ok(changed, "save")
    one, two = (ok(changed, "show", n)["checkpoint"]["commit"] for n in ("1", "2"))
    (changed / ".gitattributes").unlink()
    ok(changed, "save")
    three = ok(changed, "show", "3")["checkpoint"]["commit"]
    whole = ok(changed, "diff", "1", "3")["patch"].encode()
    expected = laid_out(changed, one, three)
    # A file too large for lines is compared by its id.
    assert without(whole, b"big") == without(expected, b"big")
    assert b"Binary files a/big and b/big differ" in whole
    assert two
    counts = {
        one["path"]: (one["added"], one["deleted"])
        for one in ok(changed, "diff", "1", "3")["changes"]
    }
    assert counts["text"] == (1, 1)
    assert counts["sub/new"] == counts["big"] == (None, None)
    assert counts["turns"] == (1, 1)
    assert counts["gone"] == (0, 1)


def without(patch: bytes, name: bytes) -> list[bytes]:
    """The parts of a patch; of what is on one side only, git names that side twice."""
    parts = (re.sub(rb"\A\"?[ab]/", b"", one) for one in patch.split(b"diff --git "))
    named = (re.sub(rb"\A(.*?) \"?[ab]/", rb"\1 ", part) for part in parts)
    return [part for part in named if not part.startswith(name)]


def test_the_work_tree_is_compared_alike(changed):
    now = ok(changed, "diff", "1")
    ok(changed, "save")
    assert ok(changed, "diff", "1", "2")["patch"] == now["patch"]


NAMES = [
    b".git",
    b"..",
    b".",
    b"-x",
    b"a\nb",
    b".git::$INDEX_ALLOCATION",
    b"git~1",
    b".gitattributes",
    b"x\x1b[31m",
]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_no_name_becomes_a_path(forge, bob, name, monkeypatch, sealed):
    """Whatever is written goes below one directory, under names that gitcp made."""
    inner = forge.tree(
        [(FILE, b"config", forge.blob(b"[core]\n\tfsmonitor = touch canary\n"))]
    )
    outside = forge.blob(os.fsencode(sealed / "Library"))
    entries = [
        (LINK, b"D", outside),
        (TREE, b"d", forge.tree([(FILE, b"x.plist", forge.blob(b"theirs"))])),
        (FILE, b"p", forge.blob(b"p\n")),
        (TREE, name, inner),
    ]
    tip = forge.checkpoint(sorted(entries, key=lambda one: one[1] + b"/"))
    forge.into(bob / ".git", {REF: tip})
    written: list[Path] = []
    run = compare.Comparison.run

    def looked(
        self: compare.Comparison, old: bytes, new: bytes, *options: str
    ) -> bytes:
        top = self._directory
        written.extend(path.relative_to(top) for path in top.rglob("*"))
        return run(self, old, new, *options)

    monkeypatch.setattr(compare.Comparison, "run", looked)
    done = invoke(bob, "diff", "evil:1")
    assert done.returncode == 0, done.stderr
    assert b"p" in done.stdout
    assert written
    for path in written:
        assert path.parts[0] in {"HEAD", "config", "refs", "objects"}, path
        assert not path.is_symlink()
    assert not (sealed / "Library").exists()
    assert not (bob / "canary").exists()


def test_nothing_that_is_configured_runs(forge, bob, sealed, tmp_path, monkeypatch):
    canary = tmp_path / "canary"
    attributes = tmp_path / "attributes"
    attributes.write_text("* diff=evil filter=evil\n")
    config = tmp_path / "config"
    config.write_text(
        f"[core]\n\tattributesFile = {attributes}\n\tpager = touch {canary}\n"
        f"\tfsmonitor = touch {canary}\n"
        f'[diff]\n\texternal = touch {canary}\n[diff "evil"]\n'
        f"\ttextconv = touch {canary};cat\n\tcommand = touch {canary}\n"
        f'[filter "evil"]\n\tsmudge = touch {canary}\n\tclean = touch {canary}\n'
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {canary}")
    blob = forge.blob(b"text\n")
    rules = forge.blob(b"* diff=evil filter=evil\n")
    entries = [(FILE, b".gitattributes", rules), (FILE, b"x", blob)]
    forge.into(bob / ".git", {REF: forge.checkpoint(entries)})
    done = invoke(bob, "diff", "evil:1")
    assert b"-text" in done.stdout
    assert not canary.exists()


def test_many_files_of_one_blob_take_little_memory(forge, bob):
    blob = forge.blob(b"line\n" * 1_500_000)
    entries = [(FILE, b"%03d" % n, blob) for n in range(50)]
    forge.into(bob / ".git", {REF: forge.checkpoint(entries)})
    ran = measured(bob, "diff", "evil:1", "--json", limit=None, timeout=250)
    assert ran.status == 0, ran.err
    assert ran.peak < LIMIT
    # Two files of 7.5 MB are compared, and the others named.
    assert ran.size < 50_000_000


def test_two_dots_stand_between_two_checkpoints(repo):
    for n in range(1, 4):
        write_files(repo, {"counted": b"%d\n" % n})
        ok(repo, "save", "-s", "a..b" if n == 1 else "main")

    def changed(*args: str) -> tuple[bytes, bytes]:
        done = invoke(repo, "diff", *args, "counted")
        assert done.returncode == 0, done.stderr
        minus, plus = done.stdout.splitlines()[-2:]
        return minus, plus

    assert changed("1..3") == changed("#1..#3") == (b"-1", b"+3")
    assert changed("2..") == changed("last~1..last") == changed("2", "3")
    assert changed("..2") == changed("3", "2") == (b"-3", b"+2")
    # A session may be called so.
    assert changed("a..b:1", "2") == changed("1..2")
    assert "there is no checkpoint 'nothing'" in fails(repo, 13, "diff", "nothing..2")
    assert "there is no checkpoint #8" in fails(repo, 13, "diff", "1..8")
