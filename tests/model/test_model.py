"""gitcp on real repositories, at random, against the model."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from tests.model import places, run
from tests.model.steps import Step

GIVEN = os.environ.get("GITCP_MODEL_SEED")
SEED = int(GIVEN or secrets.randbelow(10**9))
# The same each time: whether a change lands depends on the change. The slow ones draw new ones.
# The last one moved a submodule away and put a file in its place.
SEEDS = [SEED] if GIVEN else [1, 2, 536146840]
# A run that is repeated by its seed may be one of the slow ones, which are longer. The steps of
# a shorter run are the first of a longer one.
COUNT = run.LONGEST if GIVEN else 100
PLACE = os.environ.get("GITCP_MODEL_PLACE", "here")
STEPS = int(os.environ.get("GITCP_MODEL_STEPS", "1000"))
# How often to run a failure again to make it shorter.
TRIES = int(os.environ.get("GITCP_MODEL_TRIES", "30"))
LOG = os.environ.get("GITCP_MODEL_LOG")
SCRIPT = os.environ.get("GITCP_MODEL_SCRIPT")


def must_agree(result: run.Failed | int, seed: int | None, place: str) -> None:
    """Fails with the steps, made fewer; all of them are printed before that."""
    if isinstance(result, run.Failed):
        print(run.report(result, seed, place), flush=True)
        result = run.shorter(places.PLACES[place], result, TRIES)
        pytest.fail(run.report(result, seed, place), pytrace=False)


@pytest.mark.timeout(1800)
@pytest.mark.skipif(SCRIPT is not None, reason="a script is run instead")
@pytest.mark.parametrize("seed", SEEDS)
def test_gitcp_does_what_the_model_says(seed):
    print(f"GITCP_MODEL_SEED={seed} GITCP_MODEL_PLACE={PLACE}")
    must_agree(run.play(places.PLACES[PLACE], seed, COUNT), seed, PLACE)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("place", list(places.PLACES))
def test_a_thousand_steps_on_each_disk(place):
    reason = places.missing(place)
    if reason is not None:
        pytest.skip(reason)
    print(f"GITCP_MODEL_SEED={SEED}")
    done, failures = run.soak(place, STEPS, SEED, tell)
    assert not failures, [seed for seed, _ in failures]
    assert done >= STEPS


def tell(text: str) -> None:
    """Says at once how far it is, also into the file GITCP_MODEL_LOG."""
    print(text, flush=True)
    if LOG is not None:
        with open(LOG, "a") as file:
            file.write(f"{text}\n")


@pytest.mark.timeout(1800)
@pytest.mark.skipif(SCRIPT is None, reason="set GITCP_MODEL_SCRIPT to a file of steps")
def test_a_script_of_steps_does_what_the_model_says():
    assert SCRIPT is not None
    steps = [Step.parse(line) for line in Path(SCRIPT).read_text("utf-8").splitlines()]
    must_agree(run.replay(places.PLACES[PLACE], steps), None, PLACE)
