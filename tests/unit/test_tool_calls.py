"""What the records of each client say of tools that may have changed files."""

from __future__ import annotations

import json

import pytest

from gitcp.checkpoints.tool_calls import calls


def claude(name, ident="1", **given):
    block = {"type": "tool_use", "id": ident, "name": name, "input": given}
    return {"type": "assistant", "message": {"role": "assistant", "content": [block]}}


def claude_result(ident="1", **more):
    block = {"type": "tool_result", "tool_use_id": ident, "content": "ok", **more}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def codex(name, ident="1", **given):
    payload = {
        "type": "function_call",
        # Of the record, not of what the call did.
        "status": "completed",
        "id": "fc_1",
        "name": name,
        "arguments": json.dumps(given),
        "call_id": ident,
    }
    return {"type": "response_item", "payload": payload}


def codex_result(output, ident="1"):
    payload = {"type": "function_call_output", "id": "fco_1", "call_id": ident}
    return {"type": "response_item", "payload": {**payload, "output": output}}


def codex_patch(text):
    payload = {"type": "custom_tool_call", "name": "apply_patch", "input": text}
    return {"type": "response_item", "payload": {**payload, "call_id": "1"}}


def gemini(name, status, **given):
    call = {"id": "1", "name": name, "args": given, "status": status}
    return {"id": "m", "type": "gemini", "content": "", "toolCalls": [call]}


def opencode(name, status, **given):
    state = {"status": status, "input": given}
    part = {"type": "tool", "id": "prt", "callID": "1", "tool": name, "state": state}
    return {"info": {"role": "assistant"}, "parts": [part]}


@pytest.mark.parametrize(
    "message",
    [
        claude("Write", file_path="/p/a", content="x"),
        claude("Edit", file_path="/p/a", old_string="x", new_string="y"),
        claude("NotebookEdit", notebook_path="/p/a"),
        gemini("write_file", "success", file_path="/p/a", content="x"),
        gemini("replace", "success", file_path="/p/a"),
        opencode("edit", "completed", filePath="/p/a"),
        codex_patch("*** Begin Patch\n*** Update File: /p/a\n@@\n-x\n+y\n"),
    ],
)
def test_an_edit_names_its_path(message):
    (call,) = calls([message]).made
    assert (call.ident, call.paths, call.command) == ("1", ("/p/a",), None)


@pytest.mark.parametrize(
    ("message", "texts"),
    [
        (claude("Write", file_path="a", content="x\n"), ("x\n",)),
        (claude("Edit", file_path="a", old_string="o", new_string="n"), ("n",)),
        (claude("MultiEdit", file_path="a", edits=[{"new_string": "n"}]), ("n",)),
        (claude("Edit", file_path="a", old_string="o", new_string=""), ()),
        (opencode("edit", "completed", filePath="a", newString="n"), ("n",)),
        (codex_patch("*** Update File: a\n@@\n-o\n+\n+n\n k\n"), ("n",)),
    ],
)
def test_an_edit_has_what_it_wrote(message, texts):
    (call,) = calls([message]).made
    assert call.texts == texts


def test_a_patch_names_all_its_files():
    text = (
        "*** Begin Patch\n*** Add File: new\n+x\n*** Delete File: old\n"
        "*** Update File: here\n*** Move to: there\n@@\n-x\n+y\n*** End Patch\n"
    )
    (call,) = calls([codex_patch(text)]).made
    assert sorted(call.paths) == ["here", "new", "old", "there"]


@pytest.mark.parametrize(
    ("message", "lasts"),
    [
        (claude("Bash", command="make"), False),
        (claude("Bash", command="make", run_in_background=True), True),
        (claude("Bash", command="npm start &"), True),
        (claude("Bash", command="make 2>&1 && ./run"), False),
        (claude("Bash", command="nohup make"), True),
        (codex("exec_command", cmd="make"), False),
        (codex("shell", command=["bash", "-lc", "make"]), False),
        (gemini("run_shell_command", "success", command="make"), False),
        (opencode("bash", "running", command="make"), False),
    ],
)
def test_a_command_may_change_anything(message, lasts):
    (call,) = calls([message]).made
    assert (call.ident, call.paths, call.lasts) == ("1", (), lasts)
    assert "make" in (call.command or "") or "npm" in (call.command or "")


@pytest.mark.parametrize(
    "message",
    [
        claude("Read", file_path="/p/a"),
        claude("Bash", command="ls -la | grep x"),
        claude("Bash", command="gitcp decide 'x' --kind next"),
        claude("TodoWrite", todos=[]),
        codex("update_plan", plan=[]),
        codex("exec_command", cmd="cat a"),
        gemini("read_file", "success", file_path="/p/a"),
        opencode("grep", "completed", pattern="x"),
    ],
)
def test_what_only_reads_is_no_call_that_counts(message):
    assert calls([message]).made == []


@pytest.mark.parametrize(
    "message",
    [
        claude("Agent", prompt="do it"),
        claude("mcp__files__put", path="/p/a"),
        claude("Write", content="no path"),
        codex("write_stdin", session_id=1, chars="y"),
    ],
)
def test_a_tool_that_is_not_known_may_change_anything(message):
    (call,) = calls([message]).made
    assert (call.paths, call.command) == ((), None)


@pytest.mark.parametrize(
    ("messages", "answered", "failed"),
    [
        ([claude("Bash", command="make")], False, False),
        ([claude("Bash", command="make"), claude_result()], True, False),
        ([claude("Edit", file_path="a"), claude_result(is_error=True)], True, True),
        ([codex("exec_command", cmd="make")], False, False),
        (
            [
                codex("exec_command", cmd="make"),
                codex_result("Process running with session ID 3\n"),
            ],
            False,
            False,
        ),
        ([codex("exec_command", cmd="make"), codex_result("exited")], True, False),
        ([gemini("run_shell_command", "success", command="make")], True, False),
        ([gemini("replace", "error", file_path="a")], True, True),
        ([opencode("bash", "running", command="make")], False, False),
        ([opencode("bash", "completed", command="make")], True, False),
        ([opencode("edit", "error", filePath="a")], True, True),
    ],
)
def test_a_result_ends_its_call(messages, answered, failed):
    found = calls(messages)
    assert ("1" in found.answered, "1" in found.failed) == (answered, failed)


@pytest.mark.parametrize(
    "message",
    [
        {"type": "assistant", "message": {"role": "assistant", "content": [1, None]}},
        {"payload": {"type": "function_call_output", "call_id": 7, "output": {}}},
        {"role": "tool", "tool_call_id": ["x"], "content": {"text": {"text": 1}}},
        claude("Bash", command=7),
        claude("Write", file_path=["x"]),
        codex_patch(""),
    ],
)
def test_other_shapes_are_no_error(message):
    found = calls([message])
    assert all(not call.paths for call in found.made)
