"""Whole runs: from a seed, from a script, and made shorter once they have failed."""

from __future__ import annotations

import shutil
import tempfile
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.model import places
from tests.model.steps import Step, carry_out, choose
from tests.model.world import LIMIT, DifferenceError, World
from tests.support.gitrepo import git, make_repo

# Steps of one run; then every checkpoint is looked at again.
LONGEST = 200


class Failed(NamedTuple):
    """A run that ended with a difference: its steps, and what is different."""

    steps: list[Step]
    what: str
    script: list[str]


def populate(base: Path) -> None:
    """What is on the disk before a run: a repository with a commit."""
    (base / "outside").write_bytes(b"outside\n")
    make_repo(base / "r", {".gitignore": b"*.ign\n", "a": b"one\n", "d/a": b"two\n"})
    git(base / "r", "config", "gitcp.maxFileSize", str(LIMIT))
    # A hook that gives up on a busy machine does what it must, but not what is looked for.
    git(base / "r", "config", "gitcp.hookTimeout", "900")
    git(base / "r", "config", "user.name", "Tess Ter")
    git(base / "r", "config", "user.email", "tess@example.invalid")


def world_on(base: Path, home: Path) -> World:
    """The repositories of a run, on a disk that `populate` has seen."""
    world = World(base, home)
    behind = places.behind(base)
    top = world.add("r", behind)
    make_repo(home / "sub", {"s": b"sub\n"})
    git(home, "init", "-q", "--bare", str(home / "hub.git"))
    git(base / "r", "remote", "add", "hub", str(home / "hub.git"))
    git(base / "r", "worktree", "add", "-q", "-b", "side", str(base / "w"))
    world.add("w", behind, top.repo)
    return world


def play(place: places.Place, seed: int, count: int) -> Failed | int:
    """A run of `count` steps chosen by a seed; how many were done, or what failed."""
    rng = Random(seed)
    return _run(place, rng, count, None)


def replay(place: places.Place, steps: Sequence[Step]) -> Failed | int:
    """The same steps once more."""
    return _run(place, None, len(steps), steps)


def _run(
    place: places.Place, rng: Random | None, count: int, steps: Sequence[Step] | None
) -> Failed | int:
    done: list[Step] = []
    home = Path(tempfile.mkdtemp(prefix="gitcp-model-"))
    try:
        with place(populate) as base:
            world = world_on(base, home)
            try:
                for number in range(count):
                    step = steps[number] if steps is not None else None
                    if step is None:
                        assert rng is not None
                        step = choose(rng, world, number)
                    done.append(step)
                    carry_out(world, step)
                world.everything()
                outside = (base / "outside").read_bytes()
                assert outside == b"outside\n", "written outside of the work tree"
            except Exception as error:  # noqa: BLE001  whatever it is, it is shown
                what = f"{type(error).__name__}: {error}"
                if not isinstance(error, DifferenceError):
                    what += "\n" + traceback.format_exc()
                return Failed(done, what, world.script)
        return len(done)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def soak(
    name: str, steps: int, seed: int, tell: Callable[[str], object]
) -> tuple[int, list[tuple[int, Failed]]]:
    """Runs of at most `LONGEST` steps, with one seed after the other, whatever fails.

    Returns how many steps went without a difference, and what failed.
    """
    done = 0
    failures: list[tuple[int, Failed]] = []
    while done < steps and len(failures) < 10:
        result = play(places.PLACES[name], seed, min(LONGEST, steps - done))
        if isinstance(result, Failed):
            failures.append((seed, result))
            tell(report(result, seed, name))
        else:
            done += result
            tell(f"{name} seed {seed}: {done} steps without a difference")
        seed += 1
    return done, failures


def shorter(place: places.Place, failed: Failed, tries: int) -> Failed:
    """The same failure with fewer steps, as far as so many tries go."""
    size = max(1, len(failed.steps) // 2)
    while size >= 1 and tries > 0:
        at = 0
        while at < len(failed.steps) and tries > 0:
            less = failed.steps[:at] + failed.steps[at + size :]
            tries -= 1
            again = replay(place, less)
            if isinstance(again, Failed) and kind(again) == kind(failed):
                failed = again
            else:
                at += size
        size //= 2
    return failed


def kind(failed: Failed) -> str:
    """What tells failures apart, roughly: their first words."""
    words = failed.what.replace("'", " ").split()
    return " ".join(word for word in words[:5] if word.isalpha())


def report(failed: Failed, seed: int | None, place: str) -> str:
    """What a person needs to see it happen again."""
    rows = "\n".join(step.line() for step in failed.steps)
    commands = "\n".join(failed.script)
    once_more = "" if seed is None else f"GITCP_MODEL_SEED={seed} "
    return (
        f"{failed.what}\n\nseed {seed} on {place}; run it again with\n"
        f"  {once_more}GITCP_MODEL_PLACE={place} pytest tests/model\n"
        f"or save these steps as FILE and use GITCP_MODEL_SCRIPT=FILE:\n{rows}\n\n"
        f"what was done:\n{commands}\n"
    )
