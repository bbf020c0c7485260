"""What real agents have run without Trunkline, imported from their own histories, and gone on with."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from trunkline_testkit import processes
from trunkline_testkit.agents import claude_path, require
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.offline import offline_env
from trunkline_testkit.product import Client, Product, running

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]

further = pytest.mark.matrix
"""Of agents that a plain run of the tests does not install."""


async def run_alone(product: Product, project: Path, *arguments: str) -> dict[str, Any]:
    """`claude -p …` as somebody would call it in a shell, with the product's HOME; its result."""
    process = await asyncio.create_subprocess_exec(
        str(claude_path()),
        "-p",
        *arguments,
        "--output-format",
        "json",
        cwd=project,
        env={name: value for name, value in product.environment.items() if not name.startswith("TRUNKLINE")},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err.decode()
    return json.loads(out)


async def test_a_session_of_the_cli_is_imported_and_goes_on_with_a_prompt(
    product: Product, project: Path, api: ScriptedApi
) -> None:
    first = await run_alone(product, project, "SCENARIO=bash CMD=echo once", "--allowedTools", "Bash")
    native = first["session_id"]
    await run_alone(product, project, "SAY=Remember the marmot.", "--resume", native)

    code, out, err = await product.cli("import", "--json")
    assert code == 0, err
    (listed,) = [json.loads(line) for line in out.splitlines()]
    assert (listed["agent"], listed["id"], listed["session"]) == ("claude", native, None)
    assert (listed["cwd"], listed["turns"], listed["title"]) == (str(project), 2, "SCENARIO=bash CMD=echo once")

    code, out, err = await product.cli("import", "claude", native[:8], "--json")
    assert code == 0, err
    done = json.loads(out)
    assert (done["outcome"], done["malformed"], done["untranslated"]) == ("imported", [], [])
    session = done["session"]
    again = json.loads((await product.cli("import", "claude", "--all", "--json"))[1])
    assert (again["outcome"], again["events"], again["written"]) == ("already_imported", done["events"], 0)

    async with await product.client() as client:
        listing = await client.call("session.list")
        (state,) = listing["sessions"]
        assert (state["session"], state["status"], state["native_session"]) == (session, "closed", native)
        assert (state["turns"], state["cwd"]) == (2, str(project))
        page = await client.call("session.history", session=session, limit=500)
        kinds = [one["event"]["type"] for one in page["events"]]
        assert kinds[:2] == ["session.created", "session.updated"]
        assert kinds[-1] == "session.closed"
        (tool,) = [one["event"] for one in page["events"] if one["event"]["type"] == "tool.completed"]
        assert tool["data"]["content"] == [{"type": "terminal", "output": "once", "exit_code": 0}]
        assert {one["event"]["source"]["via"] for one in page["events"]} == {"import"}

        # the session is reopened, and the CLI has its own memory of it
        await client.subscribe(session, start="now")
        await client.call("session.command", session=session, verb="resume", args={})
        await client.wait("session.resumed")
        await client.call("session.prompt", session=session, text="SAY=Onwards.")
        ended = await client.wait("turn.completed", within=60)
        assert ended["data"]["outcome"] == "success"
        initialized = await client.wait("session.initialized")
        assert initialized["data"]["native_session"] == native
        assert (await client.wait("turn.started"))["data"]["number"] == 3
    assert api.requests[-1].session == native
    code, out, err = await product.cli("verify", session)
    assert code == 0, f"{out}\n{err}"

    # the resumed turn is in the file of the two before; it is the same session still
    (path,) = (product.home / ".claude" / "projects").glob("*/*.jsonl")
    written = path.read_text()
    assert path.stem == native
    assert written.index("Remember the marmot.") < written.index("Onwards.")
    again = json.loads((await product.cli("import", "claude", native, "--json"))[1])
    assert (again["outcome"], again["session"]) == ("already_imported", session)


async def run_once(environment: dict[str, str], project: Path, program: Path, *arguments: str, prompt: str) -> str:
    """A headless run of an agent, as somebody would make it in a shell; what it prints."""
    process = await asyncio.create_subprocess_exec(
        str(program),
        *arguments,
        cwd=project,
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(prompt.encode()), 300)
    assert process.returncode == 0, err.decode()
    return out.decode()


async def import_it(product: Product, agent: str, native: str, project: Path) -> str:
    """Imports the one history that there is, twice; the session that it became."""
    code, out, err = await product.cli("import", agent, "--json", within=120)
    assert code == 0, err
    (listed,) = [json.loads(line) for line in out.splitlines()]
    assert (listed["agent"], listed["id"], listed["session"]) == (agent, native, None)
    assert (listed["cwd"], listed["turns"]) == (str(project), 2)
    code, out, err = await product.cli("import", agent, native[:12], "--json", within=120)
    assert code == 0, err
    done = json.loads(out)
    assert (done["outcome"], done["malformed"], done["untranslated"]) == ("imported", [], [])
    again = json.loads((await product.cli("import", agent, "--all", "--json", within=120))[1])
    assert (again["outcome"], again["events"], again["written"]) == ("already_imported", done["events"], 0)
    return done["session"]


async def go_on(client: Client, session: str, native: str, prompt: str) -> list[dict[str, Any]]:
    """Reopens an imported session and gives it a prompt; the contents of what the agent said to that."""
    await client.subscribe(session, start="now")
    await client.call("session.command", session=session, verb="resume", args={})
    await client.wait("session.resumed", within=60)
    await client.call("session.prompt", session=session, text=prompt)
    ended = await client.wait("turn.completed", within=200)
    assert ended["data"]["outcome"] == "success"
    assert (await client.wait("turn.started"))["data"]["number"] == 3
    assert (await client.wait("session.initialized"))["data"]["native_session"] == native
    return [one["data"] for one in client.events("message.assistant", session)]


@further
@pytest.mark.timeout(500)
async def test_a_session_of_gemini_is_imported_and_goes_on_with_a_prompt(
    project: Path, api: ScriptedApi, tmp_path: Path
) -> None:
    program = require("gemini")
    environment = offline_env("gemini", tmp_path / "home", api.url)
    out = await run_once(environment, project, program, "--output-format", "json", prompt="SAY=Remember the marmot.")
    native = json.loads(out)["session_id"]
    await run_once(
        environment,
        project,
        program,
        "--resume",
        native,
        "--approval-mode",
        "yolo",
        prompt="SCENARIO=bash CMD=echo once",
    )
    async with running(tmp_path / "home", environment) as product:
        session = await import_it(product, "gemini", native, project)
        async with await product.client() as client:
            page = await client.call("session.history", session=session, limit=500)
            (tool,) = [one["event"] for one in page["events"] if one["event"]["type"] == "tool.completed"]
            assert tool["data"]["content"] == [{"type": "terminal", "output": "once"}]
            (said,) = await go_on(client, session, native, "SCENARIO=recall")
            assert "Remember the marmot." in json.dumps(said)
        code, out, err = await product.cli("verify", session)
        assert code == 0, f"{out}\n{err}"


@further
@pytest.mark.timeout(600)
@pytest.mark.parametrize("agent", ["opencode", "kilo"])
async def test_a_session_in_the_store_of_opencode_is_imported_and_goes_on_with_a_prompt(
    agent: str, project: Path, api: ScriptedApi, tmp_path: Path
) -> None:
    program = require(agent)
    environment = offline_env(agent, tmp_path / "home", api.url)
    out = await run_once(environment, project, program, "run", "--format", "json", prompt="SAY=Remember the marmot.")
    native = next(id for line in out.splitlines() if (id := json.loads(line).get("sessionID")))
    file = project / "one.txt"
    file.write_text("first line\n")
    prompt = f"SCENARIO=read FILE={file}"
    await run_once(environment, project, program, "run", "--format", "json", "--session", native, prompt=prompt)
    async with running(tmp_path / "home", environment) as product:
        session = await import_it(product, agent, native, project)
        async with await product.client() as client:
            page = await client.call("session.history", session=session, limit=500)
            (tool,) = [one["event"] for one in page["events"] if one["event"]["type"] == "tool.completed"]
            assert "first line" in json.dumps(tool["data"]["content"])
            (said,) = await go_on(client, session, native, "SCENARIO=recall")
            assert "Remember the marmot." in json.dumps(said)
        code, out, err = await product.cli("verify", session)
        assert code == 0, f"{out}\n{err}"
    assert processes.marked("HOME", str(tmp_path / "home")) == [], "a server outlives the import"
