"""The SDK's session store: its own conformance suite, and what that does not ask."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    InMemorySessionStore,
    fold_session_summary,
    fork_session_via_store,
    list_sessions_from_store,
    project_key_for_directory,
)
from claude_agent_sdk.testing import run_session_store_conformance
from hypothesis import given, settings
from hypothesis import strategies as st

from gitcp.adapters.claude_sdk import GitcpSessionStore, keys
from gitcp.errors import GitcpError, NotARepositoryError, NotFoundError, UsageError
from gitcp.project.adapter_store import store_at
from gitcp.project.workspace import open_workspace
from gitcp.store.store import Store
from tests.support.gitrepo import (
    commit_all,
    git,
    git_line,
    tree_bytes,
)
from tests.support.graphs import chain, everything, opened
from tests.support.inprocess import fails, ok
from tests.support.needs import knows_reftable, needs_reftable

SID = "6f0a7a3e-8d5e-4c2b-9b0d-000000000001"
KEY: Any = {"project_key": "-home-me-shop", "session_id": SID}
SUB: Any = {**KEY, "subpath": "subagents/agent-1"}


def entry(number: int, **fields: Any) -> Any:
    uuid = f"00000000-0000-4000-8000-{number:012d}"
    return {"type": "user", "uuid": uuid, "n": number, **fields}


def run(work: Any) -> Any:
    return asyncio.run(work)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "transcripts"


@pytest.fixture
def store(place: Path) -> GitcpSessionStore:
    return GitcpSessionStore(place)


def test_the_sdks_conformance_suite_passes_in_full(tmp_path):
    made: list[GitcpSessionStore] = []

    def make() -> GitcpSessionStore:
        made.append(GitcpSessionStore(tmp_path / str(len(made))))
        return made[-1]

    run(run_session_store_conformance(make))
    # A probe and one store for each contract: none was skipped.
    assert len(made) == 15


def test_an_empty_directory_becomes_a_bare_repository(tmp_path, store, place):
    assert git(place, "rev-parse", "--is-bare-repository") == b"true\n"
    empty = tmp_path / "empty"
    empty.mkdir()
    run(GitcpSessionStore(empty).append(KEY, [entry(1)]))
    assert run(GitcpSessionStore(empty).load(KEY)) == [entry(1)]
    assert git(empty, "fsck", "--strict", "--no-dangling") == b""


@pytest.mark.parametrize("form", ["sha1", "sha256"])
def test_a_store_is_of_the_kind_that_git_init_makes(tmp_path, monkeypatch, form):
    """Of that of Git 3.0, too, which has a tree of its own for references."""
    monkeypatch.setenv("GIT_DEFAULT_HASH", form)
    storage = "reftable" if form == "sha256" and knows_reftable() else "files"
    monkeypatch.setenv("GIT_DEFAULT_REF_FORMAT", storage)
    new = tmp_path / "new"
    run(GitcpSessionStore(new).append(KEY, [entry(1)]))
    assert git_line(new, "rev-parse", "--show-object-format") == form
    assert (new / "reftable").exists() == (storage == "reftable")
    assert run(GitcpSessionStore(new).load(KEY)) == [entry(1)]
    with opened(new) as saver:
        chain(saver, "t", 3)
        before = everything(saver)
    with opened(new) as saver:
        assert everything(saver) == before
    git(new, "fsck", "--strict", "--no-dangling")


@pytest.mark.parametrize("left", ["refs", "reftable", "testing"])
def test_what_a_killed_init_left_is_completed(tmp_path, monkeypatch, left):
    if left == "reftable":
        needs_reftable()
        monkeypatch.setenv("GIT_DEFAULT_REF_FORMAT", left)
    half = tmp_path / "half"
    half.mkdir()
    if left == "testing":
        # git looks whether there can be links.
        (half / "tRQ3nGf").symlink_to("testing")
    else:
        (half / left).mkdir()
    (half / "config.lock").write_bytes(b"")
    run(GitcpSessionStore(half).append(KEY, [entry(1)]))
    assert run(GitcpSessionStore(half).load(KEY)) == [entry(1)]


def test_a_directory_of_something_else_is_refused_and_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    before = tree_bytes(tmp_path)
    with pytest.raises(NotARepositoryError, match="neither a git repository nor empty"):
        GitcpSessionStore(tmp_path)
    with pytest.raises(GitcpError):
        GitcpSessionStore(tmp_path / "notes.txt")
    assert tree_bytes(tmp_path) == before


def test_a_folder_without_git_serves_by_its_private_store(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    ok(tmp_path, "save", "--init")
    before = tree_bytes(tmp_path)
    run(GitcpSessionStore(tmp_path).append(KEY, [entry(1)]))
    assert run(GitcpSessionStore(tmp_path).load(KEY)) == [entry(1)]
    assert tree_bytes(tmp_path) == before


def test_a_projects_own_repository_serves_and_its_files_stay(repo):
    (repo / "src/pkg/main.py").write_text("mine, not committed\n")
    before = tree_bytes(repo)
    status = git(repo, "status", "--porcelain=v2", "--branch")
    own = GitcpSessionStore(repo / "src")
    run(own.append(KEY, [entry(1)]))
    assert run(GitcpSessionStore(repo).load(KEY)) == [entry(1)]
    assert tree_bytes(repo) == before
    assert git(repo, "status", "--porcelain=v2", "--branch") == status
    assert ok(repo, "verify")["ok"]
    # It has no files: restoring it must not take those that are there.
    name = f"{keys.Key(KEY['project_key'], SID).name}:last"
    done = ok(repo, "restore", name, "--yes")
    assert done["plan"] == []
    assert tree_bytes(repo) == before
    assert "has no files" in fails(repo, 2, "restore", name, "--files", "--yes")
    assert "has no files" in fails(repo, 2, "restore", name, "README.md", "--yes")


AWKWARD = [
    "main",
    "=main",
    "==",
    "a/b",
    "a%2Fb",
    "a@b",
    "%",
    "..",
    "-rf",
    "ünïcode ☃ \U0001f600",
    "UPPER",
    "upper",
    "new\nline\ttab\0nul",
    "x.lock",
    "@{0}",
    " ",
    "\ud800",
    "x" * 300,
    "x" * 299 + "y",
]


def test_any_text_is_an_id(store):
    """No two keys meet, and each is listed as it was given."""

    async def work() -> None:
        keyed: list[Any] = [
            {"project_key": project, "session_id": session}
            for project in AWKWARD
            for session in (AWKWARD[1], "s")
        ]
        keyed += [{"project_key": "p", "session_id": one} for one in AWKWARD]
        for number, key in enumerate(keyed):
            await store.append(key, [entry(number)])
        for number, key in enumerate(keyed):
            assert await store.load(key) == [entry(number)], key
        for project in AWKWARD:
            found = await store.list_sessions(project)
            assert {one["session_id"] for one in found} == {AWKWARD[1], "s"}, project
        found = await store.list_sessions("p")
        assert sorted(one["session_id"] for one in found) == sorted(AWKWARD)
        for number, subpath in enumerate(AWKWARD):
            await store.append({**KEY, "subpath": subpath}, [entry(number)])
        for number, subpath in enumerate(AWKWARD):
            assert await store.load({**KEY, "subpath": subpath}) == [entry(number)]
        assert sorted(await store.list_subkeys(KEY)) == sorted(AWKWARD)
        assert await store.load(KEY) is None

    run(work())


def test_an_id_that_is_too_long_is_refused(store):
    with pytest.raises(UsageError, match="longer than 1,000 bytes"):
        run(store.append({**KEY, "session_id": "x" * 1001}, [entry(1)]))
    with pytest.raises(UsageError, match="longer than 1,000 bytes"):
        run(store.append({**KEY, "subpath": "x" * 1001}, [entry(1)]))


@given(st.text(max_size=40), st.text(max_size=40))
def test_a_key_reads_back_from_its_name(project, session):
    assert keys.parse(keys.Key(project, session).name) == (project, session)
    assert keys.subpath_of(keys.source_of(project)) == (project or None)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=25)
@given(batches=st.lists(st.lists(st.dictionaries(st.text(), json_values), max_size=3)))
def test_records_come_back_equal_and_in_order(tmp_path_factory, batches):
    store = GitcpSessionStore(tmp_path_factory.mktemp("records"))
    for one in (one for batch in batches for one in batch):
        one.pop("uuid", None)  # those with a uuid are the next test's

    async def work() -> Any:
        for batch in batches:
            await store.append(KEY, batch)
        return await store.load(KEY)

    wanted = [one for batch in batches for one in batch]
    found = run(work())
    assert (found or []) == wanted
    assert repr(found or []) == repr(wanted)  # 1 is not 1.0 is not True


def test_lone_surrogates_and_long_numbers_come_back(store):
    odd = {"type": "x", "text": "\ud83d broken", "n": 10**40, "f": 1e300, "z": -0.0}
    run(store.append(KEY, [odd]))
    assert repr(run(store.load(KEY))) == repr([odd])


def test_what_is_not_json_is_refused_whole(store):
    run(store.append(KEY, [entry(1)]))
    for bad in (float("nan"), float("inf"), object(), b"bytes"):
        with pytest.raises(UsageError, match="is not JSON"):
            run(store.append(KEY, [entry(2), {"type": "x", "bad": bad}]))
    assert run(store.load(KEY)) == [entry(1)]


def test_a_record_sent_again_is_stored_once(store, place):
    plain = {"type": "mode", "mode": "plan"}

    async def work() -> None:
        await store.append(KEY, [entry(1), entry(2), entry(2)])
        await store.append(KEY, [entry(2), entry(3), plain])
        await store.append(KEY, [plain])
        assert await store.load(KEY) == [entry(1), entry(2), entry(3), plain, plain]
        tips = git(place, "for-each-ref")
        await store.append(KEY, [entry(3), entry(1)])
        assert git(place, "for-each-ref") == tips
        # The same uuid in a subagent's transcript is another record.
        await store.append(SUB, [entry(1)])
        assert await store.load(SUB) == [entry(1)]
        # Another store object, another process: it reads what is there.
        again = GitcpSessionStore(place)
        await again.append(KEY, [entry(3), entry(4)])
        await store.append(KEY, [entry(4), entry(5)])
        numbers = [one["n"] for one in await store.load(KEY) if "n" in one]
        assert numbers == [1, 2, 3, 4, 5]
        # Not only as it is read: as it is stored, too.
        tip = store_at(place).tip(keys.Key(KEY["project_key"], SID).name, "main")
        assert tip is not None
        assert tip.conversation().count(b"\n") == 7

    run(work())


def test_a_record_that_comes_again_changed_takes_its_own_place(store, place):
    async def work() -> None:
        await store.append(KEY, [entry(1), entry(2, text="draft"), entry(3)])
        await store.append(KEY, [entry(2, text="final")])
        wanted = [entry(1), entry(2, text="final"), entry(3)]
        assert await store.load(KEY) == wanted
        await GitcpSessionStore(place).append(KEY, [entry(2, text="final")])
        assert await store.load(KEY) == wanted
        await store.append(KEY, [entry(2, text="draft")])
        assert (await store.load(KEY))[1]["text"] == "draft"

    run(work())


def test_a_deleted_session_is_gone_also_where_refs_are_packed(store, place):
    async def work() -> None:
        other: Any = {**KEY, "session_id": "other"}
        for packed in (False, True):
            await store.append(KEY, [entry(1)])
            await store.append(SUB, [entry(2)])
            await store.append(other, [entry(3)])
            if packed:
                git(place, "pack-refs", "--all")
            await store.delete(KEY)
            assert await store.load(KEY) is None
            assert await store.load(SUB) is None
            assert await store.list_subkeys(KEY) == []
            assert await store.load(other) == [entry(3)]
        # What comes after starts afresh, deduplication included.
        await store.append(KEY, [entry(1)])
        assert await store.load(KEY) == [entry(1)]

    run(work())


def test_a_delete_takes_sessions_of_this_store_only(repo):
    """A session of the user's own with a name like ours stays."""
    ok(repo, "save", "-s", "claude-sdk", "-m", "mine")
    ok(repo, "save", "-s", SID, "--allow-empty", "-m", "mine too")
    store = GitcpSessionStore(repo)
    run(store.append(KEY, [entry(1)]))
    name = keys.Key(KEY["project_key"], SID).name
    ok(repo, "fork", f"{name}:last", "aside", "--no-switch")
    run(store.delete(KEY))
    names = {one["name"] for one in ok(repo, "sessions")["sessions"]}
    assert names == {"claude-sdk", SID}


def test_a_deleted_subpath_is_gone_and_verify_agrees(store, place, tmp_path):
    async def work() -> None:
        await store.append(SUB, [entry(1), entry(2)])
        assert await store.load(KEY) is None
        assert await store.list_sessions(KEY["project_key"]) == []
        await store.append(KEY, [entry(3)])
        await store.delete(SUB)
        await store.delete(SUB)
        await store.delete({**KEY, "subpath": "never"})
        assert await store.load(SUB) is None
        assert await store.list_subkeys(KEY) == []
        assert await store.load(KEY) == [entry(3)]
        await store.append(SUB, [entry(2)])
        assert await store.load(SUB) == [entry(2)]

    run(work())
    clone = tmp_path / "clone"
    form = git_line(place, "rev-parse", "--show-object-format")
    git(tmp_path, "init", "--quiet", f"--object-format={form}", clone)
    git(clone, "fetch", "--quiet", str(place), "refs/gitcp/*:refs/gitcp/*")
    assert ok(clone, "verify")["ok"]


def test_the_conversation_of_a_session_is_its_main_transcript(repo):
    store = GitcpSessionStore(repo)
    run(store.append(KEY, [entry(1), entry(2)]))
    run(store.append(SUB, [entry(3)]))
    name = f"{keys.Key(KEY['project_key'], SID).name}:last"
    shown = ok(repo, "show", name)["checkpoint"]["conversation"]
    assert shown["messages"] == 2
    assert shown["agent"] == "claude-code"
    assert shown["agent_session"] == SID


def conversation(number: int) -> list[Any]:
    """Records as the client writes them, as far as a summary looks at them."""
    at = f"2026-11-21T10:00:{number % 60:02d}.000Z"
    message = {"role": "user", "content": f"prompt {number}"}
    found = [entry(number, timestamp=at, cwd="/p", gitBranch="main", message=message)]
    if number % 3 == 0:
        found.append({"type": "custom-title", "customTitle": f"title {number}"})
    if number % 4 == 0:
        found.append({"type": "tag", "tag": f"tag {number}" if number % 8 else ""})
    return found


def test_summaries_are_those_of_the_reference_store(store, place):
    async def work() -> None:
        reference = InMemorySessionStore()
        for number in range(1, 25):
            # Every other append by a store that has just been opened.
            one = store if number % 2 else GitcpSessionStore(place)
            await one.append(KEY, conversation(number))
            await one.append(SUB, conversation(100 + number))
            await reference.append(KEY, conversation(number))
        project = KEY["project_key"]
        mine = await store.list_session_summaries(project)
        theirs = await reference.list_session_summaries(project)
        assert [one["data"] for one in mine] == [one["data"] for one in theirs]
        assert [one["mtime"] for one in mine] == [
            one["mtime"] for one in await store.list_sessions(project)
        ]

    run(work())


def test_a_summary_that_is_too_large_is_left_to_the_sdk(store, tmp_path):
    directory = str(tmp_path)
    key: Any = {**KEY, "project_key": project_key_for_directory(directory)}

    async def work() -> None:
        await store.append(key, conversation(1))
        await store.append(key, [{"type": "x", "lastPrompt": "long" * 100_000}])
        assert await store.list_session_summaries(key["project_key"]) == []
        [info] = await list_sessions_from_store(store, directory)
        assert info.first_prompt == "prompt 1"
        await store.append(key, [{"type": "x", "lastPrompt": "short"}])
        [summary] = await store.list_session_summaries(key["project_key"])
        wanted = fold_session_summary(None, key, await store.load(key))
        assert summary["data"] == wanted["data"]

    run(work())


def test_the_sdks_fork_works_on_the_store_alone(store, tmp_path):
    directory = str(tmp_path)
    key: Any = {**KEY, "project_key": project_key_for_directory(directory)}

    async def work() -> None:
        await store.append(key, [*conversation(1), *conversation(2)])
        made = await fork_session_via_store(store, SID, directory)
        forked = await store.load({**key, "session_id": made.session_id})
        prompts = [one["n"] for one in forked if one["type"] == "user"]
        assert prompts == [1, 2]
        found = await list_sessions_from_store(store, directory)
        assert {one.session_id for one in found} == {SID, made.session_id}

    run(work())


def test_a_session_of_another_directory_is_adopted(store, tmp_path):
    """On another machine the project lies elsewhere, and so does its key."""
    directory = str(tmp_path)
    here: Any = {**KEY, "project_key": project_key_for_directory(directory)}

    async def work() -> None:
        await store.append(KEY, [entry(1), entry(2)])
        await store.append(SUB, [entry(3)])
        assert await store.load(here) is None
        assert await store.adopt(SID, directory) == 3
        assert await store.load(here) == [entry(1), entry(2)]
        assert await store.load({**here, "subpath": SUB["subpath"]}) == [entry(3)]
        assert await store.adopt(SID, directory) == 0
        with pytest.raises(NotFoundError):
            await store.adopt("00000000-0000-4000-8000-000000000000", directory)

    run(work())


# --- what was made elsewhere ---------------------------------------------------------


def spoken(uuid: str, parent: str | None, text: str, **more: Any) -> Any:
    return {
        "type": "user",
        "uuid": uuid,
        "parentUuid": parent,
        "permissionMode": "bypassPermissions",
        "sessionId": "theirs",
        "cwd": "/theirs",
        "message": {"role": "user", "content": text},
        **more,
    }


@pytest.fixture
def pulled(tmp_path: Path) -> Path:
    """A clone with a session of another clone's store, as it is pulled."""
    hub, ann, bob = (tmp_path / name for name in ("hub", "ann", "bob"))
    git(tmp_path, "init", "--quiet", "--bare", str(hub))
    for clone in (ann, bob):
        git(tmp_path, "clone", "--quiet", str(hub), str(clone))
        (clone / "a").write_text(clone.name)
        commit_all(clone)
    theirs = GitcpSessionStore(ann)

    async def work() -> None:
        mode: Any = {"type": "permission-mode", "permissionMode": "x"}
        await theirs.append(KEY, [mode, spoken("u1", None, "one"), entry(2)])
        await theirs.append(SUB, [entry(3)])

    run(work())
    ok(ann, "push")
    ok(bob, "pull")
    return bob


def test_a_strangers_session_is_no_session_of_the_sdk(pulled, tmp_path):
    """The SDK resumes what is listed first, and takes the permission mode from it."""
    store = GitcpSessionStore(pulled)
    project = KEY["project_key"]

    async def work() -> None:
        assert await store.list_sessions(project) == []
        assert await store.list_session_summaries(project) == []
        assert await store.list_subkeys(KEY) == []
        with pytest.raises(UsageError, match="made elsewhere"):
            await store.load(KEY)
        with pytest.raises(UsageError, match="made elsewhere"):
            await store.adopt(SID, str(tmp_path))
        await store.append(KEY, [entry(4)])
        with pytest.raises(UsageError, match="made elsewhere"):
            await store.load(KEY)
        # One's own beside it is as before.
        own: Any = {**KEY, "session_id": SID.replace("1", "2")}
        await store.append(own, [entry(5)])
        assert [one["session_id"] for one in await store.list_sessions(project)] == [
            own["session_id"]
        ]

    run(work())


@pytest.mark.parametrize("how", ["option", "remote"])
def test_a_trusted_session_is_rebuilt_and_goes_on(pulled, tmp_path, how):
    if how == "remote":
        ok(pulled, "trust", "origin")
    store: Any = GitcpSessionStore(pulled, trust=how == "option")

    async def work() -> None:
        assert len(await store.list_sessions(KEY["project_key"])) == 1
        [said] = await store.load(KEY)
        assert said["message"] == {"role": "user", "content": "one"}
        assert said["sessionId"] == SID
        assert not {"permissionMode", "n"} & said.keys()
        assert said["uuid"] != "u1"
        assert await store.load(SUB) is None
        new = "00000000-0000-4000-8000-000000000009"
        await store.append(KEY, [spoken(new, said["uuid"], "two")])
        first, second = await store.load(KEY)
        assert first == said
        assert (second["uuid"], second["parentUuid"]) == (new, said["uuid"])
        assert await store.adopt(SID, str(tmp_path)) == 2
        key: Any = {**KEY, "project_key": project_key_for_directory(str(tmp_path))}
        assert await store.load(key) == [first, second]

    run(work())
    kept = f"claude-sdk@{project_key_for_directory(str(tmp_path))}@{SID}:last"
    assert "permissionMode" not in str(ok(pulled, "messages", kept))


def test_many_tasks_append_to_many_sessions_at_once(store):
    async def one(session: str) -> None:
        key: Any = {**KEY, "session_id": session}
        for number in range(6):
            await store.append(key, [entry(number)])

    async def work() -> None:
        names = [f"s{number}" for number in range(6)]
        await asyncio.gather(*map(one, names), one("shared"), one("shared"))
        for name in [*names, "shared"]:
            found = await store.load({**KEY, "session_id": name})
            assert sorted(each["n"] for each in found) == list(range(6)), name

    run(work())


def test_an_append_reads_and_writes_what_is_new(store, place, monkeypatch):
    """However long the session is: counted in objects, not in seconds."""

    async def grow(count: int, start: int) -> None:
        for number in range(start, start + count):
            await store.append(KEY, [entry(number, text="x" * 1000)])

    def new_objects() -> int:
        before = count(place)
        run(grow(1, 10_000 + before))
        return count(place) - before

    run(grow(3, 0))
    early = new_objects()
    run(store.append(KEY, [entry(n, text="y" * 1000) for n in range(20_000, 24_000)]))
    run(grow(30, 30_000))
    read: list[int] = []
    blob = type(store._store.repository.objects).blob

    def counted(objects: Any, oid: bytes) -> bytes:
        data = blob(objects, oid)
        read.append(len(data))
        return data

    monkeypatch.setattr(type(store._store.repository.objects), "blob", counted)
    late = new_objects()
    assert late <= early
    assert sum(read) < 20_000


def count(place: Path) -> int:
    said = git(place, "rev-list", "--objects", "--all")
    return len({line.split()[0] for line in said.splitlines()})


def test_a_fresh_store_and_an_old_client_read_the_same_bytes(store, place, tmp_path):
    """Plain git shows the records, as lines of JSON."""
    run(store.append(KEY, [entry(1)]))
    run(store.append(KEY, [entry(2)]))
    ref = git(place, "for-each-ref", "--format=%(refname)").decode().strip()
    listed = git(place, "ls-tree", "-r", "--name-only", ref).decode().splitlines()
    segments = [one for one in listed if one.endswith(".jsonl")]
    raw = b"".join(git(place, "show", f"{ref}:{one}") for one in segments)
    assert [json.loads(line) for line in raw.splitlines()] == [entry(1), entry(2)]
    assert os.listdir(place / "objects" / "pack")


def test_a_session_moves_with_the_repository(repo, tmp_path):
    """Refs are fetched by plain git, and resume from there for who trusts them."""
    commit_all(repo)
    uuid = "00000000-0000-4000-8000-000000000001"
    run(GitcpSessionStore(repo).append(KEY, [spoken(uuid, None, "one")]))
    other = tmp_path / "other"
    git(tmp_path, "clone", "--quiet", str(repo), str(other))
    git(other, "fetch", "--quiet", "origin", "refs/gitcp/s/*:refs/gitcp/s/*")
    [said] = run(GitcpSessionStore(other, trust=True).load(KEY))
    assert (said["uuid"], said["message"]["content"]) == (uuid, "one")
    assert isinstance(open_workspace(other).store, Store)
