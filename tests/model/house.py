"""Steps that keep house: prune, purge, gc, run, and the hooks of two agents."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.model import plain
from tests.model.back import ignored_there
from tests.model.commands import same_words, untouched, words
from tests.model.model import Captured, Listing, closure, differences, under
from tests.model.world import Repo, Tree, World, check, name

IDS = {
    "claude-code": "901e4de5-9b00-4bbb-9a1a-d0204fe2674b",
    "codex": "01a1fa42-6e71-76b3-b1ca-aad32efeb542",
}

WAY_BACK = ("restored_from", "replaced")


def quiet(world: World, tree: Tree, *, args: list[str], may: list[int]) -> Any:
    """A command that changes neither files nor checkpoints."""
    before = world.look(tree)
    result = world.call(tree, *args, may=may)[1]
    untouched(world, tree, before)
    world.unchanged(tree.repo)
    return result


def decide(world: World, tree: Tree, *, number: int) -> None:
    """`gitcp decide`: waits for the next save."""
    quiet(world, tree, args=["decide", f"p{number}", "--why", "because"], may=[0])
    tree.pending.append(f"p{number}")


def collect(world: World, tree: Tree) -> None:
    """`gitcp gc`: nothing that a checkpoint needs goes."""
    quiet(world, tree, args=["gc"], may=[0])
    plain.fsck(tree.repo.top, "--connectivity-only")


def verify(world: World, tree: Tree) -> None:
    """`gitcp verify`: nothing is wrong."""
    document = quiet(world, tree, args=["verify"], may=[0])
    check(document["ok"] and document["checked"] == len(tree.repo.records),
          f"verify: {document}, not {len(tree.repo.records)}")  # fmt: skip


# --- taking away ---------------------------------------------------------------------


def always_kept(world: World, repo: Repo) -> set[str]:
    """What no pruning may take."""
    kept = set(repo.labelled)
    for tree in world.trees.values():
        if tree.repo is repo and tree.restore in repo.records:
            kept |= last_way_back(repo, [tree.restore])
    for ids in repo.lines.values():
        kept |= set(ids[-1:]) | last_way_back(repo, ids)
        for id_ in ids:
            start = repo.records[id_].document["forked_from"]
            kept |= {id_, start} if start else set()
    return kept & repo.records.keys()


def last_way_back(repo: Repo, ids: list[str]) -> set[str]:
    """The last restore among some checkpoints, with those that it is about."""
    back = [id_ for id_ in ids if repo.records[id_].trigger == "restore"][-1:]
    documents = [repo.records[id_].document for id_ in back]
    return {*back, *(one[key] for one in documents for key in WAY_BACK)}


def prune(world: World, tree: Tree, *, keep: int, dry: bool) -> None:
    """`gitcp prune`: what must stay stays, all else goes."""
    args = ["prune", "--keep-last", str(keep)]
    if dry:
        quiet(world, tree, args=[*args, "--dry-run"], may=[0])
        return
    repo = tree.repo
    before = world.look(tree)
    kept = always_kept(world, repo)
    for ids in repo.lines.values():
        kept |= set(ids[-keep:])
    may = set()
    for tip in repo.tips.values():
        # The last of a branch, and its last restore, may be from before it was forked.
        ids = [row[3] for row in plain.line(repo.top, tip)]
        may |= {*ids[-keep:], *last_way_back(repo, ids)}
    all_ids = set(repo.records)
    world.call(tree, *args, "-y")
    untouched(world, tree, before)
    gone = world.resync(repo)
    check(not gone & kept, f"pruned what must stay: {sorted(gone & kept)}")
    # It may keep what another checkpoint names.
    named = {one.document[field] for one in repo.records.values()
             for field in ("restored_from", "replaced", "forked_from")}  # fmt: skip
    left = all_ids - kept - gone - named - may
    check(not left, f"not pruned: {sorted(left)}")


def purge(world: World, tree: Tree, *, path: bytes) -> None:
    """`gitcp purge PATH`: it is in no checkpoint any more, and all else is."""
    repo = tree.repo
    if not any(under(p, {path}) for one in repo.records.values()
               for p in one.captured.files):  # fmt: skip
        return
    before = world.look(tree)
    world.call(tree, "purge", path, "-y")
    untouched(world, tree, before)
    gone = world.resync(repo)
    check(not gone, f"purged whole checkpoints: {gone}")
    rows = {row[3]: row for tip in repo.tips.values()
            for row in plain.line(repo.top, tip)}  # fmt: skip
    for id_, old in list(repo.records.items()):
        got = plain.read(repo.top, rows[id_])
        wanted = without(old.captured, path)
        listed = {p: why for p, why in got.captured.skipped.items()
                  if not under(p, {path})}  # fmt: skip
        found = differences(wanted, replace(got.captured, skipped=listed))
        check(not found, f"after a purge of {path!r} {id_}: " + "; ".join(found))
        had = wanted.files != old.captured.files
        check(not had or got.captured.lists(path), f"{path!r} is not listed in {id_}")
        same_words(got, words(old))
        repo.records[id_] = got
    for one in world.trees.values():
        if one.repo is repo and one.undo is not None:
            one.undo.purged.add(path)


def without(captured: Captured, path: bytes) -> Captured:
    """What a checkpoint holds once a path is purged."""
    files = {p: e for p, e in captured.files.items() if not under(p, {path})}
    gitlinks = {
        p: head for p, head in captured.gitlinks.items() if not under(p, {path})
    }
    skipped = {p: why for p, why in captured.skipped.items() if not under(p, {path})}
    # Whether a directory that became empty is listed no document says.
    bare = frozenset(closure([path + b"/x"]))
    return replace(captured, files=files, gitlinks=gitlinks, skipped=skipped, bare=bare)


# --- run -----------------------------------------------------------------------------


def run(world: World, tree: Tree, *, fails: bool, back: bool) -> None:
    """`gitcp run`: a checkpoint before, and one of the failure."""
    line = world.current(tree)
    before = world.look(tree)
    linked = same_file(tree, before.listing, b"ran.txt")
    tip = tree.repo.tip(line)
    talk, decisions = words(tip)
    decisions += tuple(tree.pending)
    status = 3 if fails else 0
    command = ["sh", "-c", f"echo {world.step} > ran.txt; exit {status}"]
    args = ["run", *(["--rollback-on-failure"] if back else []), "--", *command]
    if back and not fails:
        return
    world.call(tree, *args, may=(status,), process=True)
    made = world.news(tree.repo)
    after = world.look(tree)
    tree.pending = []
    for one in made:
        check(name(one) == line, f"run saved to {name(one)}, not {line}")
        check(one.talk == talk, f"run changed the conversation in {one.id}")
    triggers = [one.trigger for one in made]
    failed = [one for one in made if one.trigger == "test-failure"]
    check(len(failed) == fails, f"checkpoints of a run: {triggers}")
    first = [one for one in made if one not in failed and one.trigger != "restore"]
    check(len(first) <= 1, f"checkpoints of a run: {triggers}")
    held = first[0] if first else tip
    check(held is not None, "run made no checkpoint before")
    assert held is not None
    world.must_hold(held, before.captured, "before a run")
    check(held.decisions == decisions, f"{held.id}: {held.decisions}, not {decisions}")
    if back:
        tree.undo = None
        tree.restore = next(one.id for one in made if one.trigger == "restore")
        hidden = after.facts.ignored | after.facts.excluded
        # The command has written to what is a hard link of its file, too.
        hidden |= linked - before.captured.files.keys()
        # Git tracks it, and the rules ignore it: then it stays (0016).
        new = {b"ran.txt"} - before.listing.keys()
        hidden |= ignored_there(world, tree, held.captured, after.facts, new)
        # One that a sparse checkout left out comes back as a file.
        untouched(world, tree, before, hidden | before.captured.virtual)
    elif failed:
        world.must_hold(failed[0], after.captured, "a failed run")


def same_file(tree: Tree, listing: Listing, path: bytes) -> frozenset[bytes]:
    """The paths of a work tree that are hard links of one file."""
    if path not in listing:
        return frozenset()
    stamps = plain.stamps(tree.seen, listing)
    return frozenset(p for p, (inode, _) in stamps.items() if inode == stamps[path][0])


# --- agents --------------------------------------------------------------------------


def transcript(world: World, agent: str) -> Path:
    """Where an agent keeps its conversation."""
    if agent == "codex":
        where = world.home / "codex" / "sessions" / "2026" / "11" / "20"
        path = where / f"rollout-2026-11-20T18-40-20-{IDS[agent]}.jsonl"
    else:
        where = world.home / "claude" / "projects" / "-project"
        path = where / f"{IDS[agent]}.jsonl"
    where.mkdir(parents=True, exist_ok=True)
    return path


def spoken(agent: str, number: int, who: str) -> bytes:
    """One record of an agent's transcript."""
    text = f"{who} {number}"
    if agent == "codex":
        kind = {"type": "input_text" if who == "user" else "output_text", "text": text}
        record: dict[str, Any] = {
            "timestamp": "2026-11-20T18:40:20.000Z", "type": "response_item",
            "payload": {"type": "message", "role": who, "content": [kind]},
        }  # fmt: skip
    else:
        record = {
            "type": who, "uuid": f"00000000-0000-4000-8000-{number:012d}",
            "parentUuid": None, "sessionId": IDS[agent], "promptId": f"p{number}",
            "timestamp": "2026-11-20T18:33:23.155Z",
            "message": {"role": who, "content": text},
        }  # fmt: skip
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def agent(world: World, tree: Tree, *, agent: str, event: str) -> None:
    """A hook of an agent: the prompt, or the end of a turn."""
    path = transcript(world, agent)
    who = "user" if event == "UserPromptSubmit" else "assistant"
    if not path.exists() and agent == "codex":
        head = {"timestamp": "2026-11-20T18:40:20.000Z", "type": "session_meta",
                "payload": {"id": IDS[agent], "cwd": str(tree.root)}}  # fmt: skip
        path.write_bytes(json.dumps(head, separators=(",", ":")).encode() + b"\n")
    if event == "Stop":
        with path.open("ab") as file:
            file.write(spoken(agent, world.step, who))
    given = {
        "session_id": IDS[agent], "transcript_path": str(path),
        "cwd": str(tree.root), "hook_event_name": event, "prompt": f"do {world.step}",
        "prompt_id": f"p{world.step}", "turn_id": f"t{world.step}", "model": "m",
    }  # fmt: skip
    before = world.look(tree)
    data = json.dumps(given).encode()
    world.call(tree, "hook", agent, event, data=data, json_=False, process=True)
    untouched(world, tree, before)
    made = world.news(tree.repo)
    for one in [one for one in made if one.trigger == "fork"]:
        # A conversation that went on elsewhere: its branch begins with what it knew.
        start = tree.repo.records[one.document["forked_from"]]
        found = differences(start.captured, one.captured)
        check(not found, f"{one.id} is not a fork of {start.id}: " + "; ".join(found))
    made = [one for one in made if one.trigger != "fork"]
    for one in made:
        world.must_hold(one, before.captured, f"{agent} {event}")
    overtaken = agent in tree.overtaken and event == "Stop"
    if not overtaken:
        tree.overtaken.discard(agent)
        tree.at_work.add(agent)
    if overtaken:
        # What it says is of another moment than the files: only these may be saved.
        check(len(made) <= 1, f"{agent}: {len(made)} checkpoints after a restore")
        for one in made:
            check(one.trigger == "after-restore", f"{one.id} is shown as a turn")
            tree.pending = []
    elif event == "Stop":
        log = tree.repo.git_dir / "gitcp" / "hooks.log"
        told = log.read_text() if log.exists() else ""
        check(len(made) == 1, f"{agent} made {len(made)} checkpoints: {told}")
        (new,) = made
        said = path.read_bytes()
        check(said in new.talk.values(), f"{new.id} has not what {agent} said")
        check(new.decisions[-len(tree.pending) :] == tuple(tree.pending)
              or not tree.pending, f"{new.id}: {new.decisions}")  # fmt: skip
        tree.pending = []
    else:
        check(len(made) <= 1, f"{agent}: {len(made)} checkpoints at a prompt")
        if made:
            tree.pending = []
        with path.open("ab") as file:
            file.write(spoken(agent, world.step, who))
    # Which branch the person is on after a hook, gitcp says.
    tree.current = None
    tree.undo = None
