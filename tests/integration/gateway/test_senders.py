"""Webhook and notifier: they tell of an ask, its link decides it, and they go on where they were."""

import asyncio
import hashlib
import hmac
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from tests.integration.gateway.receiver import Receiver, receiving
from tests.integration.gateway.rig import Rig, ask, begin_turn, end_turn

from trunkline_bus import direct
from trunkline_bus.tasks import end
from trunkline_extensions.notify.app import NotifyConfig
from trunkline_extensions.notify.app import opened as notifier
from trunkline_extensions.place import Place
from trunkline_extensions.run import serve
from trunkline_extensions.webhook.app import WebhookConfig
from trunkline_extensions.webhook.app import opened as webhook
from trunkline_testkit import eventually
from trunkline_wire import subjects

SECRET = "a secret of the test"


def configure(rig: Rig, text: str) -> Place:
    (rig.home / "trunkline.toml").write_text(text)
    return Place(home=rig.home, nats_url=rig.server.url, gateway=rig.running.url)


@asynccontextmanager
async def running(name: str, place: Place, config: Any, opened: Any) -> AsyncGenerator[None]:
    task = asyncio.ensure_future(serve(name, place, config, opened))
    cursor = Path(place.home) / "extensions" / f"{name}.cursor"
    try:
        await eventually(lambda: task.done() or cursor.exists())
        if task.done():
            task.result()
        yield
    finally:
        await end(task)


async def post(rig: Rig, path: str, **body: Any) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as http, http.post(f"{rig.running.url}{path}", json=body) as answer:
        return answer.status, msgspec.json.decode(await answer.read())


async def decided_by(rig: Rig, link: str, ask_id: str, by: str) -> None:
    """Open a link as a browser would: look, then decide, once."""
    async with aiohttp.ClientSession() as http, http.get(link.partition("#")[0]) as page:
        assert (page.status, page.content_type) == (200, "text/html")
    code = link.partition("#code=")[2]
    status, shown = await post(rig, "/a/look", code=code)
    assert (status, shown["name"], shown["input"], shown["status"]) == (200, "Bash", '{"command":"ls"}', "open")
    status, problem = await post(rig, "/a/decide", code=code + "x", behaviour="allow")
    assert (status, problem["code"]) == (401, "unauthorized")
    status, outcome = await post(rig, "/a/decide", code=code, behaviour="allow")
    assert (status, outcome["outcome"]) == (200, "decided")
    record = rig.running.gateway.directory.ask(ask_id)
    assert record is not None
    assert record.decision is not None
    assert (record.decision.behaviour, record.decision.by) == ("allow", by)
    status, problem = await post(rig, "/a/decide", code=code, behaviour="deny")
    assert (status, problem["code"]) == (401, "unauthorized")


async def test_a_webhook_gets_an_ask_and_its_link_approves_it(rig: Rig) -> None:
    await rig.decide_asks()
    writer = await rig.session()
    await rig.settled(writer)
    async with receiving() as receiver:
        place = configure(
            rig,
            f'[extensions.webhook]\nurl = "{receiver.url}/hook"\nsecret = "{SECRET}"\nactor = "amy"\nlongest_pause = 0.1\n',
        )
        receiver.answers = [503]
        async with running("webhook", place, WebhookConfig, webhook):
            turn = begin_turn(writer)
            asked = ask(writer, "one", turn)
            await eventually(lambda: len(receiver.posts) >= 2)
        headers, body = receiver.posts[1]
        assert receiver.posts[0][1] == body
        found = re.fullmatch(r"t=(\d+),v1=([0-9a-f]{64})", headers["Trunkline-Signature"])
        assert found is not None
        assert found[2] == hmac.new(SECRET.encode(), f"{found[1]}.".encode() + body, hashlib.sha256).hexdigest()
        told = receiver.bodies[1]
        assert (told["event"]["type"], told["event"]["data"]["ask"]) == ("permission.requested", asked)
        assert headers["Trunkline-Delivery"] == told["id"] == told["event"]["id"]
        await decided_by(rig, told["link"], asked, "ext:webhook/amy")
        await goes_on(rig, writer, turn, place, receiver)
    await writer.close()


async def goes_on(rig: Rig, writer: Any, turn: str, place: Place, receiver: Receiver) -> None:
    """What happens while it is away comes when it is back, and nothing before it again."""
    end_turn(writer, turn)
    await rig.settled(writer)
    before = len(receiver.posts)
    receiver.answers = [410]
    async with running("webhook", place, WebhookConfig, webhook):
        await eventually(lambda: len(receiver.posts) > before)
        assert [told["event"]["type"] for told in receiver.bodies[before:]] == ["turn.completed"]
        # The receiver wants none of it: a dead letter.
        letter = await eventually(lambda: direct.last(rig.bus, subjects.DEADLETTER, "trunk.dlq.ext-webhook"))
        assert msgspec.json.decode(letter.raw)["session"] == writer.session


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")  # Apprise imports it
async def test_a_notification_of_ntfys_form_has_a_link_that_approves(rig: Rig) -> None:
    await rig.decide_asks()
    writer = await rig.session()
    await rig.settled(writer)
    async with receiving() as receiver:
        place = configure(
            rig,
            f'[extensions.notify]\nurls = ["ntfy://127.0.0.1:{receiver.port}/mine"]\nactor = "amy"\nlongest_pause = 0.1\n',
        )
        async with running("notify", place, NotifyConfig, notifier):
            asked = ask(writer, "one", begin_turn(writer))
            await eventually(lambda: receiver.posts)
        told = receiver.bodies[0]
        assert told["topic"] == "mine"
        assert told["title"].startswith("Bash? ")
        link = told["message"].splitlines()[-1]
        assert link.startswith(f"{rig.running.url}/a/{asked}#code=")
        await decided_by(rig, link, asked, "ext:notify/amy")
    await writer.close()
