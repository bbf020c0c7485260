"""Real clients of the Agent Client Protocol drive the running product: the SDKs of Python and TypeScript, and Trunkline itself."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.integration.acp.editor import editor
from tests.live.test_readme import ROOT
from tests.node.install import node_modules

from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.product import Product

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]

ACP = [sys.executable, "-m", "trunkline_cli", "acp"]


async def typescript(product: Product, agent: str, told: dict[str, Any]) -> Any:
    """What the TypeScript SDK's client was told."""
    folder = await asyncio.to_thread(node_modules)
    script = folder / f"editor-{os.getpid()}.mjs"
    script.write_text((ROOT / "tests/node/editor.mjs").read_text())
    try:
        process = await asyncio.create_subprocess_exec(
            "node",
            str(script),
            json.dumps(told),
            *ACP,
            "--agent",
            agent,
            env=product.environment | {"PATH": f"{product.environment['PATH']}{os.pathsep}{os.environ['PATH']}"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), 120)
    finally:
        script.unlink()
    assert process.returncode == 0, err.decode()
    return json.loads(out)


def of(told: Any, kind: str) -> list[Any]:
    return [update for update in told["updates"] if update["sessionUpdate"] == kind]


def said(told: Any) -> str:
    return "".join(update["content"]["text"] for update in of(told, "agent_message_chunk"))


async def test_editors_and_another_instance(product: Product, project: Path, api: ScriptedApi) -> None:
    await the_typescript_client(product, project)
    await the_python_client_with_claude_code(product, project, api)
    await trunkline_through_trunkline(product, project)


async def the_typescript_client(product: Product, project: Path) -> None:
    prompts = ["slow 10", "ask ls", "question Go on?"]
    wanted = {"cwd": str(project), "prompts": prompts, "choose": "allow_once", "form": {"Go on?": "yes"}}
    told = await typescript(product, "demo", wanted)
    assert told["stops"] == ["end_turn"] * 3
    assert said(told) == " ".join(f"word{n}" for n in range(10)) + 'You answered: {"Go on?": "yes"}'
    assert [call["title"] for call in of(told, "tool_call")] == ["run: ls"]
    assert of(told, "tool_call_update")[-1]["status"] == "completed"
    assert (len(told["asked"]), len(told["forms"])) == (1, 1)
    assert told["listed"] == [told["session"]]

    made = project / "made"
    prompts = ["SAY=hello there", f"SCENARIO=bash CMD=touch {made}"]
    told = await typescript(product, "claude", wanted | {"prompts": prompts, "choose": "allow_once"})
    assert told["stops"] == ["end_turn"] * 2
    assert said(told).startswith("hello there")
    assert made.exists()


async def the_python_client_with_claude_code(product: Product, project: Path, api: ScriptedApi) -> None:
    async with editor([*ACP, "--agent", "claude"], product.environment) as one:
        session = (await one.connection.new_session(cwd=str(project), mcp_servers=[])).session_id
        ended = await one.prompt(session, "SCENARIO=slow N=20 DELAY_MS=50")
        assert ended.stop_reason == "end_turn"
        assert ended.usage.output_tokens > 0
        assert len(one.of("agent_message_chunk")) >= 3
        names = {command.name for command in one.of("available_commands_update")[-1].available_commands}
        assert "compact" in names
        options = {option.id: option for option in one.of("config_option_update")[-1].config_options}
        assert {"default", "plan"} <= {choice.value for choice in options["mode"].options}
        assert options["model"].current_value in {choice.value for choice in options["model"].options}

        made = project / "first"
        await one.prompt(session, f"SCENARIO=bash CMD=touch {made}")
        ((call, offered),) = one.asked
        assert call.raw_input is not None
        assert (call.kind, call.raw_input["command"]) == ("execute", f"touch {made}")
        assert {"allow_once", "reject_once"} <= {option.kind for option in offered}
        assert made.exists()
        assert one.of("tool_call_update")[-1].status == "completed"

        # decided in a browser while the editor's dialog is open
        one.choose = None
        running = asyncio.create_task(one.prompt(session, f"SCENARIO=bash CMD=touch {project / 'second'}"))
        await one.until(lambda: len(one.asked) == 2)
        async with await product.client() as browser:
            (ask,) = (await browser.call("ask.list", session=session))["asks"]
            await browser.call("ask.answer", ask=ask["ask"], behaviour="deny", message="not today")
        assert (await running).stop_reason == "end_turn"
        assert one.of("tool_call_update")[-1].status == "failed"
        assert not (project / "second").exists()
        one.release.set()

        held = asyncio.create_task(one.prompt(session, "SCENARIO=hold"))
        await api.wait_holding()
        await one.connection.cancel(session_id=session)
        assert (await held).stop_reason == "cancelled"


async def trunkline_through_trunkline(product: Product, project: Path) -> None:
    """The outer instance's adapter runs `trunkline acp`; what the inner one's agent asks is decided in the outer."""
    inner = product.home / "inner"
    command = [*ACP, "--up", "--home", str(inner), "--agent", "demo"]
    async with await product.client() as client:
        created = await client.call(
            "session.create", adapter="acp", cwd=str(project), options={"native": {"command": command}}
        )
        session = created["session"]
        await client.subscribe(session, start="start")
        await client.call("session.prompt", session=session, text="ask ls; say done")
        asked = await client.wait("permission.requested", within=90)
        assert asked["data"]["input"] == {"command": "ls"}
        await client.call("ask.answer", session=session, ask=asked["data"]["ask"], behaviour="allow")
        assert (await client.wait("turn.completed"))["data"]["outcome"] == "success"
        tool = await client.wait("tool.completed")
        assert (tool["data"]["status"], tool["item"]) == ("completed", asked["data"]["tool"])
        texts = [block["text"] for e in client.events("message.assistant") for block in e["data"]["content"]]
        assert texts == ["done"]
        # What runs inside the session decides nothing of the outer instance.
        await client.call("session.prompt", session=session, text="ask rm")
        await client.wait("permission.requested", count=2)
        product.environment["TRUNKLINE_SESSION"] = session
        code, _, err = await product.cli("approve", "last")
        product.environment.pop("TRUNKLINE_SESSION")
        assert (code, "agent_forbidden" in err) == (1, True)
        await client.call("session.close", session=session, wait=True)
