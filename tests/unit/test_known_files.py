"""What is known of small files is what is in them, however soon they change again."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from gitcp import durable
from gitcp.spool.known_files import KnownFiles

if TYPE_CHECKING:
    from pathlib import Path


def settle(path: Path) -> None:
    """Makes a file look as if it was written a while ago."""
    ago = time.time_ns() - 10_000_000_000
    os.utime(path, ns=(ago, ago))


def test_a_file_that_changes_within_a_tick_is_read_again(tmp_path):
    known = KnownFiles(tmp_path, dict[str, int])
    path = tmp_path / "a.json"
    for number in range(200):
        # In place, with the same size: nothing of it looks different within a tick.
        path.write_bytes(b'{"n":%d}' % (number % 10))
        assert known.all() == {"a": {"n": number % 10}}
        assert known.one("a") == {"n": number % 10}


def test_only_what_changed_is_read_again(tmp_path, monkeypatch):
    known = KnownFiles(tmp_path, dict[str, int])
    for name in ("a", "b"):
        durable.replace(tmp_path / f"{name}.json", b'{"n":1}')
        settle(tmp_path / f"{name}.json")
    assert set(known.all()) == {"a", "b"}
    read = []
    kept = KnownFiles._read

    def noting(self, name, at):
        read.append(name)
        return kept(self, name, at)

    monkeypatch.setattr(KnownFiles, "_read", noting)
    assert known.all() == {"a": {"n": 1}, "b": {"n": 1}}
    assert known.one("a") == {"n": 1}
    assert not read
    durable.replace(tmp_path / "b.json", b'{"n":2}')
    assert known.all() == {"a": {"n": 1}, "b": {"n": 2}}
    assert read == ["b"]


def test_what_is_gone_or_cannot_be_read_is_left_out(tmp_path):
    known = KnownFiles(tmp_path, dict[str, int])
    (tmp_path / "a.json").write_bytes(b'{"n":1}')
    (tmp_path / "b.json").write_bytes(b'{"n":')
    assert known.all() == {"a": {"n": 1}}
    assert known.one("b") is None
    (tmp_path / "a.json").unlink()
    assert known.all() == {}
    assert known.one("a") is None
    assert KnownFiles(tmp_path / "none", dict[str, int]).all() == {}
