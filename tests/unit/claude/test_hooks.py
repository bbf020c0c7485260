"""Our hooks in Claude Code's settings, and what it has said when it called them (recorded: 2.1.332 over HTTP)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline_adapters.claude import hooks
from trunkline_agentkit.fields import Obj
from trunkline_agentkit.hooks import HookEndpoint
from trunkline_wire import TrunklineError

ENDPOINT = HookEndpoint(port=30088, secret="s" * 43)
OURS = {
    "type": "http",
    "url": "http://127.0.0.1:30088/hooks/claude",
    "headers": {"Authorization": f"Bearer {'s' * 43}", "Trunkline-Session": "$TRUNKLINE_SESSION"},
    "allowedEnvVars": ["TRUNKLINE_SESSION"],
    "timeout": 2,
}
THEIRS = {"type": "command", "command": "notify-send done"}
RECORDED = Path(__file__).parents[2] / "recordings" / "claude-hooks" / "calls.jsonl"


def test_a_fragment_for_a_user_without_settings() -> None:
    ours = hooks.with_hooks({}, ENDPOINT)
    assert ours["hooks"]["TeammateIdle"] == [{"hooks": [OURS]}]
    assert ours["hooks"]["PostToolUse"] == [
        {"matcher": "Agent|Task|TaskCreate|TaskUpdate|TeamCreate|TeamDelete|SendMessage", "hooks": [OURS]}
    ]
    assert hooks.installed(ours) == [
        "Notification",
        "PermissionRequest",
        "PostToolUse",
        "SessionEnd",
        "Stop",
        "SubagentStart",
        "SubagentStop",
        "TaskCompleted",
        "TaskCreated",
        "TeammateIdle",
    ]
    assert hooks.without_hooks(ours) == {}


def test_what_is_there_stays_and_goes_first() -> None:
    before: Obj = {
        "model": "opus",
        "hooks": {"Stop": [{"hooks": [THEIRS]}], "PreToolUse": [{"matcher": "Bash", "hooks": [THEIRS]}]},
    }
    after = hooks.with_hooks(before, ENDPOINT)
    assert after["model"] == "opus"
    assert after["hooks"]["Stop"] == [{"hooks": [THEIRS]}, {"hooks": [OURS]}]
    assert after["hooks"]["PreToolUse"] == [{"matcher": "Bash", "hooks": [THEIRS]}]
    assert hooks.without_hooks(after) == before


def test_a_hook_of_ours_that_was_put_beside_theirs_goes_alone() -> None:
    both: Obj = {"hooks": {"Stop": [{"hooks": [THEIRS, OURS]}]}}
    assert hooks.without_hooks(both) == {"hooks": {"Stop": [{"hooks": [THEIRS]}]}}


def test_a_new_secret_takes_the_place_of_the_old() -> None:
    old = hooks.with_hooks({}, HookEndpoint(port=30099, secret="o" * 43))
    assert hooks.with_hooks(old, ENDPOINT) == hooks.with_hooks({}, ENDPOINT)


_GROUPS = st.lists(st.fixed_dictionaries({"hooks": st.lists(st.just(THEIRS), min_size=1, max_size=2)}), min_size=1)


@settings(max_examples=30)
@given(
    st.dictionaries(st.sampled_from(["model", "env", "x"]), st.text()),
    st.dictionaries(st.sampled_from(["Stop", "PreToolUse", "TaskCreated", "Other"]), _GROUPS, min_size=1),
)
def test_installed_twice_is_installed_once_and_undone_is_undone(other: Obj, groups: dict[str, Any]) -> None:
    before = {**other, "hooks": groups}
    once = hooks.with_hooks(before, ENDPOINT)
    assert hooks.with_hooks(once, ENDPOINT) == once
    assert hooks.without_hooks(once) == before


@pytest.mark.parametrize("odd", [{"hooks": []}, {"hooks": {"Stop": {}}}, {"hooks": {"Stop": ["x"]}}])
def test_settings_of_an_unknown_form_are_left_alone(odd: Obj) -> None:
    with pytest.raises(TrunklineError) as refused:
        hooks.with_hooks(odd, ENDPOINT)
    assert refused.value.code == "bad_settings"


def test_what_keeps_them_from_being_called() -> None:
    assert hooks.hindrances({}, ENDPOINT) == []
    assert hooks.hindrances({"allowedHttpHookUrls": ["http://127.0.0.1:*"]}, ENDPOINT) == []
    found = hooks.hindrances(
        {"disableAllHooks": True, "allowedHttpHookUrls": ["https://x/*"], "httpHookAllowedEnvVars": []}, ENDPOINT
    )
    assert [one.split("`")[1] for one in found] == ["disableAllHooks", "allowedHttpHookUrls", "httpHookAllowedEnvVars"]


def test_recorded_calls() -> None:
    bodies = [json.loads(line)["msg"]["body"] for line in RECORDED.read_text().splitlines()]
    read = [hooks.read_hook(body) for body in bodies]
    assert all(one is not None and one.native_session == "898368a6-a010-480f-a512-561746e1918f" for one in read)
    named = [one.event for one in read if one is not None]
    assert (named[0], named[-1], named.count("TaskCreated"), named.count("Stop")) == (
        "UserPromptSubmit",
        "SessionEnd",
        2,
        3,
    )
    assert len({one.id for one in read if one is not None}) == len(bodies)
    assert {one.event for one in read if one is not None and one.once} == {
        "PostToolUse",
        "PreToolUse",
        "TaskCreated",
        "UserPromptSubmit",
    }


@pytest.mark.parametrize(
    "body", [{}, {"hook_event_name": "Stop"}, {"session_id": "x", "hook_event_name": "no name\n"}, {"session_id": 1}]
)
def test_what_is_no_call(body: Obj) -> None:
    assert hooks.read_hook(body) is None
