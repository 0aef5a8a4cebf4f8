"""The Python interface, as docs/python.md shows it."""

import subprocess
import sys

import pytest

import gitcp
from tests.support.gitrepo import gitcp_environment, tree_bytes


def newest(session: gitcp.Session) -> gitcp.Checkpoint:
    found = session.last
    assert found is not None
    return found


def test_every_public_name_is_there_and_documented():
    for name in gitcp.__all__:
        found = getattr(gitcp, name)
        assert name == "__version__" or found.__doc__


def test_importing_gitcp_does_not_load_libgit2():
    code = "import sys, gitcp; assert not {'pygit2', 'click'} & sys.modules.keys()"
    subprocess.run(
        [sys.executable, "-P", "-c", code], check=True, env=gitcp_environment()
    )


def test_what_is_saved_comes_back(repo):
    session = gitcp.open(repo).session("auth-refactor")
    messages = [
        {"role": "user", "content": "é \u2028"},
        {"n": 1.5, "big": 2**80 % 2**53},
    ]
    saved = session.save(
        messages=messages,
        note="JWT working",
        position={"batch": 333},
        decisions=[gitcp.Decision("JWT instead of sessions", why="race in sessions")],
    )
    again = gitcp.open(repo).checkpoint("auth-refactor:last")
    assert again == saved
    assert again.messages() == messages
    assert again.position == {"batch": 333}
    assert [entry.text for entry in again.decisions()] == ["JWT instead of sessions"]


def test_a_plan_writes_nothing_and_restore_needs_one(repo):
    session = gitcp.open(repo).session("work")
    first = session.save(note="first")
    (repo / "new.txt").write_bytes(b"new")
    before = tree_bytes(repo)
    plan = session.plan_restore(first)
    assert tree_bytes(repo) == before
    assert [step.path for step in plan.steps.steps] == [b"new.txt"]
    done = session.restore(plan)
    assert not (repo / "new.txt").exists()
    assert done.saved
    assert done.saved.entry(b"new.txt") is not None
    assert done.checkpoint.manifest.restored_from == first.id


def test_append_adds_to_what_is_there(repo):
    session = gitcp.open(repo).session("chat")
    session.save(messages=[{"n": 1}])
    saved = session.save(append=[{"n": 2}, {"n": 3}])
    assert saved.messages() == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert saved.manifest.conversation is not None
    assert saved.manifest.conversation.messages == 3


def test_a_fork_grows_by_itself(repo):
    session = gitcp.open(repo).session("work")
    start = session.save(messages=[{"n": 1}], note="start")
    fork = session.fork(start, "other")
    assert isinstance(fork, gitcp.Branch)
    fork.save(append=[{"n": 2}])
    session.save(append=[{"n": 9}])
    assert newest(fork).messages() == [{"n": 1}, {"n": 2}]
    assert newest(session).messages() == [{"n": 1}, {"n": 9}]
    with pytest.raises(gitcp.UsageError):
        session.fork(start, "other")


def test_names_may_be_any_text(repo):
    names = ["a/b", "../x", "-rf", "a.lock", "é", "A", "a", "new\nline", "x" * 900]
    store = gitcp.open(repo)
    for name in names:
        store.session(name).save(note=name, allow_empty=True)
    assert sorted(session.name for session in store.sessions()) == sorted(names)
    for name in names:
        assert newest(store.session(name)).note == name


def test_what_is_not_json_is_refused_and_nothing_saved(repo):
    session = gitcp.open(repo).session("work")
    with pytest.raises(gitcp.UsageError, match="not JSON"):
        session.save(messages=[object()])
    assert session.last is None


def test_checkpoints_come_newest_first_and_lazily(repo):
    session = gitcp.open(repo).session("work")
    for number in range(5):
        session.save(note=str(number), allow_empty=True)
    line = session.checkpoints()
    assert next(line).note == "4"
    assert [one.note for one in line] == ["3", "2", "1", "0"]


def test_a_batch_resumes_after_the_last_saved_record(repo):
    session = gitcp.open(repo).session("pipe")
    seen = []
    with pytest.raises(RuntimeError), session.batch(range(10), every=4) as batch:
        for record in batch:
            if record == 6:
                raise RuntimeError
            seen.append(record)
    with session.batch(range(10), every=4) as batch:
        seen += list(batch)
    assert seen == list(range(10))
    assert newest(session).position == {"offset": 10}


def test_a_position_comes_back_as_it_was_given(repo):
    """The file is indented for people; what was given is not."""
    session = gitcp.open(repo).session("work")
    saved = session.save(position={"offset": 7, "parts": [1, 2.50]})
    assert bytes(saved.manifest.position) == b'{"offset":7,"parts":[1,2.5]}'
