"""The real Claude Code over pipes against the scripted Messages API: each proves what the agent did and was told."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from trunkline_testkit import processes
from trunkline_testkit.agents import agent_env
from trunkline_testkit.model_api import ScriptedApi

pytestmark = pytest.mark.live

FLAGS = (
    "-p --input-format stream-json --output-format stream-json --verbose --include-partial-messages "
    "--permission-prompt-tool stdio"
)
LINE_LIMIT = 8 * 1024 * 1024
PATIENCE = 30

Message = dict[str, Any]


class Agent:
    """One running Claude Code: lines in, lines out, all it said kept."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self.process = process
        self.folder = folder
        self.said: list[Message] = []

    def send(self, message: Message) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    def prompt(self, text: str) -> None:
        self.send(
            {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None, "session_id": ""}
        )

    def answer(self, request: Message, response: Message) -> None:
        answered = {"subtype": "success", "request_id": request["request_id"], "response": response}
        self.send({"type": "control_response", "response": answered})

    async def until(self, wanted: Callable[[Message], bool]) -> Message:
        """Read on until a message is wanted, and give it."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            while line := await self.process.stdout.readline():
                self.said.append(json.loads(line))
                if wanted(self.said[-1]):
                    return self.said[-1]
        raise AssertionError(f"the agent ended after {[message['type'] for message in self.said]}")

    async def ask(self) -> Message:
        return await self.until(lambda message: message["type"] == "control_request")

    async def result(self) -> Message:
        return await self.until(lambda message: message["type"] == "result")

    def streamed(self) -> list[str]:
        """The pieces of text, as they came."""
        deltas = [message["event"].get("delta", {}) for message in self.said if message["type"] == "stream_event"]
        return [delta["text"] for delta in deltas if delta.get("type") == "text_delta"]


@pytest.fixture
async def agent(claude_program: Path, scripted_api: ScriptedApi, home: Path) -> AsyncIterator[Agent]:
    folder = home / "project"
    folder.mkdir()
    process = await asyncio.create_subprocess_exec(
        claude_program,
        *FLAGS.split(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=folder,
        env=agent_env(home / "agent", scripted_api.url, CLAUDE_CODE_MAX_RETRIES="0"),
        limit=LINE_LIMIT,
    )
    running = Agent(process, folder)
    try:
        yield running
        assert process.stdin is not None
        process.stdin.close()
        async with asyncio.timeout(PATIENCE):
            assert process.stdout is not None
            await process.stdout.read()
            await process.wait()
        await processes.assert_no_orphans("HOME", str(home / "agent"))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_text_streams_in_pieces_and_further_turns_follow(agent: Agent, scripted_api: ScriptedApi) -> None:
    agent.prompt("SAY=one two three four five six seven")
    result = await agent.result()
    assert (result["is_error"], result["result"]) == (False, "one two three four five six seven")
    assert agent.streamed() == ["one two three ", "four five six ", "seven"]

    agent.prompt("and a greeting")
    second = await agent.result()
    assert second["result"].startswith("Hello from the scripted model.")
    assert second["session_id"] == result["session_id"]
    assert [(request.prompt, request.session) for request in scripted_api.requests] == [
        ("SAY=one two three four five six seven", result["session_id"]),
        ("and a greeting", result["session_id"]),
    ]

    # a release lets a held turn end
    agent.said.clear()
    agent.prompt("SCENARIO=hold")
    await agent.until(lambda _: agent.streamed() == ["Holding. "])
    await scripted_api.wait_holding()
    scripted_api.release()
    assert (await agent.result())["result"] == "Holding. Released."


async def test_an_interrupt_ends_a_held_stream_and_the_next_turn_works(agent: Agent, scripted_api: ScriptedApi) -> None:
    agent.prompt("SCENARIO=hold")
    await agent.until(lambda _: agent.streamed() == ["Holding. "])
    await scripted_api.wait_holding()
    agent.send({"type": "control_request", "request_id": "r1", "request": {"subtype": "interrupt"}})
    result = await agent.result()
    assert (result["subtype"], result["terminal_reason"]) == ("error_during_execution", "aborted_streaming")
    agent.prompt("SAY=still here")
    assert (await agent.result())["result"] == "still here"
    assert scripted_api.holding == 0


async def test_what_an_agent_asks_is_allowed_denied_and_answered(agent: Agent, scripted_api: ScriptedApi) -> None:
    agent.prompt("SCENARIO=bash CMD=touch refused")
    agent.answer(await agent.ask(), {"behavior": "deny", "message": "not on a Friday"})
    result = await agent.result()
    assert [denial["tool_name"] for denial in result["permission_denials"]] == ["Bash"]
    assert not (agent.folder / "refused").exists()

    agent.prompt("SCENARIO=bash CMD=touch made && echo it-ran")
    request = await agent.ask()
    assert request["request"]["tool_name"] == "Bash"
    assert not (agent.folder / "made").exists()
    agent.answer(request, {"behavior": "allow"})
    assert (await agent.result())["result"] == "The tool said: it-ran"
    assert (agent.folder / "made").exists()
    told = [(told.text, told.is_error) for told in scripted_api.tool_results]
    assert told == [("not on a Friday", True), ("it-ran", False)]

    agent.prompt("SCENARIO=question")
    request = await agent.ask()
    questions = request["request"]["input"]["questions"]
    assert [option["label"] for option in questions[0]["options"]] == ["Red", "Blue"]
    agent.answer(
        request, {"behavior": "allow", "updatedInput": {"questions": questions, "answers": {"Which colour?": "Blue"}}}
    )
    await agent.result()
    assert '"Which colour?"="Blue"' in scripted_api.tool_results[-1].text


async def test_a_subagent_and_a_background_command(agent: Agent, scripted_api: ScriptedApi) -> None:
    agent.prompt('SCENARIO=sub CHILD="SCENARIO=bash CMD=touch by-child"')
    request = await agent.ask()
    assert request["request"]["agent_id"]
    agent.answer(request, {"behavior": "allow"})
    assert (await agent.result())["result"] == "The child has reported."
    assert (agent.folder / "by-child").exists()
    assert [request.scenario for request in scripted_api.requests] == ["sub", "bash", "bash", "sub"]

    # the end of a background command starts a turn by itself
    agent.prompt("SCENARIO=bgtask")
    agent.answer(await agent.ask(), {"behavior": "allow"})
    assert (await agent.result())["result"] == "Started in the background."
    second = await agent.result()
    assert second["result"] == "The background task has finished."
    assert second["origin"]["kind"] == "task-notification"
    assert (agent.folder / "made-in-background").exists()


async def test_an_error_of_the_api_ends_the_turn_as_an_error(agent: Agent) -> None:
    for status in (400, 401, 429, 500, 529):
        agent.prompt(f"SCENARIO=err{status}")
        result = await agent.result()
        assert (result["is_error"], result["api_error_status"]) == (True, status)
