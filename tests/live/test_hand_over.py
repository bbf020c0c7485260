"""A real session goes from its agent's protocol into the agent's own terminal and back, with its conversation intact."""

import json
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.live.own_screen import screen, type_in

from trunkline_testkit import eventually
from trunkline_testkit.agents import require
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.offline import KEY, offline_env
from trunkline_testkit.product import Client, Product, running

pytestmark = [pytest.mark.live, pytest.mark.timeout(1200)]

PATIENCE = 180.0


def begun_before(home: Path, project: Path) -> None:
    """Claude Code's user has been through its first start and trusts the project."""
    known = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [KEY], "rejected": []},
        "projects": {str(project): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
    }
    (home / ".claude.json").write_text(json.dumps(known))


def never_begun(home: Path, project: Path) -> None:
    """Codex has not offered another model yet, and the project, which has settings of its own, was never trusted."""
    (project / ".codex").mkdir()
    (project / ".codex" / "config.toml").write_text('model = "gpt-5.5"\n')
    file = home / ".codex" / "config.toml"
    usual, _, _ = file.read_text().partition("[notice.")
    asking = [line for line in usual.splitlines() if not line.startswith(("approval_policy", "sandbox_mode"))]
    file.write_text("\n".join(asking))


def as_it_is(home: Path, project: Path) -> None:
    """Nothing but its settings for the scripted model."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """`prepare` gets its home, with the settings for the scripted model, and the project. `asked`: which option of each dialog is taken
    that its terminal begins with.
    """

    adapter: str
    agent: str
    prepare: Callable[[Path, Path], None] = as_it_is
    asked: dict[str, str] = {}


CASES = {
    "claude": Case(adapter="claude", agent="claude", prepare=begun_before),
    "codex": Case(adapter="codex", agent="codex"),
    "codex-first": Case(adapter="codex", agent="codex", prepare=never_begun, asked={"trust": "yes", "model": "old"}),
    "gemini": Case(adapter="acp", agent="gemini"),
    "kilo": Case(adapter="opencode", agent="kilo"),
    "opencode": Case(adapter="opencode", agent="opencode"),
}


@asynccontextmanager
async def product_with(case: Case, api: ScriptedApi, home: Path, project: Path) -> AsyncGenerator[Product]:
    require(case.agent)
    environment = offline_env(case.agent, home, api.url)
    case.prepare(home, project)
    # The path of a unix socket is short.
    with tempfile.TemporaryDirectory(prefix="tl") as temporary:
        async with running(home, environment | {"TMPDIR": temporary}) as product:
            yield product


def texts(client: Client, session: str, type_: str) -> list[str]:
    found = ["".join(b.get("text", "") for b in e["data"]["content"]) for e in client.events(type_, session)]
    return [text.strip() for text in found if text.strip()]


async def answer_dialogs(client: Client, wanted: dict[str, str]) -> None:
    """Answers what the terminal asks at its start, by its name, until nothing is left of that."""
    left = dict(wanted)
    while left:
        asked = await client.wait("permission.requested", lambda e: e["data"]["name"] in left, within=PATIENCE)
        option = left.pop(asked["data"]["name"])
        behaviour = next(o["kind"] for o in asked["data"]["options"] if o["id"] == option).partition("_")[0]
        answered = {"allow": "allow", "reject": "deny"}[behaviour]
        await client.call("ask.answer", ask=asked["data"]["ask"], behaviour=answered, option=option)


MATRIX = [pytest.param(name, marks=pytest.mark.matrix) for name in CASES if name != "claude"]


@pytest.mark.parametrize("name", [pytest.param("claude", marks=pytest.mark.long), *MATRIX])
async def test_structured_terminal_structured(name: str, tmp_path: Path, project: Path, api: ScriptedApi) -> None:
    case = CASES[name]
    async with product_with(case, api, tmp_path / "home", project) as product:
        await there_and_back(product, case, project, api)


async def there_and_back(product: Product, case: Case, project: Path, api: ScriptedApi) -> None:
    async with await product.client() as client:
        named: dict[str, Any] = {} if case.agent == case.adapter else {"agent": case.agent}
        created = await client.call("session.create", adapter=case.adapter, cwd=str(project), **named)
        session: str = created["session"]
        await client.subscribe(session, start="start")
        await client.call("session.prompt", session=session, text="SAY=first answer.")
        await client.wait("turn.completed", within=PATIENCE)

        code, out, err = await product.cli("hand-over", session, "--to", "terminal", within=PATIENCE)
        assert code == 0, err
        attach = (await client.call("session.get", session=session))["state"]["attach"]
        assert out == f"{session} is in its terminal; attach with:\n{attach}\n"
        await answer_dialogs(client, case.asked)
        # from anywhere
        await client.call("session.prompt", session=session, text="SAY=second answer.")
        await client.wait("turn.completed", within=PATIENCE, count=2)
        # a worker that dies leaves the terminal as it is, and the next one takes it up
        dead = product.kill("adapters")
        await product.restarted("adapters", dead)
        await client.wait("session.resumed", lambda e: e["data"]["how"] == "adopted", within=PATIENCE)
        # by the hands of somebody who has attached
        await type_in(attach.split()[:3], "SAY=third answer.", PATIENCE)

        async def answered() -> bool:
            # Of so short a turn the screen shows no work: what was said is told once the terminal has ended.
            return (await screen(attach.split()[:3])).count("third answer.") >= 2

        await eventually(answered, PATIENCE)

        code, out, err = await product.cli("hand-over", session, "--to", "structured", within=PATIENCE)
        assert (code, out) == (0, f"{session} is taken back\n"), err
        await client.call("session.prompt", session=session, text="SAY=fourth answer.")
        await client.wait("message.assistant", lambda e: "fourth answer." in str(e["data"]), within=PATIENCE)

        answers = ["first answer.", "second answer.", "third answer.", "fourth answer."]
        assert texts(client, session, "message.assistant") == answers
        assert sorted(texts(client, session, "message.user")) == sorted(f"SAY={answer}" for answer in answers)
    last = next(one for one in reversed(api.requests) if one.kind == "prompt")
    assert (*last.earlier, last.prompt) == tuple(f"SAY={answer}" for answer in answers)
    code, out, err = await product.cli("verify", session)
    assert code == 0, f"{out}\n{err}"
