"""A pattern over repositories: which ones it may be, and where a session goes."""

from __future__ import annotations

import pytest

from gitcp.errors import UsageError
from gitcp.git import shard_pattern
from gitcp.names import encode

URL = "https://git.example.org/team/sessions-{shard:02x}.git"


def address(text: str, session: str) -> str:
    pattern = shard_pattern.parse(text)
    assert pattern is not None
    return pattern.address(pattern.number(encode(session)))


@pytest.mark.parametrize(
    ("session", "of_16", "of_256"),
    # Each machine has to compute the same: printf %s NAME | sha256sum | head -c 2
    # (n/1 stands in refs as n%2f1)
    [
        ("main", "d", "0d"),
        ("vat", "c", "7c"),
        ("n/1", "6", "b6"),
    ],
)
def test_the_number_is_the_first_byte_of_a_hash_of_the_name_in_refs(
    session, of_16, of_256
):
    assert address(URL, session) == URL.replace("{shard:02x}", of_256)
    small = URL.replace("02x", "x")
    assert address(small, session) == small.replace("{shard:x}", of_16)


@pytest.mark.parametrize(
    "text",
    [
        "ssh://git@host:2222/s/{shard:x}.git",
        "git@host:team/sessions-{shard:x}.git",
        "/srv/git/sessions-{shard:x}.git",
        "file:///srv/git/sessions-{shard:x}.git",
        "git://host/{shard:x}/sessions.git",
    ],
)
def test_an_address_of_git_can_be_a_pattern(text):
    pattern = shard_pattern.parse(text)
    assert pattern is not None
    assert pattern.stem in {"sessions", "remote"}
    assert "{" not in pattern.address(15)


@pytest.mark.parametrize("text", ["origin", "https://h/a.git", "s3://bucket/a", "a{b}"])
def test_an_address_without_a_field_is_not_a_pattern(text):
    assert shard_pattern.parse(text) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("https://h/{shard:02x}/{shard:02x}.git", "which gitcp cannot use"),
        ("https://h/{session}-{shard:x}.git", "{session}, {shard:x}"),
        ("https://h/{host}.git", "{host}"),
        ("https://h/{shard}.git", "{shard}"),
        ("https://h/{shard:03x}.git", "{shard:03x}"),
        ("https://{shard:x}.h/a.git", "belongs in its path"),
        ("s3://bucket/{shard:02x}", "object store"),
        ("sessions-{shard:x}", "not the address"),
        ("ext::sh -c {shard:x}", "not the address"),
        ("-oProxyCommand=x:{shard:x}", "not the address"),
        ("https://ann:s3cret@h/{shard:x}.git", "password or a token"),
        ("https://s3cret@h/{shard:x}.git", "password or a token"),
        ("ssh://ann:s3cret@h/{shard:x}.git", "password or a token"),
        ("foo://ann:s3cret@h/{shard:x}.git", "not the address"),
    ],
)
def test_what_cannot_be_a_pattern_is_refused_with_a_reason(text, why):
    with pytest.raises(UsageError) as caught:
        shard_pattern.parse(text)
    assert why in caught.value.message
    assert "s3cret" not in f"{caught.value.message} {caught.value.hint}"
