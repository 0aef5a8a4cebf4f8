"""The commit object of a checkpoint."""

from __future__ import annotations

from gitcp.format.commit import parse_commit, raw_commit

PARENT = b"\x12" * 20


def test_a_parent_is_one_only_where_git_sees_it():
    """Behind the committer it was one to gitcp, or made the commit unreadable."""
    raw = raw_commit(PARENT, [PARENT], 9, b"note\n")
    head, _, message = raw.partition(b"\n\n")
    for said in (b"zz", b"34" * 20):
        late = head + b"\nparent " + said + b"\n\n" + message
        assert parse_commit(late) == parse_commit(raw)
    assert parse_commit(raw).parents == (PARENT,)
