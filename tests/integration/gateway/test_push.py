"""Push notifications: one message for an ask, to the devices that may decide it, which their browsers alone can open."""

import base64
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from cryptography.exceptions import InvalidTag
from tests.integration.gateway.push_service import Browser, claims
from tests.integration.gateway.receiver import Receiver, receiving
from tests.integration.gateway.rig import Rig, ask, begin_turn
from tests.integration.gateway.test_senders import configure, running

from trunkline_bus import direct
from trunkline_extensions.client import Client as Extension
from trunkline_extensions.place import Place
from trunkline_extensions.push.app import PushConfig, opened
from trunkline_gateway.roles import EVERYTHING, Role, Scope
from trunkline_testkit import eventually
from trunkline_testkit.product import Client
from trunkline_wire import TrunklineError, subjects

CONTACT = "mailto:ops@example.org"


@asynccontextmanager
async def device(rig: Rig, actor: str, role: Role = "approver", scope: Scope = EVERYTHING) -> AsyncGenerator[Client]:
    """A connection of a browser that signed in by a link."""
    gateway = rig.running.gateway
    record = await gateway.devices.register(actor, "phone", base64.b64encode(os.urandom(32)).decode())
    token, _ = await gateway.tokens.create(actor, role, scope=scope, device=record.id, via="sign-in")
    async with await rig.client(token=token) as client:
        yield client


def place_of(rig: Rig) -> Place:
    return configure(rig, f'[extensions.push]\ncontact = "{CONTACT}"\nlocal = true\nlongest_pause = 0.1\n')


@asynccontextmanager
async def pushing(rig: Rig) -> AsyncGenerator[None]:
    async with running("push", place_of(rig), PushConfig, opened):
        yield


async def code_of(client: Client, method: str, **params: Any) -> str:
    with pytest.raises(TrunklineError) as error:
        await client.call(method, **params)
    return error.value.code


async def subscribed(rig: Rig, client: Client, browser: Browser) -> None:
    """Subscribe, and wait until the gateway knows it."""
    shown = await client.call("device.push", subscription=browser.subscription)
    assert shown["push"] is True
    known = rig.running.gateway.devices.records.known
    await eventually(lambda: known[shown["id"]].push is not None)


async def asked(rig: Rig, receiver: Receiver, native: str, count: int) -> tuple[str, str]:
    """A session with an ask, and `count` more posts for it."""
    writer = await rig.session()
    await rig.settled(writer)
    before = len(receiver.posts)
    made = ask(writer, native, begin_turn(writer))
    await rig.settled(writer)
    await eventually(lambda: len(receiver.posts) >= before + count)
    session = writer.session
    await writer.close()
    return made, session


async def test_an_ask_comes_as_one_message_that_its_browser_alone_opens(rig: Rig) -> None:
    async with (
        receiving() as receiver,
        pushing(rig),
        device(rig, "ann") as phone,
        device(rig, "bob", "viewer") as other,
    ):
        mine, theirs = Browser(receiver, "mine"), Browser(receiver, "theirs")
        await subscribed(rig, phone, mine)
        await subscribed(rig, other, theirs)
        key = (await phone.call("push.key"))["key"]
        made, session = await asked(rig, receiver, "one", 1)
        # What comes later is there once the next has come: there was no second message for the first.
        again, _ = await asked(rig, receiver, "two", 1)
        assert receiver.paths == ["/mine", "/mine"]
        (headers, body), (_, second) = receiver.posts
        assert mine.opened(body) == {
            "title": "Allow Bash?",
            "body": "hello",
            "path": f"/session/{session}",
            "ask": made,
        }
        assert mine.opened(second)["ask"] == again
        assert len(body) == len(second)
        with pytest.raises(InvalidTag):
            theirs.opened(body)
        assert not [word for word in (b"Bash", b"hello", made.encode(), session.encode(), b"title") if word in body]
        assert (headers["Content-Encoding"], headers["Urgency"]) == ("aes128gcm", "high")
        assert 0 < int(headers["TTL"]) <= 3600
        assert claims(receiver, headers["Authorization"], key)["sub"] == CONTACT


async def test_a_subscription_that_is_gone_is_forgotten_and_one_that_is_busy_tried_again(rig: Rig) -> None:
    async with receiving() as receiver, pushing(rig), device(rig, "ann") as phone:
        browser = Browser(receiver, "mine")
        await subscribed(rig, phone, browser)
        receiver.answers = [429, 503]
        made, _ = await asked(rig, receiver, "one", 3)
        assert [browser.opened(body)["ask"] for _, body in receiver.posts] == [made] * 3
        receiver.answers = [410]
        await asked(rig, receiver, "two", 1)
        (record,) = rig.running.gateway.devices.records.known.values()
        await eventually(lambda: rig.running.gateway.devices.records.known[record.id].push is None)
        assert "push" not in (await phone.call("device.list"))["devices"][0]


async def test_what_was_decided_meanwhile_is_not_sent_again(rig: Rig) -> None:
    await rig.decide_asks()
    async with receiving() as receiver, pushing(rig), device(rig, "ann") as phone, await rig.client() as owner:
        browser = Browser(receiver, "mine")
        await subscribed(rig, phone, browser)
        receiver.answers = [503]

        async def decide() -> None:
            await owner.call("ask.answer", ask=made, behaviour="allow")

        writer = await rig.session()
        await rig.settled(writer)
        receiver.meanwhile = decide
        made = ask(writer, "one", begin_turn(writer))
        await rig.settled(writer)
        await eventually(lambda: len(receiver.posts) >= 1)
        receiver.meanwhile = None
        again, _ = await asked(rig, receiver, "two", 1)
        assert [browser.opened(body)["ask"] for _, body in receiver.posts] == [made, again]
        await writer.close()


async def test_what_a_push_service_refuses_is_a_dead_letter(rig: Rig) -> None:
    async with receiving() as receiver, pushing(rig), device(rig, "ann") as phone:
        await subscribed(rig, phone, Browser(receiver, "mine"))
        receiver.answers = [403]
        await asked(rig, receiver, "one", 1)
        letter = await eventually(lambda: direct.last(rig.bus, subjects.DEADLETTER, "trunk.dlq.ext-push"))
        assert b"/mine" not in letter.raw


async def test_a_device_is_subscribed_by_itself_alone_and_revocation_ends_it(rig: Rig) -> None:
    async with receiving() as receiver, await rig.client() as owner, device(rig, "ann") as phone:
        browser = Browser(receiver, "mine")
        assert await code_of(owner, "device.push", subscription=browser.subscription) == "bad_params"
        bad = {**browser.subscription, "endpoint": "http://push.example.org/x"}
        assert await code_of(phone, "device.push", subscription=bad) == "bad_params"
        await subscribed(rig, phone, browser)
        (shown,) = (await owner.call("device.list"))["devices"]
        assert shown["push"] is True
        assert browser.endpoint not in str(shown)
        assert "push" not in await phone.call("device.push", subscription=None)
        await subscribed(rig, phone, browser)
        await owner.call("device.revoke", id=shown["id"])
        await eventually(lambda: not rig.running.gateway.devices.records.known)
        assert await targets(rig, "push") == []


async def targets(rig: Rig, name: str) -> Any:
    """Where an extension of this name learns that an ask is sent to."""
    writer = await rig.session()
    made = ask(writer, "one", begin_turn(writer))
    await rig.settled(writer)
    await writer.close()
    async with Extension(name, Place(home=rig.home, nats_url=rig.server.url)) as extension:
        return (await extension.ask("itself", "push.targets", ask=made))["targets"]


async def test_only_the_extension_that_sends_learns_where_to(rig: Rig) -> None:
    async with receiving() as receiver, await rig.client() as owner, device(rig, "ann") as phone:
        browser = Browser(receiver, "mine")
        await subscribed(rig, phone, browser)
        assert await targets(rig, "push") == [
            {"device": (await phone.call("device.list"))["devices"][0]["id"], **browser.subscription}
        ]
        with pytest.raises(TrunklineError, match="alone"):
            await targets(rig, "webhook")
        assert await code_of(owner, "push.targets", ask=f"ask_{'0' * 32}") == "forbidden"
        assert await code_of(phone, "push.gone", device=f"dev_{'0' * 32}", endpoint="x") == "forbidden"
        assert await code_of(phone, "push.key") == "unknown_extension"
