"""What the real CLI has run without Trunkline, imported from its own file, and gone on with."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from trunkline_testkit.agents import claude_path
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.product import Product

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


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
