"""A prompt's content as ours, ends of turns, and what a client says that it can do."""

from typing import Any

import pytest
from acp.schema import PromptResponse

from trunkline_acp.content import block_of, content_of, edit_of, fenced
from trunkline_acp.describe import config_options, described, expected, session_info, stop
from trunkline_acp.native import Able, able, code_of
from trunkline_acp.server import mcp_server
from trunkline_fold.session import SessionState
from trunkline_wire import TrunklineError
from trunkline_wire.blocks import Block, Choice, FileBlock, ImageBlock, ResourceBlock, TextBlock, Usage
from trunkline_wire.turn import TurnCompleted


@pytest.mark.parametrize(
    ("native", "ours"),
    [
        ({"type": "text", "text": "hi", "annotations": {}}, TextBlock(text="hi")),
        ({"type": "image", "mimeType": "image/png", "data": "aGk="}, ImageBlock(media_type="image/png", data="aGk=")),
        (
            {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/x"},
            ResourceBlock(uri="file:///a", name="a", media_type="text/x"),
        ),
        (
            {"type": "resource", "resource": {"uri": "file:///a%20b", "text": "said"}},
            ResourceBlock(uri="file:///a%20b", text="said"),
        ),
        (
            {"type": "resource", "resource": {"uri": "file:///a%20b", "blob": "aGk=", "mimeType": "image/x"}},
            FileBlock(path="/a b", name="file:///a%20b", media_type="image/x", data="aGk="),
        ),
    ],
)
def test_a_prompts_content(native: dict[str, Any], ours: Block) -> None:
    assert block_of(native) == ours


def test_content_that_nobody_knows_is_refused() -> None:
    with pytest.raises(TrunklineError, match="hologram") as refused:
        block_of({"type": "hologram"})
    assert code_of(refused.value) == -32602


def test_a_fence_is_longer_than_what_it_holds() -> None:
    assert fenced("```\nx\n```") == "````\n```\nx\n```\n````"


def test_a_resource_goes_as_it_came() -> None:
    link = {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/x"}
    assert content_of(block_of(link)) == link
    text = {"type": "resource", "resource": {"uri": "file:///a", "text": "said"}}
    assert content_of(block_of(text)) == text


@pytest.mark.parametrize("given", [None, [], {"file_path": 3, "content": "x"}, {"path": "/a"}, {"content": "x"}])
def test_an_input_that_describes_no_change(given: Any) -> None:
    assert edit_of(given, "/work") is None


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        ("success", "end_turn"),
        ("interrupted", "cancelled"),
        ("refused", "refusal"),
        ("max_turns", "max_turn_requests"),
        ("max_budget", "max_turn_requests"),
    ],
)
def test_how_a_turn_has_ended(outcome: Any, reason: str) -> None:
    usage = Usage(input=10, output=5, cache_read=3, cache_write=2, reasoning=1)
    told = stop(TurnCompleted(outcome=outcome, usage=usage))
    PromptResponse.model_validate(told)
    assert told == {
        "stopReason": reason,
        "usage": {
            "inputTokens": 10,
            "outputTokens": 5,
            "cachedReadTokens": 3,
            "cachedWriteTokens": 2,
            "thoughtTokens": 1,
            "totalTokens": 20,
        },
    }


def test_a_turn_that_was_cut_short_or_failed() -> None:
    assert stop(TurnCompleted(outcome="success", stop_reason="max_tokens")) == {"stopReason": "max_tokens"}
    assert stop(TurnCompleted(outcome="error")) is None
    assert stop(TurnCompleted(outcome="aborted")) is None


def test_what_a_client_can_do() -> None:
    assert able({}) == Able()
    said = {
        "elicitation": {"form": {}, "url": {}},
        "session": {"notices": {}},
        "_meta": {"terminal_output": True, "of_next_year": 1},
        "fs": None,
    }
    assert able(said) == Able(forms=True, notices=True, terminal_output=True)
    assert able({"elicitation": {"url": {}}, "session": None, "_meta": None}) == Able()


def test_an_entry_of_the_list() -> None:
    state = {"session": "ses_1", "cwd": "/work", "updated": "2026-01-02T03:04:05Z", "last_text": "a\n b"}
    assert session_info(state) == {
        "sessionId": "ses_1",
        "cwd": "/work",
        "updatedAt": "2026-01-02T03:04:05Z",
        "title": "a b",
    }


def test_the_editors_mcp_servers() -> None:
    stdio = {"name": "a", "command": "/bin/a", "args": ["-v"], "env": [{"name": "K", "value": "v"}]}
    assert mcp_server(stdio) == {"command": "/bin/a", "args": ["-v"], "env": {"K": "v"}}
    http = {"type": "http", "name": "b", "url": "https://x/mcp", "headers": [{"name": "A", "value": "b"}]}
    assert mcp_server(http) == {"type": "http", "url": "https://x/mcp", "headers": {"A": "b"}}


def test_an_agent_that_has_not_started_has_the_choices_of_its_last_session() -> None:
    before = SessionState(
        session="ses_1",
        initialized=True,
        model="large",
        mode="plan",
        models=[Choice(id="large")],
        modes=[Choice(id="plan")],
    )
    fresh = expected(SessionState(session="ses_2"), before)
    options = {one["id"]: one for one in config_options(fresh)}
    # What was chosen there is not what is set here.
    assert {name: one["currentValue"] for name, one in options.items()} == {"mode": "default", "model": "default"}
    assert [one["value"] for one in options["model"]["options"]] == ["default", "large"]
    assert "modes" not in described(fresh)
    assert expected(before, fresh) is before
