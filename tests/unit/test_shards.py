"""Which repositories of a pattern are asked, and for what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from gitcp.format import layout
from gitcp.format.layout import BranchKey, LedgerKey, RefKey
from gitcp.git import shard_pattern
from gitcp.git.remote import Advertised, Answer, Update
from gitcp.remotes.remote import Remote
from gitcp.remotes.shards import ShardedRemote


class Repositories:
    """Stands for all repositories; notes what each is asked and sent."""

    def __init__(self) -> None:
        self.asked: dict[str, list[str]] = {}
        self.sent: list[tuple[str, list[str]]] = []

    def open(self, address: str, interactive: bool) -> Remote:
        del interactive
        outer = self

        class One:
            def advertised(self, prefixes: Sequence[str]) -> Advertised:
                outer.asked[address] = sorted(prefixes)
                return Advertised({}, frozenset())

            def send(self, updates: Sequence[Update], **_: Any) -> dict[str, Answer]:
                outer.sent.append((address, [one.ref for one in updates]))
                return {one.ref: Answer(" ", "") for one in updates}

        return cast("Remote", One())


def sharded() -> tuple[ShardedRemote, Repositories]:
    pattern = shard_pattern.parse("/s-{shard:x}.git")
    assert pattern is not None
    repositories = Repositories()
    return ShardedRemote(pattern, repositories.open, interactive=False), repositories


def test_named_sessions_are_asked_for_in_their_repositories_without_branches():
    remote, repositories = sharded()
    keys = {LedgerKey.of("main"), LedgerKey.of("vat")}
    remote.advertised([*layout.prefixes_of(keys, remote.named), "refs/heads/"])
    assert repositories.asked == {
        "/s-c.git": ["refs/gitcp/fx/vat", "refs/gitcp/s/vat/"],
        "/s-d.git": ["refs/gitcp/fx/main", "refs/gitcp/s/main/"],
    }


def test_all_are_asked_for_all():
    remote, repositories = sharded()
    remote.advertised(layout.prefixes_of([]))
    assert len(repositories.asked) == 16
    assert set(map(tuple, repositories.asked.values())) == {
        ("refs/gitcp/fx/", "refs/gitcp/s/")
    }


def test_one_push_to_a_repository_has_a_ledger_and_the_branches_of_its_session():
    remote, repositories = sharded()
    keys: list[RefKey] = [
        LedgerKey.of("vat"),
        BranchKey.of("vat", "a"),
        BranchKey.of("vat", "b"),
    ]
    keys_there = [*keys, BranchKey.of("main", "main")]
    remote.send([Update(key.ref, None, "0" * 40) for key in keys_there])
    assert sorted(repositories.sent) == [
        ("/s-c.git", [key.ref for key in keys]),
        ("/s-d.git", ["refs/gitcp/s/main/main"]),
    ]
