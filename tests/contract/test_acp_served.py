"""What the ACP adapter does for an agent that asks: files and terminals."""

import json
import os
from pathlib import Path
from typing import Any

from tests.contract.acp_running import STAND_IN, running

from trunkline_agentkit.environment import INCARNATION_MARK
from trunkline_agentkit.sweep import marked
from trunkline_testkit import eventually
from trunkline_wire.turn import ToolCompleted


async def test_files_are_read_and_written_within_the_sessions_directory_alone(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        work = tmp_path / "work"
        (tmp_path / "secret").write_text("secret")
        (work / "link").symlink_to(tmp_path / "secret")
        (work / "away").symlink_to(tmp_path)
        (work / "lines").write_text("1\n2\n3\n4\n")
        os.mkfifo(work / "pipe")

        async def call(method: str, **params: Any) -> Any:
            return await agent.told(f"call {method} {json.dumps(params)}")

        written = await call("fs/write_text_file", path=str(work / "new" / "a.txt"), content="ä\r\n")
        assert written["result"] == {}
        assert (work / "new" / "a.txt").read_bytes() == "ä\r\n".encode()
        read = await call("fs/read_text_file", path=str(work / "new" / "a.txt"))
        assert read["result"] == {"content": "ä\r\n"}
        part = await call("fs/read_text_file", path=str(work / "lines"), line=2, limit=2)
        assert part["result"] == {"content": "2\n3\n"}
        missing = await call("fs/read_text_file", path=str(work / "none"))
        assert missing["error"]["code"] == -32002
        for path in ("../secret", str(tmp_path / "secret"), str(work / "link"), str(work / "away" / "secret"), "/"):
            assert (await call("fs/read_text_file", path=path))["error"]["code"] == -32602
            assert (await call("fs/write_text_file", path=path, content="x"))["error"]["code"] == -32602
        for params in ({"path": str(work / "pipe")}, {"path": 7}, {}, {"path": "a\0b"}, {"path": str(work)}):
            assert (await call("fs/read_text_file", **params))["error"]["code"] in {-32602, -32603}
    assert (tmp_path / "secret").read_text() == "secret"


async def test_a_missing_file_is_empty_for_agents_that_need_it_so(tmp_path: Path) -> None:
    source = {"TRUNKLINE_PROGRAM_ACP_GEMINI": STAND_IN}
    async with running(tmp_path, agent="gemini", source=source) as agent:
        params = json.dumps({"path": str(tmp_path / "work" / "none")})
        assert (await agent.told(f"call fs/read_text_file {params}"))["result"] == {"content": ""}


async def test_a_terminal_runs_a_command_and_its_output_is_in_the_tool_call(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        told = await agent.told("shell pwd; echo err >&2; exit 4")
        (tool,) = agent.all(ToolCompleted)
    output = f"{tmp_path / 'work'}\nerr\n"
    assert told == {
        "ended": {"exitCode": 4, "signal": None},
        "output": output,
        "truncated": False,
        "exitStatus": {"exitCode": 4, "signal": None},
    }
    assert (tool.content[0].output, tool.content[0].exit_code, tool.exit_code) == (output, 4, 4)


async def test_a_terminal_keeps_the_end_of_its_output_and_may_be_killed(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:

        async def call(method: str, **params: Any) -> Any:
            return (await agent.told(f"call {method} {json.dumps(params)}")).get("result")

        name = (await call("terminal/create", command="printf äöü; exec sleep 600", outputByteLimit=5))["terminalId"]
        shown: Any = {}
        while shown.get("output") != "öü":
            shown = await call("terminal/output", terminalId=name)
        assert shown["truncated"] is True
        assert "exitStatus" not in shown
        assert await call("terminal/kill", terminalId=name) == {}
        ended = await call("terminal/wait_for_exit", terminalId=name)
        assert ended == {"exitCode": None, "signal": "SIGKILL"}
        assert await call("terminal/release", terminalId=name) == {}
        assert await call("terminal/output", terminalId=name) is None


async def test_terminals_end_with_the_session(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        await agent.turn("terminal sleep 600 & sleep 600")
        marks = {INCARNATION_MARK: agent.start.incarnation}
        await eventually(lambda: len(marked(marks)) >= 3)
    assert marked(marks) == []


async def test_a_terminal_of_a_missing_program_says_so(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        made = await agent.told(f"call terminal/create {json.dumps({'command': '/no/such/program'})}")
        name = made["result"]["terminalId"]
        ended = await agent.told(f"call terminal/wait_for_exit {json.dumps({'terminalId': name})}")
        assert ended["result"]["exitCode"] == 127
        outside = await agent.told(f"call terminal/create {json.dumps({'command': 'ls', 'cwd': '/'})}")
        assert outside["error"]["code"] == -32602
