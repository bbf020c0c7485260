"""An agent's own terminal joins a session on a server that runs by itself: what is said in one is seen in the other, once.

`session.get` names the command (`attach`); a person runs it as it is.
"""

import shlex
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.live.codex_bench import app_server
from tests.live.opencode_server import PASSWORD, Server
from tests.live.own_screen import keys, run, screen, type_in
from tests.live.test_hand_over import texts

from trunkline_testkit import eventually, processes
from trunkline_testkit.agents import require
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.offline import offline_env
from trunkline_testkit.product import Client, running

pytestmark = [pytest.mark.live, pytest.mark.matrix, pytest.mark.timeout(1200)]

PATIENCE = 180.0
DIALOG = {"codex": "Would you like to run", "kilo": "Permission required", "opencode": "Permission required"}
"""What each terminal shows where it asks whether a command may run; Enter is its yes."""


@asynccontextmanager
async def serving(agent: str, source: dict[str, str], project: Path, folder: Path) -> AsyncGenerator[dict[str, Any]]:
    """The options of a session on a server of the agent's that runs by itself."""
    if agent == "codex":
        address = f"unix://{folder / 's'}"
        async with app_server(require(agent), source, project, "--listen", address):
            yield {"mode": "untrusted", "native": {"server": address}}
        return
    server = Server(source, project, agent)
    await server.start()
    try:
        file = folder / "password"
        file.write_text(PASSWORD)
        yield {"native": {"server": server.url, "password_file": str(file)}}
    finally:
        await server.stop()


@asynccontextmanager
async def joined(attach: str, source: dict[str, str], project: Path, folder: Path) -> AsyncGenerator[list[str]]:
    """A tmux in which somebody has run the command: the words by which it is asked."""
    server = ["tmux", "-S", str(folder / "t")]
    own = [f"{name}={value}" for name, value in source.items()]
    size = ["-x", "160", "-y", "50", "-s", "agent", "-c", str(project)]
    await run("env", "-i", *own, *server, "-f", "/dev/null", "new-session", "-d", *size, f"sh -c {shlex.quote(attach)}")
    try:
        yield server
    finally:
        await run(*server, "kill-server")


@pytest.mark.parametrize("agent", ["codex", "kilo", "opencode"])
async def test_a_terminal_joins_a_session(agent: str, tmp_path: Path, project: Path, api: ScriptedApi) -> None:
    home = tmp_path / "home"
    require(agent)
    source = offline_env(agent, home, api.url)
    with tempfile.TemporaryDirectory(prefix="tl") as short:  # for the paths of unix sockets
        async with serving(agent, source, project, Path(short)) as options, running(home, source) as product:
            async with await product.client() as client:
                adapter: dict[str, Any] = (
                    {"adapter": "codex"} if agent == "codex" else {"adapter": "opencode", "agent": agent}
                )
                created = await client.call("session.create", cwd=str(project), options=options, **adapter)
                session: str = created["session"]
                await client.subscribe(session, start="start")
                await client.call("session.prompt", session=session, text="SAY=before it joins.")
                await client.wait("turn.completed", within=PATIENCE)
                attach = (await client.call("session.get", session=session))["state"]["attach"]
                async with joined(attach, source, project, Path(short)) as terminal:
                    await both_ways(client, session, terminal, DIALOG[agent], project)
            code, out, err = await product.cli("verify", session)
            assert code == 0, f"{out}\n{err}"
    await processes.assert_no_orphans("HOME", str(home))


async def both_ways(client: Client, session: str, terminal: list[str], dialog: str, project: Path) -> None:
    async def shows(text: str, times: int = 1) -> None:
        async def there() -> bool:
            now = await screen(terminal)
            assert now.count(text) >= times, now
            return True

        await eventually(there, PATIENCE)

    async def dialog_gone() -> bool:
        return dialog not in await screen(terminal)

    await shows("before it joins.", 2)
    await type_in(terminal, "SAY=typed by hand.", PATIENCE)
    await client.wait("turn.completed", within=PATIENCE, count=2)
    await client.call("session.prompt", session=session, text="SAY=sent from afar.")
    await client.wait("turn.completed", within=PATIENCE, count=3)
    await shows("sent from afar.", 2)

    # asked in both, answered from afar
    await type_in(terminal, "SCENARIO=bash CMD=touch from-afar", PATIENCE)
    asked = await client.wait("permission.requested", within=PATIENCE)
    await shows(dialog)
    await client.call("ask.answer", ask=asked["data"]["ask"], behaviour="allow")
    await client.wait("turn.completed", within=PATIENCE, count=4)
    await eventually(dialog_gone, PATIENCE)
    assert (project / "from-afar").exists()

    # asked in both, answered by hand
    await client.call("session.prompt", session=session, text="SCENARIO=bash CMD=touch by-hand")
    asked = await client.wait("permission.requested", within=PATIENCE, count=2)
    await shows(dialog)
    await keys(terminal, "Enter")
    gone = await client.wait("ask.withdrawn", within=PATIENCE)
    assert (gone["data"]["ask"], gone["data"]["why"]) == (asked["data"]["ask"], "answered_elsewhere")
    await client.wait("turn.completed", within=PATIENCE, count=5)
    assert (project / "by-hand").exists()

    said = ["before it joins.", "typed by hand.", "sent from afar."]
    commands = [f"SCENARIO=bash CMD=touch {name}" for name in ("from-afar", "by-hand")]
    assert texts(client, session, "message.user") == [*(f"SAY={one}" for one in said), *commands]
    answers = texts(client, session, "message.assistant")
    assert [one for one in answers if "The tool said" not in one and one in said] == said
    assert len([one for one in answers if "The tool said" in one]) == 2
