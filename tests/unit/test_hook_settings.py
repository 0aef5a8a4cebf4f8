"""Settings of others: our hooks go in and out, the rest stays as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitcp.clients import hook_settings, jsonedit
from gitcp.clients.claude_code import CLIENT

WANTED = {
    "Start": {"hooks": [{"type": "command", "command": "gitcp hook x Start"}]},
    "Stop": {"hooks": [{"type": "command", "command": "gitcp hook x Stop"}]},
}
TEXTS = [
    "{}",
    "{}\n",
    "{ }",
    "{\n}\n",
    '{"a": 1}',
    '{"a":1,"b":[1,2,3]}\n',
    '{\n  "a": 1\n}\n',
    '{\n\t"a": {\n\t\t"b": []\n\t},\n\t"é": "\\u00e9 ☃"\n}',
    '{\r\n    "a": 1,\r\n    "n": 1e400\r\n}\r\n',
    '{"hooks": {}}',
    '{"hooks": {"Stop": []}, "a": 1}',
    '{\n  "hooks": {\n    "Stop": [\n      {"hooks": [{"command": "mine"}]}\n    ]\n  }\n}',
    '{"hooks": {"Other": [{"hooks": [{"command": "mine"}]}]}, "z": 0}',
    '{"a": 1, "a": 2}',
    '\ufeff{"a": 1}',
    '{\n  // said by me\n  "a": 1, /* and this */\n}\n',
]


def plain(text: str) -> object:
    return jsonedit.value(text, jsonedit.parse(text))


@pytest.mark.parametrize("text", TEXTS)
def test_hooks_are_added_and_nothing_else_changes(text):
    raw = text.encode()
    made = hook_settings.merge(raw, "x", WANTED)
    assert hook_settings.merge(made, "x", WANTED) == made
    assert hook_settings.installed(made, "x")
    assert not hook_settings.installed(raw, "x")
    before, after = plain(text), plain(made.decode())
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    for event, group in WANTED.items():
        assert after["hooks"][event].pop() == group
    assert {k: v for k, v in after.items() if k != "hooks"} == {
        k: v for k, v in before.items() if k != "hooks"
    }
    old = before.get("hooks", {})
    assert {k: v for k, v in after["hooks"].items() if v} == {
        k: v for k, v in old.items() if v
    }
    # What was there is there still, character by character, in its order.
    rest = iter(made.decode())
    assert all(char in rest for char in text.rstrip("}\r\n\t ") if not char.isspace())


# An empty list of hooks goes with ours: `uninstall` remembers that it was there.
@pytest.mark.parametrize(
    "text", [one for one in TEXTS if "{}" not in one[2:] and "[]}" not in one]
)
def test_taken_out_again_the_text_is_what_it_was(text):
    made = hook_settings.merge(text.encode(), "x", WANTED)
    left = hook_settings.unmerge(made, "x")
    if left is None:
        assert plain(text) == {}
    else:
        assert plain(left.decode()) == plain(text)
        if "//" not in text:
            assert left.decode().split() == text.split()


def test_where_nothing_was_there_nothing_is_left():
    made = hook_settings.merge(None, "x", WANTED)
    assert json.loads(made)["hooks"].keys() == WANTED.keys()
    assert hook_settings.unmerge(made, "x") is None
    assert hook_settings.merge(b"", "x", WANTED) == made


def test_hooks_of_an_older_gitcp_are_replaced():
    old = {
        "Gone": {"hooks": [{"type": "command", "command": "/old/gitcp hook x Gone"}]},
        "Stop": {"hooks": [{"type": "command", "command": "/old/gitcp hook x Stop"}]},
    }
    made = hook_settings.merge(hook_settings.merge(b"{}", "x", old), "x", WANTED)
    assert b"/old/" not in made
    assert made == hook_settings.merge(b"{}", "x", WANTED)


def test_a_hook_that_the_user_put_into_our_group_stays():
    made = json.loads(hook_settings.merge(None, "x", WANTED))
    made["hooks"]["Stop"][0]["hooks"].insert(0, {"command": "theirs"})
    left = hook_settings.unmerge(json.dumps(made).encode(), "x")
    assert left is not None
    assert json.loads(left) == {"hooks": {"Stop": [{"hooks": [{"command": "theirs"}]}]}}


def test_those_of_another_agent_are_not_ours():
    both = hook_settings.merge(hook_settings.merge(None, "y", {}), "x", WANTED)
    assert not hook_settings.installed(both, "y")
    assert hook_settings.unmerge(both, "y") == both


@pytest.mark.parametrize(
    "text",
    ["[]", "nothing", '{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"a": 1', "{} {}"],
)
def test_what_is_not_understood_is_refused(text):
    with pytest.raises(ValueError):
        hook_settings.merge(text.encode(), "x", WANTED)
    assert not hook_settings.installed(text.encode(), "x")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=6).filter(lambda key: key != "hooks"), JSON),
    st.sampled_from([None, 0, 2, "\t"]),
    st.booleans(),
)
def test_any_settings_come_back(settings, indent, ascii_only):
    text = json.dumps(settings, indent=indent, ensure_ascii=ascii_only)
    made = CLIENT.merge(text.encode(), lambda hook: f"gitcp hook claude-code {hook}")
    assert {k: v for k, v in json.loads(made).items() if k != "hooks"} == settings
    left = CLIENT.unmerge(made)
    if left is None:
        assert settings == {}
    else:
        assert left.decode() == text
