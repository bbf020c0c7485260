"""A model API in trouble, turns that start by themselves, and an agent that tries to approve itself."""

import sys
from pathlib import Path

import pytest
from tests.live.test_product import assert_clean, start_session

from trunkline_testkit.product import Product

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


async def test_the_model_api_is_overloaded_and_the_turn_is_interrupted(product: Product, project: Path) -> None:
    async with await product.client() as client:
        session = await start_session(client, project)
        await client.call("session.prompt", session=session, text="SCENARIO=err529")
        retrying = await client.wait("session.status", lambda e: e["data"].get("status") == "retrying", within=60)
        assert retrying["data"]["attempt"] >= 1
        assert (await client.call("session.get", session=session))["state"]["status"] == "retrying"
        await client.call("session.interrupt", session=session)
        ended = await client.wait("turn.completed", within=60)
        assert ended["data"]["outcome"] == "interrupted"
        assert (await client.call("session.get", session=session))["state"]["status"] == "idle"
    await assert_clean(product, session)


async def test_a_background_task_starts_a_turn_by_itself(product: Product, project: Path) -> None:
    async with await product.client() as client:
        session = await start_session(client, project)
        await client.call("session.prompt", session=session, text="SCENARIO=bgtask CMD=true")
        first = await client.wait("turn.completed", within=60)
        assert first["data"].get("trigger", "prompt") == "prompt"
        second = await client.wait("turn.completed", within=60, count=2)
        assert second["data"]["trigger"] == "background"
        assert (await client.call("session.get", session=session))["state"]["status"] == "idle"
    await assert_clean(product, session)


WAYS = {
    "direct child": "{approve}",
    "setsid": "setsid --wait {approve}",
    "double fork": "sh -c '(({approve}; touch $DONE) &); while [ ! -e $DONE ]; do sleep 0.1; done'",
    "curl with the token file": (
        'curl -s -X POST -H "Authorization: Bearer $(cat {home}/token)" -H "Content-Type: application/json"'
        ' -d "{{\\"ask\\": \\"$ASK\\", \\"behaviour\\": \\"allow\\"}}" {gateway}/api/v1/ask.answer'
    ),
    "without its environment": "env -i HOME={user_home} TRUNKLINE_HOME={home} PATH=$PATH setsid --wait {approve}",
}


async def test_an_agent_does_not_approve_itself(product: Product, project: Path) -> None:
    """A first tool call, approved by a person, waits for a second ask of another session and tries to approve it."""
    for number, way in enumerate(WAYS):
        directory = project / str(number)
        directory.mkdir()
        await attack_by(product, directory, way)


async def attack_by(product: Product, project: Path, way: str) -> None:
    script = project / "attack.sh"
    async with await product.client() as client:
        attacker = await start_session(client, project)
        victim = await start_session(client, project)
        made = project / "approved-by-an-agent"
        await client.call("session.prompt", session=victim, text=f"SCENARIO=bash CMD=touch {made}")
        asked = await client.wait("permission.requested", session=victim)

        approve = f"{sys.executable} -m trunkline_cli approve {asked['data']['ask']}"
        command = WAYS[way].format(
            approve=approve, home=product.trunkline_home, gateway=product.state["gateway"], user_home=product.home
        )
        script.write_text(
            f"ASK={asked['data']['ask']}\nexport DONE={project}/done TRUNKLINE_HOME={product.trunkline_home}\n{command}\necho tried\n"
        )
        await client.call(
            "session.prompt", session=attacker, text=f"SCENARIO=bash CMD=sh {script} > {project}/out 2>&1"
        )
        attack = await client.wait("permission.requested", session=attacker)
        await client.call("ask.answer", ask=attack["data"]["ask"], behaviour="allow")
        await client.wait("turn.completed", session=attacker, within=60)

        assert "agent_forbidden" in (project / "out").read_text(), way
        assert client.events("ask.decided", victim) == [], way
        assert not made.exists(), way
        await client.call("ask.answer", ask=asked["data"]["ask"], behaviour="deny", message="no")
        await client.wait("turn.completed", session=victim)


async def test_an_agent_that_lost_the_conversation_goes_on_in_a_new_one(product: Product, project: Path) -> None:
    """The CLI saves with a delay: what is killed before it did can't be resumed by its id."""
    async with await product.client() as client:
        session = await start_session(client, project)
        await client.call("session.prompt", session=session, text="SAY=one")
        await client.wait("turn.completed")
        native = (await client.wait("session.initialized"))["data"]["native_session"]
        old = product.kill("adapters")
        await product.restarted("adapters", old)
        (saved,) = product.home.rglob(f"{native}.jsonl")
        saved.unlink()

        await client.call("session.prompt", session=session, text="SAY=two")
        lost = await client.wait("error")
        assert (lost["data"]["code"], lost["data"].get("recoverable", True)) == ("history_lost", True)
        await client.wait("turn.completed", count=2)
        again = (await client.wait("session.initialized", count=2))["data"]["native_session"]
        assert again != native
        state = (await client.call("session.get", session=session))["state"]
        assert (state["native_session"], state["turns"]) == (again, 2)
    await assert_clean(product, session)
