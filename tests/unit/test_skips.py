"""A skip in CI that no machine gives cause for is a failure."""

from __future__ import annotations

import pytest

from tests import skips


def report(reason: str, *, outcome: str = "skipped") -> pytest.CollectReport:
    where = ("tests/test_x.py", 1, f"Skipped: {reason}")
    return pytest.CollectReport("tests/test_x.py", outcome, where, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "reason",
    ["not installed", "flaky", "the extra gitcp[crypt] is not installed", ""],
)
def test_a_skip_that_is_not_in_the_list_fails(reason):
    assert skips.judged(report(reason), strict=True).outcome == "failed"
    assert skips.judged(report(reason), strict=False).outcome == "skipped"


def test_a_missing_program_is_cause_for_a_skip_and_an_installed_one_is_not(monkeypatch):
    reasons = ["there is no mkfs.xfs", "there is no codex (npm i @openai/codex)"]
    monkeypatch.setattr(skips, "_is_missing", lambda program: True)
    assert {skips.judged(report(one), strict=True).outcome for one in reasons} == {
        "skipped"
    }
    monkeypatch.setattr(skips, "_is_missing", lambda program: False)
    assert {skips.judged(report(one), strict=True).outcome for one in reasons} == {
        "failed"
    }


def test_a_client_may_be_missing_only_where_npm_is(monkeypatch):
    reason = "there is no kilo (npm i @kilocode/cli-linux-x64)"
    monkeypatch.setattr(skips, "_is_missing", lambda program: program == "kilo")
    assert skips.judged(report(reason), strict=True).outcome == "failed"
    monkeypatch.setattr(skips, "_is_missing", lambda program: True)
    assert skips.judged(report(reason), strict=True).outcome == "skipped"


def test_what_passed_stays_so():
    assert skips.judged(report("", outcome="passed"), strict=True).outcome == "passed"
