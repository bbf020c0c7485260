"""A model API in trouble, turns that start by themselves, and an agent that tries to approve itself."""

import sys
from pathlib import Path

import pytest
from tests.live.test_product import assert_clean, start_session

from trunkline_testkit.product import Client, Product

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


async def test_trouble_of_an_agent_and_one_that_approves_itself(product: Product, project: Path) -> None:
    """One instance for all; what kills a part of it comes last."""
    await the_model_api_is_overloaded_and_the_turn_is_interrupted(product, project)
    await a_background_task_starts_a_turn_by_itself(product, project)
    await an_agent_does_not_approve_itself(product, project)
    await an_agent_that_lost_the_conversation_goes_on_in_a_new_one(product, project)
    await assert_clean(product)


async def the_model_api_is_overloaded_and_the_turn_is_interrupted(product: Product, project: Path) -> None:
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


async def a_background_task_starts_a_turn_by_itself(product: Product, project: Path) -> None:
    async with await product.client() as client:
        session = await start_session(client, project)
        await client.call("session.prompt", session=session, text="SCENARIO=bgtask CMD=true")
        first = await client.wait("turn.completed", within=60)
        assert first["data"].get("trigger", "prompt") == "prompt"
        second = await client.wait("turn.completed", within=60, count=2)
        assert second["data"]["trigger"] == "background"
        assert (await client.call("session.get", session=session))["state"]["status"] == "idle"


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


async def an_agent_does_not_approve_itself(product: Product, project: Path) -> None:
    """A tool call, approved by a person, waits for a second ask of another session and tries to approve it."""
    async with await product.client() as client:
        attacker = await start_session(client, project)
        victim = await start_session(client, project)
        for number, way in enumerate(WAYS, 1):
            directory = project / str(number)
            directory.mkdir()
            await attack_by(product, client, directory, attacker, victim, way, number)


async def attack_by(
    product: Product, client: Client, folder: Path, attacker: str, victim: str, way: str, number: int
) -> None:
    """The `number`th turn of both."""
    script, made = folder / "attack.sh", folder / "approved-by-an-agent"
    await client.call("session.prompt", session=victim, text=f"SCENARIO=bash CMD=touch {made}")
    asked = await client.wait("permission.requested", session=victim, count=number)

    approve = f"{sys.executable} -m trunkline_cli approve {asked['data']['ask']}"
    command = WAYS[way].format(
        approve=approve, home=product.trunkline_home, gateway=product.state["gateway"], user_home=product.home
    )
    script.write_text(
        f"ASK={asked['data']['ask']}\nexport DONE={folder}/done TRUNKLINE_HOME={product.trunkline_home}\n{command}\necho tried\n"
    )
    await client.call("session.prompt", session=attacker, text=f"SCENARIO=bash CMD=sh {script} > {folder}/out 2>&1")
    attack = await client.wait("permission.requested", session=attacker, count=number)
    await client.call("ask.answer", ask=attack["data"]["ask"], behaviour="allow")
    await client.wait("turn.completed", session=attacker, within=60, count=number)

    assert "agent_forbidden" in (folder / "out").read_text(), way
    assert len(client.events("ask.decided", victim)) == number - 1, way
    assert not made.exists(), way
    await client.call("ask.answer", ask=asked["data"]["ask"], behaviour="deny", message="no")
    await client.wait("turn.completed", session=victim, count=number)


async def an_agent_that_lost_the_conversation_goes_on_in_a_new_one(product: Product, project: Path) -> None:
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
