"""Hunks of a patch, put back into the file that is there."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitcp.checkpoints.hunks import Hunk, hunks_of
from gitcp.errors import BusyError

LINES = st.lists(st.sampled_from(["a", "b", "", "-", "+x", "@@ -1 +1 @@"]), max_size=30)


def patch_of(tmp_path, then, now):
    """What git prints between two contents."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_bytes(then)
    new.write_bytes(now)
    argv = ["git", "diff", "--no-index", "--no-color", str(old), str(new)]
    return subprocess.run(argv, capture_output=True, check=False).stdout


def test_each_hunk_goes_back_alone(tmp_path):
    then = b"".join(b"%d\n" % number for number in range(40))
    now = then.replace(b"\n3\n", b"\nthree\nand\n").replace(b"\n35\n", b"\n")
    first, second = hunks_of(b"f", patch_of(tmp_path, then, now))
    assert first.put_back(now) == then.replace(b"\n35\n", b"\n")
    assert second.put_back(now) == then.replace(b"\n3\n", b"\nthree\nand\n")


def test_a_file_that_has_changed_is_refused(tmp_path):
    (hunk,) = hunks_of(b"f", patch_of(tmp_path, b"a\nb\n", b"a\nc\n"))
    assert hunk.put_back(b"a\nc\n") == b"a\nb\n"
    with pytest.raises(BusyError, match="changed after its lines were shown"):
        hunk.put_back(b"a\nd\n")
    assert isinstance(hunk, Hunk)


@pytest.mark.parametrize("ends", [(b"", b""), (b"", b"\n"), (b"\n", b"")])
def test_a_last_line_without_its_end(tmp_path, ends):
    then, now = b"a\nb" + ends[0], b"a\nc" + ends[1]
    (hunk,) = hunks_of(b"f", patch_of(tmp_path, then, now))
    assert hunk.put_back(now) == then


@given(then=LINES, now=LINES, last=st.booleans())
def test_all_hunks_from_the_last_on_give_what_was_there(
    tmp_path_factory, then, now, last
):
    old = "\n".join(then).encode() + (b"\n" if last else b"")
    new = "\n".join(now).encode() + b"\n"
    found = list(hunks_of(b"f", patch_of(tmp_path_factory.mktemp("d"), old, new)))
    for hunk in reversed(found):
        new = hunk.put_back(new)
    assert new == old
