"""Extensions of the running product: a configured one runs with it, one that is added comes in; each a user of its own."""

import json
from pathlib import Path

import aiohttp
import nats
import pytest
from tests.integration.gateway.receiver import Receiver, receiving

from trunkline_testkit import eventually
from trunkline_testkit.product import Product, running


@pytest.mark.slow
async def test_a_configured_one_is_started_and_an_added_one_comes_in(home: Path) -> None:
    async with receiving() as receiver:
        settings = home / ".trunkline" / "trunkline.toml"
        settings.parent.mkdir(mode=0o700)
        settings.write_text(
            f'[extensions.webhook]\nurl = "{receiver.url}"\nsecret = "0123456789abcdef"\nactor = "amy"\n'
        )
        async with running(home) as product:
            await the_configured_webhook(product, receiver)
            await an_extension_that_is_added(product)


async def the_configured_webhook(product: Product, receiver: Receiver) -> None:
    """An ask of the demo agent is approved by the link that it was told."""
    async with await product.client() as client:
        listed = (await client.call("extension.list"))["extensions"]
        assert [one["name"] for one in listed] == ["webhook"]
        session = (await client.call("session.create", adapter="demo", cwd=str(product.home)))["session"]
        await client.call("subscribe", session=session)
        await client.call("session.prompt", session=session, text="ask ls")
        await client.wait("permission.requested", session=session)
        await eventually(lambda: [one for one in receiver.bodies if one["link"]], 30)
        link = next(one["link"] for one in receiver.bodies if one["link"])
        url, _, code = link.partition("#code=")
        body = {"code": code, "behaviour": "allow"}
        where = f"{url.partition('/a/')[0]}/a/decide"
        async with aiohttp.ClientSession() as http, http.post(where, json=body) as answer:
            assert answer.status == 200
        decided = await client.wait("ask.decided", session=session)
        assert (decided["data"]["by"], decided["data"]["behaviour"]) == ("ext:webhook/amy", "allow")


async def an_extension_that_is_added(product: Product) -> None:
    """Without a restart."""
    code, printed, errors = await product.cli("extension", "add", "mybot", "--command")
    assert code == 0, errors
    given = dict(line.split("=", 1) for line in printed.splitlines())
    assert given["SERVICE_NAME"] == "ext-mybot"

    log = product.trunkline_home / "logs" / "nats-server.log"
    await eventually(lambda: "Reloaded server configuration" in log.read_text(), 30)
    connection = await nats.connect(
        given["NATS_URL"],
        nkeys_seed=given["NATS_NKEY_SEED_FILE"],
        inbox_prefix=given["NATS_INBOX_PREFIX"],
    )
    reply = await connection.request("trunk.api.mybot.participant.session.list", b"{}", timeout=10)
    assert json.loads(reply.data)["payload"]["total"] == 1
    await connection.close()
    code, printed, _ = await product.cli("extension", "list", "--json")
    rights = {one["name"]: one["rights"] for one in map(json.loads, printed.splitlines())}
    assert rights["mybot"] == ["viewer", "participant"]
    code, printed, _ = await product.cli("extension", "remove", "mybot")
    assert (code, printed) == (0, "removed mybot\n")
