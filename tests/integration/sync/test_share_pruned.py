"""Sessions that were pruned on one side, between clones."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from gitcp.errors import CorruptError
from gitcp.format.commit import with_purged
from gitcp.format.layout import RefKey
from gitcp.project.workspace import open_workspace
from gitcp.store.store import Store
from gitcp.sync import pull
from gitcp.sync.history import was_purged
from gitcp.sync.push import push
from gitcp.sync.push_policy import Decider
from gitcp.trust.trusted_remotes import note_pulled
from tests.support.clones import refs, results, save
from tests.support.gitrepo import git, git_line
from tests.support.inprocess import fails, invoke, ok

HOOK = Path(__file__).resolve().parents[3] / "hooks" / "update"
REF = "refs/gitcp/s/main/main"


def seqs(repo, *args: str) -> list[int]:
    return [one["seq"] for one in ok(repo, "log", *args)["checkpoints"]]


def history(repo, count: int = 6) -> None:
    for number in range(1, count + 1):
        save(repo, a_py=b"%d" % number)


def one_ahead(ann, bob) -> None:
    """Ann has pushed one checkpoint more than Bob has pulled."""
    history(ann)
    ok(ann, "push")
    ok(bob, "pull")
    save(ann, a_py=b"more")
    ok(ann, "push")


def prune(repo) -> None:
    assert ok(repo, "prune", "--keep-last", "2", "-y")["removed"]


def test_a_pruned_session_is_pushed_when_asked_to_and_taken_over(ann, hub, bob):
    history(ann)
    ok(ann, "fork", "4", "side", "--no-switch")
    ok(ann, "push")
    ok(bob, "pull")
    prune(ann)
    there = refs(hub)
    said = fails(ann, 12, "push")
    assert "--pruned" in said
    assert refs(hub) == there
    # Nothing comes back, and no fork is made of it.
    assert results(ann, "pull")["main/main"] == ("up-to-date", "main")
    save(ann, a_py=b"more")
    assert results(ann, "push", "--pruned") == {
        "main/main": ("pruned", "main"),
        "main/side": ("pruned", "side"),
    }
    assert results(ann, "push", "--pruned")["main/main"] == ("up-to-date", "main")
    kept = ok(ann, "log")["checkpoints"]
    assert results(bob, "pull", "--pruned") == {
        "main/main": ("pruned", "main"),
        "main/side": ("pruned", "side"),
    }
    assert [(one["id"], one["seq"]) for one in ok(bob, "log")["checkpoints"]] == [
        (one["id"], one["seq"]) for one in kept
    ]
    assert refs(bob).count(b"~origin") == 0
    assert results(bob, "pull")["main/main"] == ("up-to-date", "main")
    for repo in (ann, bob):
        assert ok(repo, "gc")["dropped"] > 0
        assert ok(repo, "verify")["ok"]
        git(repo, "fsck", "--strict")
    # And it goes on as before.
    save(bob, a_py=b"bob's")
    assert results(bob, "push")["main/main"] == ("fast-forward", "main")
    assert results(ann, "pull")["main/main"] == ("fast-forward", "main")
    assert seqs(ann) == [8, 7, 6, 5, 4]


def test_a_pull_removes_nothing_without_being_told_to(ann, hub, bob):
    """Everyone who may push can prune there, labelled checkpoints, too."""
    history(ann)
    ok(ann, "push")
    ok(bob, "pull")
    ok(bob, "label", "2", "good")
    prune(ann)
    ok(ann, "push", "--pruned")
    for _ in range(2):
        done = invoke(bob, "pull")
        assert done.returncode == 0
        assert b"`gitcp pull --pruned` removes them here, too" in done.stderr
        # Nothing is new there, so nothing becomes a fork.
        assert results(bob, "pull") == {"main/main": ("up-to-date", "main")}
        assert seqs(bob) == [6, 5, 4, 3, 2, 1]
    assert b"older checkpoints were pruned there" in invoke(bob, "push").stdout
    save(ann, a_py=b"more")
    ok(ann, "push")
    assert results(bob, "pull") == {"main/main": ("forked", "main~origin")}
    assert results(bob, "pull") == {"main/main": ("up-to-date", "main~origin")}
    assert seqs(bob) == [6, 5, 4, 3, 2, 1]
    assert seqs(bob, "-s", "main/main~origin")[1:] == [7, 6, 5]
    ok(bob, "gc")
    assert ok(bob, "show", "good")["checkpoint"]["seq"] == 2
    # The user may say so later.
    assert results(bob, "pull", "--pruned") == {"main/main": ("pruned", "main")}
    assert seqs(bob) == [7, 6, 5]
    assert b"pull --pruned" not in invoke(bob, "pull").stderr
    assert ok(bob, "verify")["ok"]


def test_a_trusted_remote_may_prune_what_it_had(ann, hub, bob):
    history(ann)
    ok(ann, "push")
    ok(bob, "pull")
    prune(ann)
    ok(ann, "push", "--pruned")
    ok(bob, "trust", "origin")
    assert results(bob, "pull")["main/main"] == ("pruned", "main")
    assert seqs(bob) == [6, 5]


def test_the_newest_of_the_remote_may_be_pruned_here(ann, hub, bob):
    """Much was saved here since: all that the remote has is gone."""
    history(ann, 3)
    ok(ann, "push")
    history(ann, 4)
    prune(ann)
    assert seqs(ann) == [7, 6]
    assert here(ann) == "pruned"
    refused = fails(ann, 12, "push")
    assert "pruned or purged here, but not there" in refused
    assert "--pruned" in refused
    assert results(ann, "pull")["main/main"] == ("up-to-date", "main")
    assert results(ann, "push", "--pruned")["main/main"] == ("pruned", "main")
    assert ok(bob, "pull")["branches"][0]["result"] == "created"
    assert seqs(bob, "-s", "main") == [7, 6]


def test_what_grew_apart_there_is_not_replaced_by_what_was_pruned(ann, hub, bob):
    """Bob's newest has the number of one that Ann pruned."""
    history(ann, 3)
    ok(ann, "push")
    ok(bob, "pull")
    theirs = save(bob, a_py=b"bob's")
    ok(bob, "push")
    history(ann, 4)
    prune(ann)
    there = git_line(hub, "rev-parse", REF)
    assert "diverged" in fails(ann, 12, "push", "--pruned")
    ok(ann, "pull")
    # Once it was pulled it is known here, and has a branch of its own, which is sent.
    assert "diverged" in fails(ann, 3, "push", "--pruned")
    assert git_line(hub, "rev-parse", REF) == there
    assert theirs["id"] in str(ok(ann, "log", "-s", "main/main~origin"))


def test_who_has_something_of_ones_own_keeps_it(ann, hub, bob):
    history(ann)
    ok(ann, "push")
    ok(bob, "pull")
    mine = save(bob, a_py=b"bob's")
    prune(ann)
    ok(ann, "push", "--pruned")
    before = refs(bob)
    assert here(bob) == "behind"
    # There is nothing new there, so nothing becomes a fork.
    assert results(bob, "pull") == {"main/main": ("up-to-date", "main")}
    assert here(bob) == "pruned-there"
    assert ok(bob, "log")["checkpoints"][0]["id"] == mine["id"]
    assert seqs(bob) == [7, 6, 5, 4, 3, 2, 1]
    assert git_line(bob, "rev-parse", REF).encode() in before
    assert "`gitcp pull origin --pruned`" in fails(bob, 12, "push")
    # What was saved since is made again on what is left.
    assert results(bob, "pull", "--pruned") == {"main/main": ("pruned", "main")}
    assert seqs(bob) == [7, 6, 5]
    assert ok(bob, "log")["checkpoints"][0]["id"] == mine["id"]
    assert ok(bob, "verify")["ok"]
    assert results(bob, "pull", "--pruned") == {"main/main": ("up-to-date", "main")}
    assert results(bob, "push") == {"main/main": ("fast-forward", "main")}
    assert results(ann, "pull") == {"main/main": ("fast-forward", "main")}
    assert git_line(ann, "rev-parse", REF) == git_line(bob, "rev-parse", REF)
    assert refs(bob).count(b"~origin") == 0


def test_a_fork_keeps_what_was_pruned_there(ann, hub, bob):
    history(ann)
    ok(ann, "push")
    ok(bob, "pull")
    save(bob, a_py=b"bob's")
    prune(ann)
    ok(ann, "push", "--pruned")
    ok(bob, "pull")
    state, name = results(bob, "push", "--fork")["main/main"]
    assert state == "forked"
    assert seqs(bob, "-s", f"main/{name}")[1:] == [7, 6, 5, 4, 3, 2, 1]


def test_where_both_have_grown_since_both_are_kept(ann, hub, bob):
    history(ann)
    ok(ann, "push")
    ok(bob, "pull")
    save(bob, a_py=b"bob's")
    prune(ann)
    save(ann, a_py=b"ann's")
    ok(ann, "push", "--pruned")
    assert results(bob, "pull", "--pruned")["main/main"] == ("forked", "main~origin")
    assert seqs(bob) == [7, 6, 5, 4, 3, 2, 1]


def test_what_was_saved_there_meanwhile_is_not_replaced(ann, hub, bob):
    history(ann)
    ok(ann, "push")
    ok(bob, "pull")
    save(bob, a_py=b"bob's")
    ok(bob, "push")
    prune(ann)
    there = refs(hub)
    fails(ann, 12, "push", "--pruned")
    assert refs(hub) == there


def test_a_remote_cannot_take_away_what_it_never_had(ann, hub, bob):
    """It offers our newest checkpoint, and says that all before were pruned."""
    history(ann)
    ok(ann, "push")
    ok(bob, "pull")
    ok(bob, "trust", "origin")
    git(bob, "update-ref", "-d", "refs/gitcp/r/origin/main/main")
    prune(ann)
    ok(ann, "push", "--pruned")
    assert results(bob, "pull")["main/main"] == ("up-to-date", "main")
    assert seqs(bob) == [6, 5, 4, 3, 2, 1]


def test_other_content_under_the_same_ids_is_no_pruning(ann, hub, bob):
    history(ann)
    ok(ann, "push")
    ok(bob, "pull")
    prune(ann)
    # The same message on another tree.
    raw = git(ann, "cat-file", "commit", f"{REF}~1")
    tree = git_line(ann, "rev-parse", f"{REF}~1^{{tree}}").encode()
    other = git_line(ann, "rev-parse", f"{REF}^{{tree}}").encode()
    made = git(
        ann, "hash-object", "-t", "commit", "-w", "--stdin",
        input=raw.replace(tree, other),
    ).strip()  # fmt: skip
    tip = git(ann, "cat-file", "commit", REF)
    parent = git_line(ann, "rev-parse", f"{REF}~1").encode()
    new = git(
        ann, "hash-object", "-t", "commit", "-w", "--stdin",
        input=tip.replace(parent, made),
    ).strip()  # fmt: skip
    git(ann, "update-ref", REF, new.decode())
    fails(ann, 12, "push", "--pruned")
    git(ann, "push", "-q", "--force", "origin", f"{REF}:{REF}")
    done = invoke(bob, "pull")
    assert b"pruned" not in done.stdout
    assert seqs(bob) == [6, 5, 4, 3, 2, 1]


def test_the_servers_hook_takes_a_gap_that_says_so(ann, hub, bob):
    shutil.copy(HOOK, hub / "hooks" / "update")
    history(ann)
    ok(ann, "fork", "3", "side", "--no-switch")
    ok(ann, "push")
    prune(ann)
    there = refs(hub)
    assert invoke(ann, "push", "--pruned").returncode == 12
    assert refs(hub) == there
    git(hub, "config", "gitcp.allowPruned", "true")
    assert results(ann, "push", "--pruned")["main/main"] == ("pruned", "main")
    save(ann, a_py=b"more")
    assert results(ann, "push")["main/main"] == ("fast-forward", "main")
    ok(bob, "pull")
    assert seqs(bob, "-s", "main/main") == [7, 6, 5, 3]
    # A gap without a word is refused still.
    lost = git(ann, "cat-file", "commit", REF).split(b"\n")
    raw = b"\n".join(
        b"Gitcp-Seq: 12" if one.startswith(b"Gitcp-Seq") else one for one in lost
    )
    forged = git(ann, "hash-object", "-t", "commit", "-w", "--stdin", input=raw)
    done = git(
        ann, "push", "-q", "--force", "origin",
        f"{forged.decode().strip()}:{REF}", check=False,
    )  # fmt: skip
    assert not done
    assert forged.strip() not in refs(hub)


def here(repo: Path) -> str:
    (found,) = ok(repo, "remote-sessions")["sessions"]
    (branch,) = found["branches"]
    word: str = branch["here"]
    return word


def test_remote_sessions_tell_what_was_pruned_and_where(ann, hub, bob):
    history(ann)
    ok(ann, "push")
    ok(bob, "pull")
    prune(ann)
    assert here(ann) == "pruned"
    save(ann, a_py=b"more")
    assert here(ann) == "pruned"
    ok(ann, "push", "--pruned")
    assert (here(ann), here(bob)) == ("same", "behind")
    git(bob, "fetch", "-q", "origin", REF)
    assert here(bob) == "pruned-there"
    ok(bob, "pull", "--pruned")
    assert here(bob) == "same"


def test_remote_sessions_tell_what_was_purged_here_alone(ann, hub):
    save(ann, a_py=b"1", secret_txt=b"k3J9dLq0\n")
    ok(ann, "push")
    (ann / "secret.txt").unlink()
    ok(ann, "purge", "secret.txt", "-y")
    # What it has is not here any more, and a pull brings nothing.
    assert here(ann) == "pruned"
    assert results(ann, "pull")["main/main"][0] == "up-to-date"
    ok(ann, "push", "--pruned")
    assert here(ann) == "same"


def purge_claim(ann, hub, bob) -> str:
    """Bob has pulled a line that says it purged a commit of Ann's; the remote has that again."""
    save(ann, a_py=b"1")
    ok(ann, "push")
    ok(bob, "pull")
    save(ann, a_py=b"2")
    ok(ann, "push")
    real = git_line(ann, "rev-parse", REF)
    git(ann, "update-ref", REF, f"{REF}~1")
    other = save(ann, a_py=b"other")["commit"]
    claim = with_purged(git(ann, "cat-file", "commit", other), real)
    made = git(ann, "hash-object", "-t", "commit", "-w", "--stdin", input=claim)
    line = made.strip().decode()
    git(ann, "push", "-q", "--force", "origin", f"{line}:{REF}")
    ok(bob, "pull")
    assert git_line(bob, "rev-parse", REF) == line
    git(hub, "update-ref", REF, real)
    return real


def test_a_claim_of_a_purge_hides_nothing(ann, hub, bob):
    real = purge_claim(ann, hub, bob)
    assert here(bob) == "behind"
    assert results(bob, "push", "--pruned")["main/main"][0] == "up-to-date"
    assert results(bob, "pull")["main/main"] == ("forked", "main~origin")
    assert real.encode() in refs(bob)
    fails(bob, 3, "push", "--pruned")
    assert git_line(hub, "rev-parse", REF) == real


def test_whom_the_user_trusts_may_say_that_it_was_purged(ann, hub, bob):
    purge_claim(ann, hub, bob)
    ok(bob, "trust", "origin")
    assert here(bob) == "pruned"
    assert results(bob, "pull")["main/main"][0] == "up-to-date"


def test_a_prune_while_a_pull_looks_at_the_branch_is_seen(ann, bob, monkeypatch):
    """The pull has read the ref; the prune then moves it, and removes its old commits."""
    one_ahead(ann, bob)
    looked: list[str] = []

    def late(store, old, line):
        looked.append(line)
        if len(looked) == 1:
            save(bob, a_py=b"bob's")
            prune(bob)
            raise CorruptError(f"the object {line} is missing")
        return was_purged(store, old, line)

    monkeypatch.setattr(pull, "was_purged", late)
    assert results(bob, "pull")["main/main"][0] == "forked"
    assert looked[0] != looked[1]


def test_a_branch_that_lacks_a_commit_is_not_read_for_ever(ann, bob, monkeypatch):
    one_ahead(ann, bob)

    def damaged(store, old, line):
        raise CorruptError(f"the object {line} is missing")

    monkeypatch.setattr(pull, "was_purged", damaged)
    assert "is missing" in fails(bob, 15, "pull")


def test_a_commit_that_a_purge_removed_during_a_pull_stops_no_note(ann, bob):
    """A pull notes where its commits came from once they are here."""
    history(ann)
    ok(ann, "push")
    ok(bob, "pull")
    notes = bob / ".git/gitcp/pulled.jsonl"
    before = len(notes.read_text().splitlines())
    store = open_workspace(bob).store
    note_pulled(store, "origin", [git_line(bob, "rev-parse", REF)], ["ab" * 20])
    assert len(notes.read_text().splitlines()) == before + 1


def pushed(repo: Path) -> dict[str, str]:
    """What a push did, by branch; it holds no lock, so nothing waits for it."""
    return {one.shown: one.result for one in push(open_workspace(repo))}


def unreadable_once(monkeypatch, beside: Callable[[], object]) -> None:
    """Another process acts while a push looks at a branch, which is then gone."""
    real, done = Decider.decide, list[RefKey]()

    def late(self, key, oid, there):
        if not done:
            done.append(key)
            beside()
            raise CorruptError(f"the object {oid} is missing")
        return real(self, key, oid, there)

    monkeypatch.setattr(Decider, "decide", late)


def test_a_push_sends_a_branch_as_it_is_after_a_prune_beside_it(ann, hub, monkeypatch):
    history(ann)
    unreadable_once(monkeypatch, lambda: prune(ann))
    assert pushed(ann) == {"main/main": "created"}
    assert git_line(hub, "rev-parse", REF) == git_line(ann, "rev-parse", REF)
    assert seqs(ann) == [6, 5]


def test_a_push_leaves_out_a_branch_that_is_removed_beside_it(ann, hub, monkeypatch):
    history(ann, 2)
    ok(ann, "save", "-s", "other", "--allow-empty")
    unreadable_once(monkeypatch, lambda: git(ann, "update-ref", "-d", REF))
    assert pushed(ann) == {"other/main": "created"}
    assert refs(hub).count(b"refs/gitcp/s/") == 1


def test_a_push_compares_with_what_a_collection_removes_meanwhile(
    ann, hub, bob, monkeypatch
):
    """No ref here reaches what the remote has: it is looked at, and then it is gone."""
    one_ahead(ann, bob)
    theirs = git_line(hub, "rev-parse", REF)
    git(bob, "fetch", "-q", "origin", f"{REF}:refs/gitcp-test")
    save(bob, a_py=b"bob's")
    git(bob, "update-ref", "-d", "refs/gitcp-test")
    real, gone = Store.checkpoint, list[str]()

    def late(store, oid):
        if oid == theirs and not gone:
            gone.append(theirs)
            git(bob, "gc", "-q", "--prune=now")
        return real(store, oid)

    monkeypatch.setattr(Store, "checkpoint", late)
    assert pushed(bob) == {"main/main": "rejected"}
    assert gone
    told = fails(bob, 12, "push")
    assert "it has diverged" in told


def test_a_push_of_a_damaged_branch_ends(ann, hub, monkeypatch):
    history(ann, 1)

    def damaged(self, key, oid, there):
        raise CorruptError(f"the object {oid} is missing")

    monkeypatch.setattr(Decider, "decide", damaged)
    assert "is missing" in fails(ann, 15, "push")
