"""What the page shows of a conversation's tools."""

from __future__ import annotations

import json

import pytest

from gitcp.view.talk import spoken


def _with_result(content: str) -> bytes:
    call = {"type": "tool_use", "id": "1", "name": "Bash", "input": {"command": "ls"}}
    said = {"role": "assistant", "content": [call]}
    answer = '{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":%s}]}'
    return f"{json.dumps(said)}\n{answer % content}\n".encode()


@pytest.mark.parametrize("levels", [1, 900])
@pytest.mark.parametrize(("before", "behind"), [("[", "]"), ('{"text":', "}")])
def test_a_result_is_shown_unless_it_lies_absurdly_deep(before, behind, levels):
    raw = _with_result(before * levels + '"files"' + behind * levels)
    ((step,),) = [turn.steps for turn in spoken(raw)]
    assert (step.tool, step.arg) == ("Bash", "ls")
    assert step.out == ("files" if levels == 1 else "")
