"""The effects ledger's bytes (docs/format.md, 12a), and what its records add up to."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw
from msgspec.structs import replace

from gitcp.errors import CorruptError, FormatTooNewError, UsageError
from gitcp.format import ledger
from gitcp.format.checkpoint import timestamp
from gitcp.format.commit import parse_commit, trailers_of
from gitcp.format.ledger import LedgerCommit, Record, Undo
from gitcp.format.oid import SHA1
from gitcp.git.objects import COMMIT, TREE
from gitcp.ledger import signing
from gitcp.ledger.call import StepSlot
from gitcp.ledger.state import LedgerPoint, LedgerState
from gitcp.steps import results
from gitcp.steps.model import Retry, options

PAGES = Path(__file__).parents[2] / "docs" / "format"
SECTION = (PAGES / "ledger.md").read_text("utf-8")
VECTORS = (PAGES / "vectors.md").read_text("utf-8")
VECTOR = VECTORS.partition("### A ledger")[2].partition("\n### ")[0]
EMPTY = SHA1.oid(TREE, b"")
AT = "2026-11-21T12:00:00Z"


def vector() -> tuple[bytes, str]:
    found = re.search(
        r"records:\n\n```\n(.+?)```\n\nIts oid: `([0-9a-f]{40})`", VECTOR, re.DOTALL
    )
    assert found is not None
    return found[1].encode(), found[2]


def test_the_document_gives_the_bytes_of_a_ledger():
    lines, oid = vector()
    records = [ledger.decode_record(line, "here") for line in lines.splitlines()]
    assert b"".join(map(ledger.encode_record, records)) == lines
    raw = ledger.encode_ledger_commit(EMPTY, None, 1_700_000_000, "%4dain", records)
    assert SHA1.oid(COMMIT, raw).hex() == oid
    commit = parse_commit(raw)
    assert list(ledger.records_of(commit, "here")) == records
    assert ledger.ledger_trailers(commit) == ("%4dain", 2, 1)
    # A walk over checkpoints ends here.
    assert trailers_of(commit) is None


def test_the_document_gives_the_seals_of_its_records():
    """The keys are those of the document, too; test_format_vectors derives them."""
    key = re.search(r"`gitcp ledger 1` gives\s+`([0-9a-f]{64})`", VECTORS)
    seals = re.findall(r"`([0-9a-f]{32})`", VECTOR)
    assert key is not None
    first, second = (
        ledger.decode_record(line, "here") for line in vector()[0].splitlines()
    )
    texts = [
        ledger.sealed_text(first, "%4dain"),
        ledger.sealed_text(second, "%4dain"),
        ledger.old_sealed_text(second),
    ]
    made = [signing._seal(bytes.fromhex(key[1]), text)[:32] for text in texts]
    assert made == seals
    # Where the value lies changes nothing.
    large = replace(second, value=UNSET, size=4)
    assert ledger.sealed_text(large, "%4dain", b"null") == texts[1]
    assert ledger.sealed_text(large, "%4dain", b"nil") != texts[1]


def test_the_document_has_every_field_in_order():
    table = SECTION.partition("| field |")[2].partition("| kind | says |")[0]
    rows = re.findall(r"^\| (`.+?`) \|", table, re.MULTILINE)
    named = [name.strip("`") for row in rows for name in row.split(", ")]
    assert named == list(Record.__struct_fields__)
    kinds = SECTION.partition("| kind | says |")[2].partition("\n\n")[0]
    listed = re.findall(
        r"`([a-z-]+)`", "".join(re.findall(r"^\| (.+?) \|", kinds, re.MULTILINE))
    )
    assert set(listed) == ledger.KINDS


text = st.text(max_size=20)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | text,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3)
    ),
    max_leaves=8,
)
finite = json_values.filter(lambda value: "inf" not in repr(value))


@given(
    st.lists(
        st.builds(
            Record,
            n=st.integers(1, 10**9),
            at=st.integers(0, 250_000_000_000).map(timestamp),
            kind=st.sampled_from(sorted(ledger.KINDS)),
            branch=text,
            step=text,
            reads=st.lists(text, max_size=3).map(tuple),
            undo=st.none() | st.builds(Undo, command=st.lists(text).map(tuple)),
            error=text,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_records_come_back_from_a_commit(records):
    raw = ledger.encode_ledger_commit(EMPTY, b"\1" * 20, -5, "main", records)
    assert list(ledger.records_of(parse_commit(raw), "here")) == records


@given(finite)
def test_results_come_back_as_they_were(value):
    raw = results.dump(value, None, "it")
    record = Record(1, AT, ledger.RESULT, "main", value=Raw(raw))
    found = ledger.decode_record(ledger.encode_record(record), "here")
    assert found.value is not UNSET
    assert results.load(bytes(found.value), None) == value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({1: "a"}, "the key 1"),
        ({"a": [b"x"]}, r"it\['a'\]\[0\] is a bytes"),
        ({1, 2}, "is a set"),
        (float("nan"), "nan"),
        (object(), "is a object"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_place(value, said):
    with pytest.raises(UsageError, match=said):
        results.dump(value, None, "it")


def test_text_that_is_no_unicode_survives():
    assert results.load(results.dump("\ud800", None, "it"), None) == "\ud800"


def test_a_newer_ledger_and_an_unknown_record_are_refused():
    record = Record(1, AT, ledger.INTENT, "main", id="a")
    raw = ledger.encode_ledger_commit(EMPTY, None, 0, "main", [record])
    newer = raw.replace(b"Gitcp-Version: 1", b"Gitcp-Version: 2")
    with pytest.raises(FormatTooNewError):
        ledger.records_of(parse_commit(newer), "here")
    with pytest.raises(CorruptError, match="unknown kind"):
        ledger.decode_record(
            b'{"n":1,"at":"2026-11-21T12:00:00Z","kind":"later","branch":"m"}', "here"
        )
    with pytest.raises(CorruptError, match="not the ledger's"):
        ledger.records_of(
            parse_commit(raw.replace(b"Gitcp-Ledger", b"Gitcp-Other")), "x"
        )


# --- what records add up to -------------------------------------------------------


def pages(records: list[Record]) -> list[LedgerCommit]:
    """One page for each record, on one line."""
    return [
        LedgerCommit(f"{one.n}", (f"{one.n - 1}",) if one.n > 1 else (), (one,))
        for one in records
    ]


class Notes:
    """Records made briefly."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, kind: str, ident: str = "", branch: str = "main", **more: Any) -> int:
        number = len(self.records) + 1
        if kind == ledger.INTENT:
            more = {"step": ident, "call": "1", "effect": "none", **more}
        self.records.append(Record(number, "t", kind, branch, id=ident, **more))
        return number

    def done(self, ident: str, effect: str, branch: str = "main") -> int:
        self.add(ledger.INTENT, ident, branch, effect=effect)
        return self.add(ledger.RESULT, ident, branch, value=Raw(b"1"))

    def states(self, branch: str = "main", line: Any = None) -> dict[str, str]:
        start = LedgerPoint(*line) if line else None
        live = LedgerState(pages(self.records), {start} if start else ()).live(
            branch, start
        )
        return {slot.name: call.state for slot, call in live.items()}


def test_a_restore_takes_back_files_and_not_the_world():
    notes = Notes()
    notes.done("before", "local")
    at = len(notes.records)
    for effect in ("none", "local", "reversible", "irreversible"):
        notes.done(effect, effect)
    notes.add(ledger.BACK, of="main", upto=at)
    assert notes.states() == {
        "before": "done",
        "reversible": "done",
        "irreversible": "done",
    }
    # And undoing that restore brings the others back.
    notes.add(ledger.BACK, of="main", upto=len(notes.records) - 1)
    assert len(notes.states()) == 5


def test_what_was_compensated_does_not_stand():
    notes = Notes()
    at = notes.done("a", "local")
    notes.done("mail", "reversible")
    notes.add(ledger.UNDOING, "mail")
    notes.add(ledger.UNDONE, "mail")
    notes.add(ledger.BACK, of="main", upto=at)
    assert notes.states() == {"a": "done"}
    # Going forward again does not bring back what is gone from the world.
    notes.add(ledger.BACK, of="main", upto=4)
    assert notes.states() == {"a": "done", "mail": "undone"}


def test_a_fork_begins_with_what_was_done_at_its_start():
    notes = Notes()
    at = notes.done("a", "irreversible")
    notes.done("b", "irreversible")
    assert notes.states("try", ("main", at)) == {"a": "done"}
    notes.add(ledger.LINE, branch="try", of="main", upto=at)
    notes.done("c", "local", "try")
    assert notes.states("try") == {"a": "done", "c": "done"}
    assert notes.states() == {"a": "done", "b": "done"}
    # The world is one: what is undone there is undone here.
    notes.add(ledger.UNDONE, "a", "main")
    assert notes.states("try")["a"] == "undone"


def test_an_open_step_outside_stays_open_behind_a_restore():
    notes = Notes()
    at = notes.done("a", "none")
    notes.add(ledger.INTENT, "mail", effect="irreversible")
    notes.add(ledger.INTENT, "write", effect="local")
    notes.add(ledger.BACK, of="main", upto=at)
    assert notes.states() == {"a": "done", "mail": "open"}


@given(st.data())
def test_a_continued_book_equals_a_rebuilt_one(data):
    notes = Notes()
    idents = ["a", "b", "c"]
    for _ in range(data.draw(st.integers(1, 15))):
        kind = data.draw(st.sampled_from(sorted(ledger.KINDS - {ledger.JOINED})))
        branch = data.draw(st.sampled_from(["main", "try"]))
        if kind in {ledger.BACK, ledger.LINE}:
            upto = data.draw(st.integers(0, len(notes.records)))
            notes.add(kind, branch=branch, of="main", upto=upto)
        else:
            ident = data.draw(st.sampled_from(idents))
            more = {"effect": data.draw(st.sampled_from(ledger.EFFECTS))}
            notes.add(kind, ident, branch, **(more if kind == ledger.INTENT else {}))
    cut = data.draw(st.integers(0, len(notes.records)))
    book = LedgerState(pages(notes.records[:cut]))
    if all(map(book.apply, pages(notes.records)[cut:])):
        whole = LedgerState(pages(notes.records))
        assert book._line.calls == whole._line.calls
        for branch in ("main", "try"):
            assert book.live(branch) == whole.live(branch)
            assert all(call.slot == slot for slot, call in whole.live(branch).items())


def test_slots_tell_calls_apart():
    notes = Notes()
    notes.add(ledger.INTENT, "x", step="a", call="1")
    notes.add(ledger.INTENT, "y", step="a", call="2")
    notes.add(ledger.INTENT, "z", step="a", call="1", scope="night")
    live = LedgerState(pages(notes.records)).live("main")
    assert set(live) == {
        StepSlot("", "a", "1"),
        StepSlot("", "a", "2"),
        StepSlot("night", "a", "1"),
    }


# --- lines that were joined --------------------------------------------------------


class Side:
    """One repository's line of a ledger, and what it did."""

    def __init__(self, name: str, start: list[LedgerCommit]) -> None:
        self.name = name
        self.pages = list(start)

    @property
    def tip(self) -> str:
        return self.pages[-1].oid if self.pages else ""

    def add(self, *records: Record, joins: str | None = None) -> None:
        last = self.pages[-1].records[-1].n if self.pages else 0
        numbered = tuple(
            replace(one, n=last + at, at=f"{len(self.pages):04}{self.name}")
            for at, one in enumerate(records, 1)
        )
        parents = tuple(one for one in (self.tip, joins) if one)
        self.pages.append(
            LedgerCommit(f"{self.name}{len(self.pages)}", parents, numbered)
        )

    def has(self, oid: str) -> bool:
        return any(page.oid == oid for page in self.pages)

    def pull(self, other: Side) -> None:
        """As `Ledger.adopt` does."""
        if self.has(other.tip) or not other.pages:
            return
        ours = self.tip
        self.pages += [page for page in other.pages if not self.has(page.oid)]
        if other.has(ours) or not ours:
            return
        tip, theirs = ours, other.tip
        last = next(one for one in self.pages if one.oid == tip).records[-1].n
        note = Record(last + 1, "", ledger.JOINED, "")
        name = f"{self.name}{len(self.pages)}"
        self.pages.append(LedgerCommit(name, (tip, theirs), (note,)))

    def live(self) -> dict[str, Any]:
        return {call.id: call for call in LedgerState(self.pages).live("main").values()}


@st.composite
def histories(draw):
    """Two sides that run steps, answer for each other's, undo, and pull at times."""
    one, two = Side("a", []), Side("b", [])
    for number in range(draw(st.integers(1, 14))):
        side, other = draw(st.sampled_from([(one, two), (two, one)]))
        what = draw(st.sampled_from(["begin", "end", "end", "undo", "pull", "back"]))
        live = side.live()
        if what == "pull":
            side.pull(other)
        elif what == "begin":
            name = draw(st.sampled_from("xyz"))
            ident = f"{side.name}{number}"
            effect = draw(st.sampled_from(ledger.EFFECTS))
            if not any(call.name == name for call in live.values()):
                side.add(intent(ident, name, effect))
        elif what == "back":
            last = side.pages[-1].records[-1].n if side.pages else 0
            upto = draw(st.integers(0, last))
            side.add(Record(0, "", ledger.BACK, "main", of="main", upto=upto))
        elif live:
            call = live[draw(st.sampled_from(sorted(live)))]
            kinds = {"open": "result", "done": "undoing", "undoing": "undone"}
            kind = kinds.get(call.state)
            if kind is not None and (what == "undo") == (call.state != "open"):
                value = Raw(b"1") if kind == "result" else UNSET
                side.add(Record(0, "", kind, "main", id=call.id, value=value))
    return one, two


def intent(ident: str, name: str, effect: str) -> Record:
    return Record(
        0, "", ledger.INTENT, "main", id=ident, step=name, call="1", effect=effect
    )


@given(histories())
def test_a_join_loses_no_record_and_nothing_that_is_finished(sides):
    one, two = sides
    # If the other side continued from a side, it has the result.
    ahead = [
        side
        for side, other in [(one, two), (two, one)]
        if not other.has(side.tip) or side.tip == other.tip
    ]
    before = [side.live() for side in ahead]
    finished = {
        call.slot
        for live in before
        for call in live.values()
        if call.state == "done" and call.slot.call == "1"
    }
    records = [side.pages for side in sides]
    told = {
        record_key(one) for pages in records for page in pages for one in page.records
    }
    one.pull(two)
    two.pull(one)
    assert one.tip == two.tip
    assert {record_key(one) for page in one.pages for one in page.records} >= told
    for side in sides:
        # The order of each side is kept.
        place = {page.oid: at for at, page in enumerate(side.pages)}
        assert all(
            place[up] < place[page.oid] for page in side.pages for up in page.parents
        )
        live = LedgerState(side.pages).live("main")
        assert all(call.slot == slot for slot, call in live.items())
        assert len({call.id for call in live.values()}) == len(live)
        for slot in finished:
            # Undone by either it may be run again; else it is done.
            assert live[slot].state in {"done", "undoing", "stuck", "undone"}
            if all(
                call.state not in {"undoing", "undone"}
                for each in before
                for call in each.values()
                if call.slot == slot
            ):
                assert live[slot].state == "done"
        # What may have happened outside is still there to be seen.
        standing = {
            call.id
            for each in before
            for call in each.values()
            if call.outside and call.standing
        }
        gone = {
            call.id for each in before for call in each.values() if not call.standing
        }
        assert standing - gone <= {call.id for call in live.values() if call.standing}
    assert one.live() == two.live()


def record_key(record: Record) -> tuple[Any, ...]:
    return record.n, record.at, record.kind, record.id


@given(histories())
def test_a_join_is_the_same_from_either_side(sides):
    one, two = sides
    other, another = Side("c", one.pages), Side("d", two.pages)
    other.pull(two)
    another.pull(one)

    def told(side: Side) -> Any:
        return {
            call.id: (call.slot, call.state, call.intent, call.result)
            for call in side.live().values()
        }

    assert told(other) == told(another)
    other.pull(another)
    assert told(other) == told(another)


@given(histories(), st.data())
def test_a_book_continued_over_joins_equals_a_rebuilt_one(sides, data):
    one, two = sides
    one.pull(two)
    cut = data.draw(st.integers(0, len(one.pages)))
    # Only a whole ledger is ever read: all below its last page.
    while cut and not all(
        any(page.oid == parent for page in one.pages[:cut])
        for page in one.pages[:cut]
        for parent in page.parents
    ):
        cut -= 1
    book = LedgerState(one.pages[:cut])
    if all(map(book.apply, one.pages[cut:])):
        assert book.live("main") == LedgerState(one.pages).live("main")


def test_a_checkpoint_of_the_other_line_has_its_own_state():
    start = [
        LedgerCommit("s1", (), (replace(intent("0", "start", "none"), n=1, at="t"),))
    ]
    one, two = Side("a", start), Side("b", start)
    for side, name in ((one, "x"), (two, "y")):
        side.add(intent(name, name, "none"))
        side.add(Record(0, "", ledger.RESULT, "main", id=name, value=Raw(b"1")))
    there = two.tip
    one.pull(two)
    state = LedgerPoint("main", 3, there)
    book = LedgerState(one.pages, {state})
    assert {slot.name for slot in book.at(state)} == {"start", "y"}
    assert {slot.name for slot in book.live("main")} == {"start", "x", "y"}
    # Going back there takes this line's own back, and what was purged is found.
    one.add(Record(0, "", ledger.BACK, "main", of="main", upto=3, ledger=there))
    assert {slot.name for slot in LedgerState(one.pages).live("main")} == {"start", "y"}
    renamed = [
        page._replace(oid="new", purged=(there,)) if page.oid == there else page
        for page in one.pages
    ]
    renamed = [
        page._replace(
            parents=tuple("new" if up == there else up for up in page.parents)
        )
        for page in renamed
    ]
    assert {slot.name for slot in LedgerState(renamed).live("main")} == {"start", "y"}


# --- declaring --------------------------------------------------------------------


def declared(**more: Any) -> Any:
    given: dict[str, Any] = {
        "effect": None,
        "undo": None,
        "retry": None,
        "timeout": None,
        "key": None,
        "scope": "",
        "unknown": None,
        "reads": (),
        "writes": (),
        "after": (),
        "codec": None,
        "changed": "refuse",
        "loops": 100,
    }
    return options("a", **{**given, **more})


def test_what_is_not_said_is_what_is_safest():
    assert (declared().effect, declared().unknown) == ("irreversible", "ask")
    assert declared(undo=print).effect == "reversible"
    assert declared(effect="local").unknown == "retry"


@pytest.mark.parametrize(
    "wrong",
    [
        {"effect": "some"},
        {"effect": "reversible"},
        {"effect": "local", "undo": print},
        {"unknown": "shrug"},
        {"changed": "again"},
        {"timeout": 0},
        {"retry": 0},
        {"key": "\ud800"},
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(UsageError):
        declared(**wrong)


def test_the_waits_of_a_retry_grow_to_a_limit():
    retry = Retry(6, wait=1, factor=3, longest=10, on=(OSError,))
    waits = [retry.pause(attempt, OSError()) for attempt in range(1, 7)]
    assert waits == [1, 3, 9, 10, 10, None]
    assert retry.pause(1, ValueError()) is None
