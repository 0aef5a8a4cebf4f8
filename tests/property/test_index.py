"""Merging into an index is the same as writing it from all of its entries."""

from hypothesis import given
from hypothesis import strategies as st

from gitcp.format import index as indexes
from gitcp.format.index import IndexEntry, Stat
from gitcp.format.oid import SHA1, SHA256

NAMES = st.lists(st.sampled_from(["a", "b", "a-", "x" * 5_000]), min_size=1, max_size=3)
PATHS = NAMES.map(lambda names: "/".join(names).encode())
FORMS = st.sampled_from([SHA1, SHA256])


def entry(path: bytes, number: int, size: int) -> IndexEntry:
    return IndexEntry(path, bytes([number]) * size, Stat(*[number] * 10))


def without_files_above(entries: dict[bytes, IndexEntry]) -> list[IndexEntry]:
    return [
        entry
        for path, entry in entries.items()
        if not any(other.startswith(path + b"/") for other in entries)
    ]


@given(FORMS, st.sets(PATHS), st.dictionaries(PATHS, st.booleans()))
def test_a_merged_index_has_what_changed_and_the_rest(form, there, changed):
    held = {path: entry(path, 1, form.size) for path in there}
    held = {one.path: one for one in without_files_above(held)}
    changes = {
        path: entry(path, 2, form.size) if stays else None
        for path, stays in changed.items()
    }
    wanted = {path: one for path, one in held.items() if path not in changes}
    wanted |= {path: one for path, one in changes.items() if one is not None}
    raw = indexes.encode(held.values(), form)
    merged = indexes.merged(raw, changes, form)
    assert merged == indexes.encode(without_files_above(wanted), form)
