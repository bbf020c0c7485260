"""The real Agent SDK with its own CLI: all that the Claude adapter's live tests want, and what is the SDK's own."""
# pyright: reportUnusedImport=false

from pathlib import Path
from typing import Any

import pytest
from tests.live import test_claude_adapter
from tests.live.test_claude_adapter import (  # noqa: F401  # the same behaviours, with the bench of this module
    test_a_background_task_starts_a_turn_by_itself,
    test_a_cli_that_is_not_signed_in_says_what_to_do,
    test_a_denied_tool_does_not_run_and_the_model_learns_why,
    test_a_killed_agent_is_resumed_under_the_same_native_id,
    test_a_plan_is_proposed_refused_and_approved_with_edits,
    test_a_prompt_that_the_agent_has_had_before_is_not_run_again,
    test_a_question_is_answered,
    test_a_subagent_speaks_in_the_lane_of_its_tool_call,
    test_always_allow_is_asked_once,
    test_an_allowed_tool_runs_with_the_changed_input,
    test_an_image_reaches_the_model,
    test_an_interrupt_ends_the_turn_and_the_session_goes_on,
    test_an_interrupt_withdraws_what_was_asked,
    test_commands_of_the_agent_run_as_turns,
    test_files_are_put_back_to_before_a_prompt,
    test_how_turns_end_at_a_limit,
    test_how_turns_end_when_the_api_fails,
    test_model_mode_thinking_and_title_change_while_it_runs,
    test_options_reach_the_agent,
    test_prompts_while_a_turn_runs_are_folded_in_queued_or_dropped,
    test_resuming_what_does_not_exist_fails_at_once,
    test_text_streams_and_ends_in_the_same_text,
)

from trunkline_adapters.claude_sdk.adapter import ClaudeSdkAdapter
from trunkline_testkit.agents import require
from trunkline_testkit.model_api import ScriptedApi

pytestmark = [pytest.mark.live, pytest.mark.matrix, pytest.mark.timeout(300)]


class Bench(test_claude_adapter.Bench):
    """A home and a project in which sessions of the SDK run; `seen` is what its hook was told."""

    def __init__(self, home: Path, project: Path, api: ScriptedApi) -> None:
        bundled = require("claude-sdk").resolve()
        super().__init__(home, project, api, bundled)
        self.source["TRUNKLINE_CLAUDE_SDK_PATH"] = str(bundled.parents[2])
        self.seen: list[str] = []
        self.hooks: dict[str, Any] = {}
        self.adapter: Any = ClaudeSdkAdapter(self.source, self.hooks)

    async def hook(self, given: Any, tool: str | None, context: Any) -> dict[str, Any]:
        del tool, context
        self.seen.append(given["tool_input"]["command"])
        changed = {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "updatedInput": {"command": "touch hooked"},
        }
        return {"hookSpecificOutput": changed}


@pytest.fixture
def bench(tmp_path: Path, scripted_api: ScriptedApi) -> Bench:
    project = tmp_path / "project"
    project.mkdir()
    return Bench(tmp_path / "home", project, scripted_api)


async def test_a_hook_of_the_sdk_changes_what_runs(bench: Bench) -> None:
    await bench.adapter.probe()
    import claude_agent_sdk  # pyright: ignore[reportMissingImports]  # the pinned package, on the path by now

    bench.hooks["PreToolUse"] = [claude_agent_sdk.HookMatcher(matcher="Bash", hooks=[bench.hook])]
    async with bench.session() as agent:
        assert (await agent.turn("SCENARIO=bash CMD=touch original")).outcome == "success"
        assert bench.seen == ["touch original"]
        assert [path.name for path in bench.project.iterdir()] == ["hooked"]


async def test_what_the_sdks_parser_drops_is_in_the_stream(bench: Bench) -> None:
    async with bench.session() as agent:
        await agent.turn("SAY=Hello.")
        kinds = {native.kind for native in agent.natives}
        assert {"command_lifecycle", "system/init", "stream_event/content_block_delta", "result/success"} <= kinds


async def test_a_schema_reaches_the_agent(bench: Bench) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    async with bench.session(output_schema=schema) as agent:
        await agent.turn("SAY=Hello.")
        assert "StructuredOutput" in bench.api.requests[0].tools
