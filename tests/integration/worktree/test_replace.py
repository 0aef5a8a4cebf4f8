"""Nothing that is written to a file while it loses its name is lost."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gitcp.errors import StorageError
from gitcp.format.oid import SHA1
from gitcp.format.tree import EXECUTABLE, FILE, LINK, Entry
from gitcp.worktree import apply as applying
from gitcp.worktree import leftovers, renames, replace
from gitcp.worktree.files import Root
from gitcp.worktree.plan import FilePlan, FileStep, Left

OLD, NEW, EDIT = b"old content", b"new content", b"edited"
LARGE = b"x" * (3 << 20)
BLOBS: dict[bytes, bytes] = {SHA1.oid("blob", data): data for data in (OLD, NEW, LARGE)}
TOKEN = "token"
TEMPORARY = ".gitcp-tmp-token-"


def entry(data: bytes, mode: int = FILE) -> Entry:
    return Entry(mode, SHA1.oid("blob", data))


def step(
    before: bytes | None, after: bytes | None, *, kind: int = FILE, name: bytes = b"f"
) -> FileStep:
    return FileStep(
        "delete" if after is None else "write",
        name,
        None if before is None else entry(before, kind),
        None if after is None else entry(after),
    )


def stream(oid: bytes):
    yield BLOBS[oid]


def run(top: Path, *steps: FileStep) -> list[Left]:
    with Root(top) as root:
        return applying.apply(root, FilePlan(steps, ()), stream, token=TOKEN)


def settle(top: Path, *steps: FileStep) -> list[Left]:
    with Root(top) as root:
        return leftovers.settle(root, FilePlan(steps, ()), stream, TOKEN)


def held(top: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in top.iterdir()}


def temporary(name: bytes = b"f") -> str:
    return os.fsdecode(replace.temporary_name(TOKEN, name))


def quiet(path: Path) -> None:
    """Makes a file look as if it had not been changed for long."""
    os.utime(path, ns=(10**18, 10**18))


@pytest.fixture(params=["exchange", "by hand"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the exchange of names, and as on file systems that have none."""
    if request.param == "by hand":
        monkeypatch.setattr(renames, "_attempt", lambda *_: False)
    return request.param


@pytest.fixture
def just_before(monkeypatch: pytest.MonkeyPatch):
    """Does something once, right before the old file loses its name."""

    def arrange(do: Callable[[], object]) -> None:
        waiting = [do]
        real_rename, real_exchange = os.rename, renames.exchange

        def rename(*args, **kwargs):
            if waiting:
                waiting.pop()()
            real_rename(*args, **kwargs)

        def exchange(*args):
            if waiting:
                waiting.pop()()
            return real_exchange(*args)

        monkeypatch.setattr(os, "rename", rename)
        monkeypatch.setattr(renames, "exchange", exchange)

    return arrange


def in_place(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(EDIT)


def by_rename(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(EDIT)
    other.rename(path)


def by_rename_with_old_times(path: Path) -> None:
    found = path.stat()
    other = path.with_name("other")
    other.write_bytes(path.read_bytes().swapcase())
    os.utime(other, ns=(found.st_atime_ns, found.st_mtime_ns))
    other.rename(path)


def mode(path: Path) -> None:
    path.chmod(0o755)


EDITS = [in_place, by_rename, by_rename_with_old_times, mode]


@pytest.mark.parametrize("after", [None, NEW])
@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_after_the_last_look_stays(tmp_path, way, just_before, edit, after):
    file = tmp_path / "f"
    file.write_bytes(OLD)
    edited: list[bytes] = []

    def do() -> None:
        edit(file)
        edited.append(file.read_bytes())

    just_before(do)
    assert run(tmp_path, step(OLD, after)) == [Left(b"f", replace.CHANGED)]
    assert held(tmp_path) == {"f": edited[0]}
    assert file.stat().st_mode & 0o111 == (0o111 if edit is mode else 0)


@pytest.mark.parametrize("after", [None, NEW])
def test_an_edit_while_a_large_file_is_read_stays(tmp_path, monkeypatch, way, after):
    file = tmp_path / "f"
    file.write_bytes(LARGE)
    real = replace._hashed

    def slow(directory, name, found, form):
        hashed = real(directory, name, found, form)
        if file.read_bytes() == LARGE:
            in_place(file)
        return hashed

    monkeypatch.setattr(replace, "_hashed", slow)
    assert run(tmp_path, step(LARGE, after)) == [Left(b"f", replace.CHANGED)]
    assert held(tmp_path) == {"f": EDIT + LARGE[len(EDIT) :]}


@pytest.mark.parametrize("after", [None, NEW])
def test_a_link_that_was_replaced_stays(tmp_path, way, just_before, after):
    link = tmp_path / "f"
    link.symlink_to(os.fsdecode(OLD))

    def do() -> None:
        link.unlink()
        link.symlink_to("elsewhere")

    just_before(do)
    run(tmp_path, step(OLD, after, kind=LINK))
    assert list(tmp_path.iterdir()) == [link]
    assert link.readlink() == Path("elsewhere")


def test_what_takes_the_name_meanwhile_stays_beside_the_edited_file(
    tmp_path, monkeypatch, just_before
):
    file = tmp_path / "f"
    file.write_bytes(OLD)
    just_before(lambda: in_place(file))
    real = replace._unchanged

    def late(*args):
        unchanged = real(*args)
        file.write_bytes(b"log line")
        return unchanged

    monkeypatch.setattr(replace, "_unchanged", late)
    [left] = run(tmp_path, step(OLD, None))
    assert left.reason == "changed meanwhile; its content is now in f.kept-token"
    assert held(tmp_path) == {"f": b"log line", "f.kept-token": EDIT + OLD[len(EDIT) :]}


def test_an_edit_of_the_new_content_survives_the_way_back(
    tmp_path, monkeypatch, just_before
):
    file = tmp_path / "f"
    file.write_bytes(OLD)
    just_before(lambda: in_place(file))
    real = replace._unchanged

    def late(*args):
        unchanged = real(*args)
        assert file.read_bytes() == NEW
        file.write_bytes(NEW + b", edited")
        return unchanged

    monkeypatch.setattr(replace, "_unchanged", late)
    [left] = run(tmp_path, step(OLD, NEW))
    assert left.path == b"f"
    assert held(tmp_path) == {
        "f": EDIT + OLD[len(EDIT) :],
        "f.kept-token": NEW + b", edited",
    }


def test_the_name_goes_while_an_edited_file_is_put_back(
    tmp_path, monkeypatch, just_before
):
    file = tmp_path / "f"
    file.write_bytes(OLD)
    just_before(lambda: in_place(file))
    real = replace._unchanged

    def late(*args):
        unchanged = real(*args)
        file.unlink()
        return unchanged

    monkeypatch.setattr(replace, "_unchanged", late)
    assert [left.path for left in run(tmp_path, step(OLD, NEW))] == [b"f"]
    assert held(tmp_path) == {"f": EDIT + OLD[len(EDIT) :]}


@pytest.mark.parametrize("after", [None, NEW])
def test_a_disk_that_fails_in_between_leaves_the_file(tmp_path, monkeypatch, after):
    (tmp_path / "f").write_bytes(OLD)

    def broken(*_: object) -> bool:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(replace, "_unchanged", broken)
    with pytest.raises(StorageError):
        run(tmp_path, step(OLD, after))
    assert held(tmp_path) == {"f": OLD}


@pytest.mark.parametrize("after", [None, NEW])
def test_what_did_not_change_is_replaced(tmp_path, way, after):
    (tmp_path / "f").write_bytes(OLD)
    assert run(tmp_path, step(OLD, after)) == []
    assert held(tmp_path) == ({} if after is None else {"f": NEW})


def test_a_quiet_file_is_read_once(tmp_path, monkeypatch):
    """Its stat is proof enough; one that was changed a moment ago is read again."""
    reads: list[bytes] = []
    real = replace._hashed

    def noted(directory, name, found, form):
        reads.append(name)
        return real(directory, name, found, form)

    monkeypatch.setattr(replace, "_hashed", noted)
    monkeypatch.setattr(replace, "_FINE_NS", -(10**12))
    for name in ("f", "g"):
        (tmp_path / name).write_bytes(OLD)
    assert run(tmp_path, step(OLD, None), step(OLD, NEW, name=b"g")) == []
    assert reads == [b"f", b"g"]
    monkeypatch.setattr(replace, "_FINE_NS", 10**12)
    assert run(tmp_path, step(NEW, None, name=b"g")) == []
    assert reads[2] == b"g"
    assert len(reads) == 4


def test_nothing_is_ever_replaced_by_a_move(tmp_path, way):
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    with Root(tmp_path) as root:
        with pytest.raises(FileExistsError):
            renames.move(root.fd, b"a", b"b")
        renames.move(root.fd, b"a", b"c")
    assert held(tmp_path) == {"b": b"b", "c": b"a"}


def test_a_disk_without_exchange_and_hard_links(tmp_path, monkeypatch):
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(renames, "_attempt", lambda *_: False)
    monkeypatch.setattr(os, "link", refused)
    (tmp_path / "f").write_bytes(OLD)
    assert run(tmp_path, step(OLD, NEW), step(None, NEW, name=b"g")) == []
    assert held(tmp_path) == {"f": NEW, "g": NEW}
    with Root(tmp_path) as root, pytest.raises(FileExistsError):
        renames.move(root.fd, b"f", b"g")


# --- what a killed run left ---------------------------------------------------------


@pytest.mark.parametrize("after", [None, NEW])
def test_a_file_that_was_moved_aside_gets_its_name_back(tmp_path, after):
    (tmp_path / temporary()).write_bytes(OLD)
    (tmp_path / temporary()).chmod(0o600)
    assert settle(tmp_path, step(OLD, after)) == []
    assert held(tmp_path) == {"f": OLD}
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("end", ["", ".old"])
def test_an_edited_file_that_was_moved_aside_gets_its_name_back(tmp_path, end):
    (tmp_path / (temporary() + end)).write_bytes(EDIT)
    [left] = settle(tmp_path, step(OLD, NEW))
    assert left == Left(b"f", replace.CHANGED)
    assert held(tmp_path) == {"f": EDIT}


def test_an_edited_file_that_was_exchanged_gets_its_name_back(tmp_path, way):
    (tmp_path / temporary()).write_bytes(EDIT)
    (tmp_path / "f").write_bytes(NEW)
    [left] = settle(tmp_path, step(OLD, NEW))
    assert left.path == b"f"
    assert set(held(tmp_path).values()) == (
        {EDIT} if way == "exchange" else {EDIT, NEW}
    )
    assert not list(tmp_path.glob(".gitcp-tmp-*"))


def test_two_edits_survive_a_cleaning_up_that_meets_the_second(tmp_path, just_before):
    """The one that was moved aside gets its name; the one of this moment, one beside."""
    (tmp_path / temporary()).write_bytes(EDIT)
    file = tmp_path / "f"
    file.write_bytes(NEW)
    just_before(lambda: file.write_bytes(b"second edit"))
    [left] = settle(tmp_path, step(OLD, NEW))
    assert left.reason == "changed meanwhile; its content is now in f.kept-token"
    assert held(tmp_path) == {"f": EDIT, "f.kept-token": b"second edit"}


@pytest.mark.parametrize(
    ("number", "stays"), [(errno.EACCES, True), (errno.EIO, False)]
)
def test_a_file_that_cannot_be_read_is_not_replaced(
    tmp_path, monkeypatch, number, stays
):
    file = tmp_path / "f"
    file.write_bytes(OLD)

    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(replace, "_hashed", refuse)
    if stays:
        assert [left.path for left in run(tmp_path, step(OLD, NEW))] == [b"f"]
    else:
        with pytest.raises(StorageError):
            run(tmp_path, step(OLD, NEW))
    assert held(tmp_path) == {"f": OLD}


def test_an_edited_file_whose_name_is_taken_is_kept_beside_it(tmp_path):
    (tmp_path / temporary()).write_bytes(EDIT)
    (tmp_path / "f").write_bytes(b"something else")
    [left] = settle(tmp_path, step(OLD, NEW))
    assert "f.kept-token" in left.reason
    assert held(tmp_path) == {"f": b"something else", "f.kept-token": EDIT}


@pytest.mark.parametrize("content", [NEW, NEW[:4], b"", OLD])
def test_what_a_checkpoint_holds_is_cleared_away(tmp_path, content):
    (tmp_path / temporary()).write_bytes(content)
    (tmp_path / "f").write_bytes(b"whatever is there")
    assert settle(tmp_path, step(OLD, NEW)) == []
    assert held(tmp_path) == {"f": b"whatever is there"}


def test_leftovers_in_directories_and_of_others(tmp_path):
    old = step(OLD, NEW, name=b"d/f")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / temporary()).write_bytes(NEW[:3])
    (tmp_path / "d" / f"{TEMPORARY}17").write_bytes(b"written by gitcp 0.1.0")
    (tmp_path / "d" / f"{TEMPORARY}0123456789ab").write_bytes(b"of no path known")
    (tmp_path / "d" / ".gitcp-tmp-y").write_bytes(b"of another restore")
    gone = step(OLD, None, name=b"missing/f")
    assert settle(tmp_path, old, gone) == []
    assert sorted(held(tmp_path / "d")) == [
        ".gitcp-tmp-token-0123456789ab",
        ".gitcp-tmp-y",
    ]


def test_an_exec_bit_alone_makes_no_other_content(tmp_path):
    (tmp_path / temporary()).write_bytes(OLD)
    (tmp_path / "f").write_bytes(NEW)
    assert settle(tmp_path, step(OLD, NEW, kind=EXECUTABLE)) == []
    assert held(tmp_path) == {"f": NEW}
