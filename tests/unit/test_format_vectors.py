"""docs/format/ executed, and the pure parts of the format against models."""

from __future__ import annotations

import base64
import re
import subprocess
import zlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitcp.encryption.age import Identities
from gitcp.errors import CorruptError, FormatTooNewError, UsageError
from gitcp.format import checkpoint as manifests
from gitcp.format import (
    chunked,
    converted,
    encrypted,
    encrypted_ledger,
    ledger,
    log,
    tree,
)
from gitcp.format.chunked import ChunkedName
from gitcp.format.commit import (
    Trailers,
    encode_commit,
    parse_commit,
    relink,
    trailers_of,
    with_pruned,
)
from gitcp.format.layout import FORMAT, FORMAT_WITH_CHUNKS
from gitcp.format.oid import SHA1, SHA256
from gitcp.format.safety import name_problem, path_problem
from gitcp.format.tree import DIRECTORY, EXECUTABLE, FILE, LINK, Entry
from gitcp.git import secret
from gitcp.git.discover import discover
from gitcp.git.objects import BLOB, TREE
from gitcp.git.pack import PackWriter
from gitcp.names import decode, encode
from gitcp.store import origin
from gitcp.wal import log_file
from gitcp.worktree.journal import Journal
from gitcp.worktree.plan import FilePlan, FileStep, Left
from tests.support.gitrepo import git, make_repo

PAGES = Path(__file__).parents[2] / "docs" / "format"
VECTORS = (PAGES / "vectors.md").read_text("utf-8")
CHECKPOINT = (PAGES / "checkpoint.md").read_text("utf-8")
NAME_ROW = re.compile(r"^\| `(.+?)`(?: \u00d7 (\d+))? \| (.+) \|$", re.MULTILINE)
PART = re.compile(r"`([^`]+)`(?: \u00d7 (\d+))?")
OID = b"\x11" * 20


def name_vectors() -> list[tuple[str, str]]:
    """The table of names; a text times three is written three times, parts are joined."""
    found = []
    for name, times, component in NAME_ROW.findall(VECTORS):
        expected = "".join(
            text * int(count or 1) for text, count in PART.findall(component)
        )
        found.append((name * int(times or 1), expected))
    return found


# --- names ------------------------------------------------------------------------


def test_the_document_has_its_vectors():
    assert len(name_vectors()) == 8


@pytest.mark.parametrize(("name", "component"), name_vectors(), ids=lambda s: s[:12])
def test_names_are_encoded_as_the_document_says(name, component):
    assert encode(name) == component


names = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("aA%-./\\é\0\x1b"),
    min_size=1,
    max_size=80,
)


@given(names, names)
def test_encoding_is_injective_where_case_folds(one, two):
    assert (encode(one).casefold() == encode(two).casefold()) == (one == two)


@given(names)
def test_a_component_is_a_valid_part_of_a_ref_and_leads_back(name):
    component = encode(name)
    assert re.fullmatch(r"[a-z0-9_%][a-z0-9_%-]*", component)
    assert len(component) <= 180
    assert decode(component) in ({name} if "%%" not in component else {None})


def test_a_long_name_never_meets_another():
    long = [encode("x" * 500 + tail) for tail in ("", "a", "b", "A")]
    assert len({one.casefold() for one in long}) == 4
    assert all(decode(one) is None for one in long)
    # Not cut inside of an escape.
    assert re.fullmatch(r"(?:%[0-9a-f]{2}){40}%%[0-9a-f]{32}", encode("é" * 100))


@pytest.mark.parametrize("name", ["", "x" * 1001, "\ud800"])
def test_names_that_cannot_be_are_refused(name):
    with pytest.raises(UsageError):
        encode(name)


@pytest.mark.parametrize("component", ["%4", "%zz", "%61", "A", "%ff", "%+1"])
def test_a_component_that_nothing_encodes_to_is_no_name(component):
    assert decode(component) is None


# --- logs -------------------------------------------------------------------------


def test_the_log_digest_of_the_document():
    segments, digest = re.search(
        r"Log digest of the segments (.+?):\n`([0-9a-f]{64})`", VECTORS, re.DOTALL
    ).groups()  # type: ignore[union-attr]
    found = log.EMPTY_DIGEST
    texts = [text for text, _ in PART.findall(segments)]
    assert len(texts) == 2
    for text in texts:
        found = log.chain(found, text.replace("\\n", "\n").encode())
    assert found == digest


@given(st.lists(st.binary(max_size=50), max_size=5))
def test_the_log_digest_tells_where_segments_end(pieces):
    def total(parts):
        digest = log.EMPTY_DIGEST
        for part in parts:
            digest = log.chain(digest, part)
        return digest

    joined = [b"".join(pieces)]
    assert (total(pieces) == total(joined)) == (pieces == joined)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
decisions = st.builds(
    log.Decision, texts, st.none() | texts, texts, st.none() | texts, st.tuples(texts)
)


@given(st.lists(decisions, max_size=5))
def test_decisions_come_back(entries):
    raw = b"".join(map(log.encode_decision, entries))
    assert raw.count(b"\n") == len(entries)
    assert list(log.decode_decisions(raw, "here")) == entries


@pytest.mark.parametrize("raw", [b"{", b"[]\n", b'{"kind":1,"text":""}\n', b"\xff\n"])
def test_a_damaged_decision_log_is_named(raw):
    with pytest.raises(CorruptError, match="decision log of checkpoint abc"):
        list(log.decode_decisions(raw, "checkpoint abc"))


# --- checkpoint.json --------------------------------------------------------------

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
    ),
    max_leaves=8,
)


def manifest(**given: object) -> manifests.Manifest:
    fields: dict = {
        "format": FORMAT,
        "id": "0123456789ab",
        "session": "main",
        "branch": "main",
        "seq": 1,
        "created": "2026-01-01T00:00:00.000Z",
        "trigger": "manual",
        "note": None,
        "label": None,
        "author": None,
        "base": manifests.Base("a" * 40, "main"),
        "position": manifests.NULL,
        "metadata": manifests.NULL,
        "files": manifests.Files("b" * 40, 1, 2, 3),
        "conversation": manifests.Conversation("main", "messages", 1, 2, 3, "d"),
        "decisions": manifests.LogTotals(1, 2, 3, "d"),
        "steps": None,
        "task": None,
        "skipped": 0,
        "restored_from": None,
        "replaced": None,
        "forked_from": None,
        "origin": manifests.Sealed("e" * 64, None, "hub"),
    }
    return manifests.Manifest(**fields | given)


def times_that_are_refused() -> list[str]:
    """The values that the document lists."""
    (block,) = re.findall(r"checkpoint\.json` is damaged:\n((?:`.+\n)+)", VECTORS)
    return re.findall(r"`([^`]+)`", block)


@given(texts, texts, st.none() | texts, json_values)
def test_a_manifest_comes_back(session, note, label, position):
    raw_position = msgspec.Raw(msgspec.json.encode(position))
    made = manifest(session=session, note=note, label=label, position=raw_position)
    raw = manifests.encode_manifest(made)
    found = manifests.decode_manifest(raw, "here")
    assert msgspec.json.decode(found.position) == position
    assert manifests.encode_manifest(found) == raw
    assert (found.session, found.note, found.label) == (session, note, label)


def test_the_canonical_bytes_of_a_manifest():
    raw = manifests.encode_manifest(manifest(position=msgspec.Raw(b'{"a":1.00}')))
    lines = raw.decode().split("\n")
    assert lines[1] == '  "format": 1,'
    assert lines[-2:] == ["}", ""]
    assert b'"a": 1.00' in raw
    fields = re.findall(r"^\| `([a-z_`, ]+)` \|", CHECKPOINT, re.MULTILINE)
    documented = [name for row in fields for name in row.replace("`", "").split(", ")]
    assert documented[: len(manifests.Manifest.__struct_fields__)] == list(
        manifests.Manifest.__struct_fields__
    )


def test_what_was_imported_says_that_no_files_were_looked_at():
    (vector,) = re.findall(r'^`("trigger":"import",.*)`$', VECTORS, re.MULTILINE)
    said = msgspec.json.decode(f"{{{vector}}}")
    files = manifests.Files(None, 0, 0, 0, captured=False)
    made = msgspec.structs.replace(manifest(), trigger=manifests.IMPORT, files=files)
    raw = manifests.encode_manifest(made)
    assert {name: msgspec.json.decode(raw)[name] for name in said} == said
    assert not manifests.decode_manifest(raw, "here").files.captured


def test_unknown_fields_are_ignored_and_a_newer_format_is_refused():
    raw = manifests.encode_manifest(manifest())
    later = raw.replace(b"{\n", b'{\n  "colour": [1],\n', 1)
    assert manifests.decode_manifest(later, "here") == manifests.decode_manifest(
        raw, "here"
    )
    # What stands in place of an encrypted checkpoint says 2.
    for version in (b"2", b"4"):
        newer = raw.replace(b'"format": 1', b'"format": ' + version)
        with pytest.raises(FormatTooNewError, match="format " + version.decode()):
            manifests.decode_manifest(newer, "here")
    chunked = manifest(format=FORMAT_WITH_CHUNKS)
    encoded = manifests.encode_manifest(chunked)
    assert manifests.decode_manifest(encoded, "here") == chunked
    # Also where nothing else of it is known.
    with pytest.raises(FormatTooNewError):
        manifests.decode_manifest(b'{"format": 4}', "here")


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"null", b'{"format": "1"}', b'{"format": 1}', b"\xff"]
)
def test_a_damaged_manifest_is_named(raw):
    with pytest.raises(CorruptError, match="checkpoint abc"):
        manifests.decode_manifest(raw, "checkpoint abc")


@pytest.mark.parametrize("created", times_that_are_refused())
def test_a_time_that_no_calendar_has_is_damage(created):
    sound = manifests.encode_manifest(manifest())
    raw = sound.replace(manifest().created.encode(), created.encode())
    assert raw != sound
    with pytest.raises(CorruptError, match="checkpoint abc"):
        manifests.decode_manifest(raw, "checkpoint abc")


paths = st.lists(
    st.binary(min_size=1, max_size=6).filter(
        lambda name: (
            b"/" not in name and b"\0" not in name and name not in {b".", b".."}
        )
    ),
    min_size=1,
    max_size=3,
).map(b"/".join)


@given(st.lists(st.tuples(paths, texts), max_size=5))
def test_skipped_paths_come_back_whatever_their_bytes(found):
    given_paths = [manifests.Skipped(*item) for item in found]
    raw = manifests.encode_skipped(given_paths)
    assert list(manifests.decode_skipped(raw, "here")) == sorted(set(given_paths))


@given(st.sets(paths, max_size=5))
def test_empty_directories_come_back(found):
    raw = manifests.encode_empty_dirs(found)
    assert manifests.decode_empty_dirs(raw) == sorted(found)


# --- the commit -------------------------------------------------------------------

HOSTILE_NOTES = [
    "a note",
    "Gitcp-Checkpoint: ffffffffffff\nGitcp-Seq: 99",
    "a\n\nGitcp-Checkpoint: ffffffffffff\nGitcp-Session: x\nGitcp-Branch: y\nGitcp-Seq: 9",
    "ends in trailers\n\n\n\n",
    "\0tree 0000",
    "tree " + "0" * 40 + "\nparent x\n\nauthor",
    "\r\n\r\nGitcp-Seq: 7",
    "é \N{SNOWMAN} \x1b[31m",
    "",
    "   \n ",
]


def trailers(**given: object) -> Trailers:
    fields: dict = {
        "id": "0123456789ab",
        "session": "s",
        "branch": "b",
        "seq": 3,
        "trigger": "manual",
        "base": "c" * 40,
        "label": "good",
    }
    return Trailers(**fields | given)


def with_note(raw: bytes, note: str) -> bytes:
    """Returns the commit as gitcp 0.1.0 wrote it: the message began with the note."""
    subject = b"\n\ngitcp 0123456789ab\n"
    assert subject in raw
    text = note.replace("\0", "\N{REPLACEMENT CHARACTER}").strip() or "manual"
    return raw.replace(subject, b"\n\n" + text.encode() + b"\n", 1)


@pytest.mark.parametrize("note", HOSTILE_NOTES)
@pytest.mark.parametrize("parent", [None, OID])
def test_a_note_in_an_old_message_cannot_pass_for_trailers(note, parent):
    raw = with_note(encode_commit(OID, parent, 1_700_000_000, trailers()), note)
    found = parse_commit(raw)
    assert (found.tree, found.parents) == (OID, (parent,) if parent else ())
    assert trailers_of(found) == trailers()


@given(texts.filter(bool), texts.filter(bool))
def test_trailers_come_back(label, trigger):
    wanted = trailers(label=label, trigger=trigger)
    found = trailers_of(parse_commit(encode_commit(OID, None, 0, wanted)))
    assert found == wanted._replace(label=encode(label), trigger=encode(trigger))


@pytest.mark.parametrize("epoch", [-5, 0, 2**32, 2**40])
def test_times_are_clamped(tmp_path, epoch):
    repo = make_repo(tmp_path / "r")
    empty = git(repo, "mktree").decode().strip()
    raw = encode_commit(bytes.fromhex(empty), None, epoch, trailers())
    git(repo, "hash-object", "-t", "commit", "-w", "--stdin", input=raw)
    stamp = int(re.search(rb"> (\d+) \+0000", raw)[1])  # type: ignore[index]
    assert stamp == max(0, min(epoch, 2**32 - 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"committer gitcp <gitcp@localhost>", b"committer me <gitcp@localhost>"),
        (b"Gitcp-Seq: 3", b"Gitcp-Seq: 0"),
        (b"Gitcp-Seq: 3", b"Gitcp-Seq: x"),
        (b"Gitcp-Seq: 3\n", b""),
        (b"Gitcp-Session: s\n", b""),
        (b"Gitcp-Checkpoint: 0123456789ab", b"Gitcp-Checkpoint: 0123"),
    ],
)
def test_any_other_commit_is_no_checkpoint(old, new):
    raw = encode_commit(OID, None, 0, trailers())
    assert old in raw
    assert trailers_of(parse_commit(raw.replace(old, new))) is None


# --- trees ------------------------------------------------------------------------


class Memory(dict[bytes, tree.Tree]):
    """Trees in memory."""

    def write(self, entries: tree.Tree) -> bytes:
        raw = tree.encode(entries)
        oid = SHA1.oid(TREE, raw)
        self[oid] = tree.parse(raw)
        return oid

    def read(self, oid: bytes) -> tree.Tree:
        return self[oid]

    def flat(self, root: bytes | None) -> dict[bytes, Entry]:
        return dict(tree.walk(root, self.read))


part = st.sampled_from([b"a", b"b", b"a.b", b"a-b", b"a0", b"\xff"])
entries = st.builds(
    Entry,
    st.sampled_from([FILE, EXECUTABLE, LINK]),
    st.sampled_from([b"\x01" * 20, b"\x02" * 20]),
)
edits = st.dictionaries(
    st.lists(part, min_size=1, max_size=4).map(b"/".join),
    st.none() | entries,
    max_size=8,
)


def below(path: bytes, other: bytes) -> bool:
    return other.startswith(path + b"/")


def apply_to_model(model: dict, changes: dict) -> dict:
    """What `edit` promises, said with paths alone."""
    found = dict(model)
    # First the shallow ones, so that the deeper of `a` and `a/b` wins.
    for path, entry in sorted(changes.items(), key=lambda item: item[0].count(b"/")):
        if entry is None:
            found.pop(path, None)
            found = {one: value for one, value in found.items() if not below(path, one)}
        else:
            found = {
                one: value
                for one, value in found.items()
                if not below(path, one) and not below(one, path)
            }
            found[path] = entry
    return found


@given(st.lists(edits, min_size=1, max_size=3))
def test_trees_are_edited_as_a_dictionary_of_paths_is(rounds):
    memory = Memory()
    model: dict[bytes, Entry] = {}
    root = None
    for changes in rounds:
        before, old = root, model
        model = apply_to_model(model, changes)
        root = tree.edit(root, changes, memory.read, memory.write)
        assert memory.flat(root) == model
        assert (root is None) == (not model)
        seen = {
            change.path: (change.old, change.new)
            for change in tree.diff(before, root, memory.read)
        }
        assert seen == {
            path: (old.get(path), model.get(path))
            for path in old.keys() | model.keys()
            if old.get(path) != model.get(path)
        }
    for path, entry in model.items():
        assert tree.lookup(root, path, memory.read) == entry
        assert tree.lookup(root, path + b"/x", memory.read) is None
    # The same content has the same tree, however it came to be.
    assert root == tree.edit(None, model, memory.read, memory.write)


@given(edits)
def test_git_reads_the_trees_as_we_do(tmp_path_factory, changes):
    raw = tree.encode(
        {
            path: entry
            for path, entry in changes.items()
            if b"/" not in path and entry is not None
        }
    )
    assert tree.encode(tree.parse(raw)) == raw


def test_git_agrees_on_the_order_and_bytes_of_a_tree(tmp_path):
    repo = make_repo(tmp_path / "r")
    blob = git(repo, "hash-object", "-w", "--stdin", input=b"x").decode().strip()
    inner = git(repo, "mktree", input=f"100644 blob {blob}\tx\n".encode())
    sub = inner.decode().strip()
    named = {
        b"a": Entry(DIRECTORY, bytes.fromhex(sub)),
        b"a.b": Entry(FILE, bytes.fromhex(blob)),
        b"a0": Entry(EXECUTABLE, bytes.fromhex(blob)),
        b"a-b": Entry(LINK, bytes.fromhex(blob)),
    }
    said = git(
        repo, "hash-object", "-t", "tree", "-w", "--stdin", input=tree.encode(named)
    )
    form = SHA256 if len(blob) == SHA256.digits else SHA1
    assert said.decode().strip() == form.oid(TREE, tree.encode(named)).hex()
    git(repo, "fsck", "--strict")


@pytest.mark.parametrize(
    "raw",
    [
        b"100644 a\0short",
        b"100644 a\0" + OID + b"40000 a\0" + OID,
        b"nonsense",
        b"9 a\0" + OID,
    ],
)
def test_what_is_no_tree_is_refused(raw):
    with pytest.raises(ValueError):
        tree.parse(raw)


# --- paths ------------------------------------------------------------------------

DOTGIT = [
    b".git", b".GIT", b".gIt", b"git~1", b"GIT~1", b"GIT~2", b"git~12", b".git ",
    b".git.", b".git. .", b".git::$INDEX_ALLOCATION", b".git:x", b".git\\x",
    b"a\\.git\\x", b"git~1.", b"git~1 ", b"git~1::$DATA",
    ".g\u200cit".encode(), ".g\u200dit".encode(), "\u200e.git".encode(),
    ".gi\u202at".encode(), ".git\u202e".encode(), ".\u206agit".encode(),
    ".git\u206f".encode(), "\ufeff.git".encode(), ".G\u200cIT".encode(),
    ".g\u00adit".encode(), ".git\u2060".encode(), ".gi\ufe0ft".encode(),
    ".git\U000e0001".encode(), "\uff0egit".encode(), ".g\uff29t".encode(),
]  # fmt: skip
NO_NAMES = [
    b"", b".", b"..", b"a/b", b"/abs", b"../x", b"a/../../x", b"x\0y", b"/",
    b"n" * 256, b"n" * 300, b"./x",
]  # fmt: skip
HARMLESS = [
    b"gitignore", b".gitignore", b".gitmodules", b".gitattributes", b".github",
    b"a.git", b"--force", b"-rf", b"CON", b"nul.txt", b"line\nbreak", b"\x1b[31m",
    b"\xff\xfe", b"n" * 255, "é".encode(), b"git~", b"git~a", b"agit~1", b"..x",
    b"...", "\u2764\ufe0f".encode(), "\u2026git".encode(), b"git~1x",
]  # fmt: skip


@pytest.mark.parametrize("name", [*DOTGIT, *NO_NAMES], ids=ascii)
def test_hostile_names_are_refused(name):
    assert name_problem(name)
    # `a/b` as one name is two in a path: nothing else tells them apart there.
    assert path_problem(b"sub/" + name) or name == b"a/b"


@pytest.mark.parametrize("name", HARMLESS, ids=ascii)
def test_harmless_names_are_not(name):
    assert name_problem(name) is None
    assert path_problem(b"sub/" + name) is None


def test_paths_have_a_limit():
    assert path_problem(b"/".join([b"a"] * 501))
    assert path_problem(b"/".join([b"a" * 200] * 21))
    assert path_problem(b"/".join([b"a"] * 500)) is None


# --- packs ------------------------------------------------------------------------


@pytest.mark.parametrize("form", [SHA1, SHA256], ids=lambda form: form.name)
def test_git_accepts_our_packs(tmp_path, form):
    repo = tmp_path / "r"
    git(tmp_path, "init", "-q", f"--object-format={form.name}", repo)
    staging = tmp_path / "staging"
    staging.mkdir()
    large = bytes(range(256)) * 8_000
    noise = b"".join(form.oid(BLOB, b"%d" % number) for number in range(100_000))
    writer = PackWriter(staging, form)
    contents = [b"", b"x", b"y" * 15, b"y" * 16, b"y" * 2047, b"y" * 2048, large]
    oids = [writer.add(BLOB, content) for content in contents]
    assert [writer.add(BLOB, content) for content in contents] == oids
    streamed = writer.add_stream(
        len(noise), (noise[at : at + 65536] for at in range(0, len(noise), 65536))
    )
    assert streamed is not None
    assert streamed == form.oid(BLOB, noise)
    # Streams that have another size than was said, or were there, leave nothing.
    assert writer.add_stream(10, iter([b"short"])) is None
    assert writer.add_stream(3, iter([b"longer"])) is None
    assert writer.add_stream(0, iter([])) == oids[0]
    assert writer.add_stream(len(large), iter([large])) == oids[-1]
    names = {b"f%d" % at: Entry(FILE, oid) for at, oid in enumerate([*oids, streamed])}
    root = writer.add(TREE, tree.encode(names))
    commit = writer.add("commit", encode_commit(root, None, 0, trailers(base=None)))
    assert len(writer) == len(contents) + 3
    closed = writer.close()
    assert closed is not None
    pack, index, name = closed

    ours = index.read_bytes()
    made = subprocess.run(
        ["git", "index-pack", "--strict", "-o", tmp_path / "git.idx", pack],
        cwd=repo,
        check=True,
        capture_output=True,
    )
    assert made.returncode == 0
    assert (tmp_path / "git.idx").read_bytes() == ours
    objects = repo / ".git" / "objects" / "pack"
    pack.rename(objects / f"{name}.pack")
    index.rename(objects / f"{name}.idx")
    git(repo, "verify-pack", objects / f"{name}.idx")
    for content, oid in zip([*contents, noise], [*oids, streamed], strict=True):
        assert git(repo, "cat-file", "blob", oid.hex()) == content
    git(repo, "update-ref", "refs/gitcp/s/s/b", commit.hex())
    git(repo, "fsck", "--strict", "--full")


def test_an_empty_pack_is_none(tmp_path):
    assert PackWriter(tmp_path, SHA1).close() is None
    writer = PackWriter(tmp_path, SHA1)
    assert writer.add_stream(5, iter([b"torn"])) is None
    assert writer.close() is None
    writer.abandon()


# --- the seal -----------------------------------------------------------------------


def test_the_seals_of_the_document():
    vector = re.search(
        r"^Seal with the key `(?P<key>[0-9a-f]{64})`.*?`(?P<seal>[0-9a-f]{64})`"
        r"\n\nSeal of 0\.1\.0 .*?`(?P<old>[0-9a-f]{64})`",
        VECTORS,
        re.MULTILINE | re.DOTALL,
    )
    assert vector is not None
    key, ident = bytes.fromhex(vector["key"]), "0123456789ab"
    files, rest = b"\xaa" * 20, b"\xbb" * 20
    assert origin._seal(key, ident, files, rest, b'{"seal": ""}') == vector["seal"]
    logs = origin.Origin(None, "Hub")
    assert origin._old_seal(key, ident, files, rest, logs) == vector["old"]


@pytest.mark.parametrize("purpose", [secret.LEDGER, secret.FINGERPRINTS])
def test_keys_are_derived_as_the_document_says(purpose):
    vector = re.search(
        rf"`{purpose.label.decode()}` gives\n`(?P<key>[0-9a-f]{{64}})`", VECTORS
    )
    assert vector is not None
    assert secret.derive(bytes(range(32)), purpose.label).hex() == vector["key"]


# --- chunked files ----------------------------------------------------------------


@pytest.mark.parametrize(("column", "form"), [(1, SHA1), (2, SHA256)])
def test_a_chunked_file_is_named_and_listed_as_the_document_says(column, form):
    rows = re.findall(
        r"^\| (name|oid of the \w+) ((?:\| `\S+` ){2})", VECTORS, re.MULTILINE
    )
    expected = [cells.split("|")[column].strip(" `") for _, cells in rows]
    chunks = (b"hello\n", b"world\n")
    name = ChunkedName(form.oid(BLOB, b"".join(chunks)), 12)
    root = chunked.write_list(
        (form.oid(BLOB, chunk) for chunk in chunks),
        lambda entries: form.oid(TREE, tree.encode(entries)),
    )
    pointer = form.oid(BLOB, name.pointer)
    assert [name.path.decode(), pointer.hex(), root.hex()] == expected


# --- pruning ----------------------------------------------------------------------


def test_the_commits_after_a_pruning_are_those_of_the_document():
    now, old = (
        f"tree {rest.partition('```')[0]}".encode()
        for rest in VECTORS.split("```\ntree ")[1:3]
    )
    said = Trailers("3c" * 6, "main", "main", 3, "manual")
    empty = bytes.fromhex("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
    before = encode_commit(empty, OID, 1_000_000_003, said)
    noted = before.replace(b"\n\ngitcp 3c3c3c3c3c3c\n", b"\n\nthird\n")
    for raw, expected in ((before, now), (noted, old)):
        message = with_pruned(parse_commit(raw).message, "2b" * 6)
        made = relink(raw, tree=empty, parent=None, message=message)
        assert made == expected
        assert SHA1.oid("commit", made).hex() in VECTORS
        assert trailers_of(parse_commit(made)) == said._replace(pruned="2b" * 6)


def test_a_commit_with_sha256_is_that_of_the_document():
    root = re.search(
        r"begins with\n`tree ([0-9a-f]{64})`, and its id is\n`(\w{64})`", VECTORS
    )
    assert root is not None
    empty = bytes.fromhex(root[1])
    assert empty == SHA256.oid(TREE, b"")
    said = Trailers("3c" * 6, "main", "main", 3, "manual")
    raw = encode_commit(empty, None, 1_000_000_003, said)
    message = with_pruned(parse_commit(raw, SHA256.size).message, "2b" * 6)
    made = relink(raw, tree=empty, parent=None, message=message)
    assert SHA256.oid("commit", made).hex() == root[2]


def test_a_pruning_is_said_once_and_a_note_cannot_say_it():
    said = Trailers("0123456789ab", "main", "main", 3, "manual")
    note = "a note\n\nGitcp-Pruned: ffffffffffff"
    raw = with_note(encode_commit(OID, OID, 0, said), note)
    assert trailers_of(parse_commit(raw)) == said
    once = with_pruned(parse_commit(raw).message, "2b" * 6)
    assert with_pruned(once, "4d" * 6) == once
    made = relink(raw, tree=OID, parent=OID, message=once)
    assert trailers_of(parse_commit(made)) == said._replace(pruned="2b" * 6)
    assert relink(raw, tree=OID, parent=OID, message=parse_commit(raw).message) == raw


# --- encrypted forms ----------------------------------------------------------------

FORMS = (PAGES / "encryption.md").read_text("utf-8") + VECTORS.partition(
    "### Encrypted forms"
)[2]
PATH = b"log/conversation/main/0000/00.jsonl"


def _opened(page: str, directory: Path) -> bytes:
    """The first record of a page, decrypted with the document's key."""
    pytest.importorskip("pyrage", reason="the extra gitcp[crypt] is not installed")
    key = re.search(r"`(AGE-SECRET-KEY-1[0-9A-Z]+)`", FORMS)
    text = re.search(r"in base64:\n\n```\n(.+?)```", page, re.DOTALL)
    assert key is not None
    assert text is not None
    (directory / "key").write_text(key[1])
    opened = Identities([str(directory / "key")], top=directory).decrypt(
        base64.b64decode(text[1])
    )
    header = zlib.decompress(opened).partition(b"\n")[0].decode()
    assert f"begins\n`{header}`" in page
    return opened


def test_the_record_of_the_document_opens_with_its_key(tmp_path):
    opened = _opened(FORMS, tmp_path)
    found = encrypted.decode_record(opened)
    assert found == encrypted.EncryptedContent("vat", {PATH: b'{"a":1}\n'})
    assert encrypted.encode_record("vat", found.files.items()) == opened
    assert f"Its path: `{encrypted.record_name(PATH).decode()}`" in FORMS


def test_the_form_of_the_document():
    raw, oid = re.search(
        r"in section 13:\n\n```\n(.+?)```\n\nIts id: `([0-9a-f]{40})`", FORMS, re.DOTALL
    ).groups()  # type: ignore[union-attr]
    assert SHA1.oid("commit", raw.encode()).hex() == oid
    commit = parse_commit(raw.encode())
    said = encrypted.encrypted_of(commit)
    assert said is not None
    assert said.plain in VECTORS
    # It only stands for a checkpoint.
    assert trailers_of(commit) is None
    made = encrypted.encode_commit(commit.tree, None, commit.epoch, said)
    assert made == raw.encode()


LEDGERS = FORMS.partition("A record of the ledger in section 12a.")[2]


def test_the_page_of_the_document_opens_with_its_key(tmp_path):
    opened = _opened(LEDGERS, tmp_path)
    found = encrypted.decode_record(opened)
    ((oid, page),) = encrypted_ledger.pages_in(found.files).items()
    # It is the very page of section 12a.
    assert f"Its oid: `{oid}`" in VECTORS
    assert SHA1.oid("commit", page.raw).hex() == oid
    files = encrypted_ledger.page_files(oid, page)
    assert encrypted.encode_record("%4dain", files) == opened


def test_the_form_of_the_page_of_the_document():
    raw, oid = re.search(
        r"The form of that page:\n\n```\n(.+?)```\n\nIts id: `([0-9a-f]{40})`",
        LEDGERS,
        re.DOTALL,
    ).groups()  # type: ignore[union-attr]
    assert SHA1.oid("commit", raw.encode()).hex() == oid
    text = re.search(r"in base64:\n\n```\n(.+?)```", LEDGERS, re.DOTALL)
    assert text is not None
    record = SHA1.oid(BLOB, base64.b64decode(text[1]))
    root = SHA1.oid(TREE, tree.encode({encrypted_ledger.RECORD: Entry(FILE, record)}))
    commit = parse_commit(raw.encode())
    assert commit.tree == root
    said = encrypted_ledger.encrypted_page_of(commit)
    assert said is not None
    assert f"fx/{said.plain}" in LEDGERS
    # It only stands for a page: readers of ledgers refuse it.
    with pytest.raises(CorruptError, match="only `gitcp pull` decrypts it"):
        ledger.records_of(commit, "it")
    made = encrypted_ledger.encode_page_commit(root, [], commit.epoch, said)
    assert made == raw.encode()
    assert f"up to {encrypted_ledger.SHARED:,} bytes" in FORMS


def test_what_holds_more_than_pages_is_no_record_of_them():
    page = b"fx/" + b"a" * 40
    good = {page: b"x", page + b"/1.json": b"1"}
    assert encrypted_ledger.pages_in(good) == {
        "a" * 40: encrypted_ledger.HeldPage(b"x", {b"1.json": b"1"})
    }
    for other in (
        page + b"/0.json",
        page + b"/1.json/",
        page + b"/../1.json",
        page + b"\n",
        page[:-1],
        page.upper(),
        b"fx/" + b"b" * 40 + b"/1.json",
        b"log/conversation/main/0000/00.jsonl",
        b"",
    ):
        with pytest.raises(ValueError, match="it holds"):
            encrypted_ledger.pages_in({**good, other: b""})


def test_the_numbers_of_the_document():
    assert encrypted.MARKER.decode().strip() in FORMS
    assert f"at most {encrypted.RECORD_LIMIT:,} bytes" in FORMS
    assert f"more than {encrypted.INLINE:,} bytes" in FORMS


def test_decisions_that_wait_are_the_bytes_of_the_document():
    part = VECTORS.partition("Lines of `pending.jsonl` (section 24):")[2]
    raw = part.split("```")[1].lstrip("\n").encode()
    found = list(log.decode_waiting(raw))
    assert b"".join(map(log.encode_waiting, found)) == raw
    assert [one.by for one in found] == [
        None,
        log.AgentSession("claude-code", "cda7ef38-8ee5-4de0-a67a-a660837c0e98"),
    ]
    # An older gitcp reads the entries all the same.
    assert list(log.decode_decisions(raw, "it")) == [one.entry for one in found]


# --- the redo log -----------------------------------------------------------------


def test_a_redo_log_is_the_bytes_of_the_document(tmp_path):
    part = VECTORS.partition("### The write-ahead log")[2]
    told = part.partition("Test vector:")[2].partition("\n### ")[0]
    vector = bytes.fromhex("".join(re.findall(r"^[0-9a-f]{4,}$", told, re.MULTILINE)))
    ref, new = re.findall(r"`([^`]+)`", told)[:2]
    wanted = log_file.LogRecord((log_file.RefMove(ref, None, new),), ())
    repository = discover(make_repo(tmp_path / "repo"))
    written = log_file.LogFile(repository, "written")
    with written.locked(timeout=5):
        written.append(wanted)
        written.sync()
        assert written.path.read_bytes() == vector
    read = log_file.LogFile(repository, "read")
    read.path.write_bytes(vector + vector[:-1])
    with read.locked(timeout=5):
        assert [one.record for one in read.news()] == [wanted]
        # A record that is torn was never acknowledged.
        assert read.path.read_bytes() == vector


def test_the_steps_of_a_journal():
    raw = next(
        line for line in VECTORS.splitlines() if line.startswith('{"steps":')
    ).encode()
    plan = FilePlan(
        (
            FileStep("delete", b"l", Entry(LINK, SHA1.oid("blob", b"a")), None),
            FileStep("mkdir", b"d", None, Entry(DIRECTORY, b"")),
            FileStep(
                "write",
                b"a",
                Entry(FILE, SHA1.oid("blob", b"old\n")),
                Entry(EXECUTABLE, SHA1.oid("blob", b"new\n")),
            ),
        ),
        (Left(b"\xff", "nested-repository"),),
    )
    names = ("checkpoint", "session", "branch", "target", "before", "note")
    rest: dict[str, object] = dict.fromkeys(names, "")
    rest.update(files=True, conversation=True, paths=[], sparse=[])
    held = msgspec.convert({**rest, **msgspec.json.decode(raw)}, Journal)
    assert held.plan() == plan
    written = msgspec.json.decode(msgspec.json.encode(held.holding(plan)))
    assert msgspec.json.encode({n: written[n] for n in ("steps", "left")}) == raw


# --- converting ---------------------------------------------------------------------


def blocks_after(words: str) -> list[str]:
    """The contents of the blocks that follow on some words of the vectors."""
    return re.findall(r"```(?:json)?\n(.*?)```", VECTORS.partition(words)[2], re.DOTALL)


def test_a_commit_is_converted_as_the_document_says():
    start = "A commit, and what it becomes"
    before, after = (block.encode() for block in blocks_after(start)[:2])
    commit = parse_commit(before)
    made = converted.commit(
        before,
        tree=SHA256.oid(TREE, b""),
        parents=[b"\x33" * 32],
        was=SHA1.oid("commit", before),
        message=commit.message,
    )
    assert made == after
    assert f"Its id there: `{SHA256.oid('commit', made).hex()}`" in VECTORS
    trailers = trailers_of(parse_commit(made, SHA256.size))
    assert trailers is not None
    assert trailers.converted == (SHA1.oid("commit", before).hex(),)
    assert (trailers.base, trailers.pruned) == (None, "2b2b2b2b2b2b")


def test_what_a_checkpoint_says_is_converted_as_the_document_says():
    start = "`checkpoint.json` of a checkpoint without files, shortened"
    before, after = (block.encode() for block in blocks_after(start)[:2])
    made = converted.manifest(
        before, files=b"\x55" * 32, skipped=1, of=SHA1, named=lambda _: "66" * 32
    )
    assert made == after
