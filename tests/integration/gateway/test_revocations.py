"""A device that is revoked leaves nothing that lets anyone in: no token, no device, no link of its making, whatever comes between."""

import base64
import contextlib
import os
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest
from tests.integration.gateway.rig import Rig, ask

from trunkline_gateway.app import Running
from trunkline_gateway.tokens import digest_of
from trunkline_testkit import eventually
from trunkline_testkit.product import Client
from trunkline_wire import TrunklineError


async def outcome(client: Client, method: str, **params: Any) -> str:
    """The code that a call is refused with."""
    with pytest.raises(TrunklineError) as refused:
        await client.call(method, **params)
    return refused.value.code


async def test_a_revocation_that_broke_off_can_be_said_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async with await rig.client() as owner:
        paired = await paired_by(owner)
        with monkeypatch.context() as away:
            away.setattr(rig.running.gateway.devices.records, "delete", refuse)
            assert await outcome(owner, "device.revoke", id=paired["id"]) == "log_unavailable"
        assert [device["id"] for device in (await owner.call("device.list"))["devices"]] == [paired["id"]]
        async with await rig.client(token=paired["token"]) as phone:
            await owner.call("device.revoke", id=paired["id"])
            await eventually(lambda: phone.closed)


async def test_a_token_that_could_not_be_deleted_counts_no_more_and_goes_later(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await rig.client() as owner:
        paired = await paired_by(owner)
        async with await rig.client(token=paired["token"]) as phone:
            with monkeypatch.context() as away:
                away.setattr(rig.running.gateway.tokens.records, "delete", refuse)
                await owner.call("device.revoke", id=paired["id"])
            await eventually(lambda: phone.closed)
        await refused_everywhere(rig, [paired["token"]])
        assert [token["actor"] for token in (await owner.call("token.list"))["tokens"]] == ["owner"]
    assert len(rig.running.gateway.tokens.records.known) == 2
    await rig.restart_gateway()
    await refused_everywhere(rig, [paired["token"]])
    await eventually(lambda: len(rig.running.gateway.tokens.records.known) == 1)


async def test_all_that_a_device_has_made_ends_with_it_at_once_and_for_good(rig: Rig) -> None:
    async with await rig.client() as owner, rig.another() as second:
        own = await owner.call("token.create", actor="ci", role="viewer")
        stays = await paired_by(owner, role="viewer")
        phone = await paired_by(owner)
        async with await rig.client(token=phone["token"]) as client:
            child = await client.call("token.create", actor="bob", role="owner")
            browser = await signed_in(rig, await client.call("sign_in.link", actor="eve", role="owner"), key=key_of(20))
            keyless = await signed_in(rig, await client.call("sign_in.link", actor="eve", role="viewer"))
            tablet = await paired_by(client, owner)
            unused = await client.call("sign_in.link", actor="eve", role="owner")
            wanted = await wanted_of(client)
        async with await rig.client(token=child["token"]) as client:
            grandchild = await client.call("token.create", actor="bob", role="owner")
        async with await rig.client(token=tablet["token"]) as client:
            watch = await paired_by(client, client)
            of_tablet = await client.call("token.create", actor="dan", role="viewer")
        made = [
            child["token"],
            browser,
            keyless,
            tablet["token"],
            grandchild["token"],
            watch["token"],
            of_tablet["token"],
        ]
        listed = {token["id"]: token for token in (await owner.call("token.list"))["tokens"]}
        assert [listed[one["id"]].get("parent") for one in (own, child, grandchild, of_tablet)] == [
            None,
            phone["id"],
            phone["id"],
            tablet["id"],
        ]
        devices = {device["id"]: device.get("parent") for device in (await owner.call("device.list"))["devices"]}
        (signed,) = devices.keys() - {stays["id"], phone["id"], tablet["id"], watch["id"]}
        assert devices == {
            stays["id"]: None,
            phone["id"]: None,
            signed: phone["id"],
            tablet["id"]: phone["id"],
            watch["id"]: tablet["id"],
        }
        async with AsyncExitStack() as stack:
            clients = [
                await stack.enter_async_context(await at(running, token))
                for token in made
                for running in (rig.running, second)
            ]
            others = [await stack.enter_async_context(await at(second, one["token"])) for one in (own, stays)]
            gone = await owner.call("device.revoke", id=phone["id"])
            assert set(gone["devices"]) == {signed, tablet["id"], watch["id"]}
            assert len(gone["tokens"]) == 1 + len(made)
            await eventually(lambda: all(one.closed for one in clients))
            assert not any(one.closed for one in others)
        await refused_everywhere(rig, made, second)
        assert await redeem(rig, unused["code"]) == (401, "")
        assert await outcome(owner, "device.pair", **wanted) == "bad_pairing"
        assert [device["id"] for device in (await owner.call("device.list"))["devices"]] == [stays["id"]]
        await eventually(lambda: set(second.gateway.devices.records.known) == {stays["id"]})
    await rig.restart_gateway()
    await refused_everywhere(rig, made)
    assert set(rig.running.gateway.devices.records.known) == {stays["id"]}
    for one in (own, stays):
        async with await rig.client(token=one["token"]):
            pass


async def test_what_comes_after_the_revocation_is_of_no_use_and_is_forgotten(rig: Rig) -> None:
    """A call of the device's that was under way, at this gateway or another one."""
    gateway = rig.running.gateway
    async with await rig.client() as owner:
        phone = await paired_by(owner)
        await owner.call("device.revoke", id=phone["id"])
        await eventually(lambda: phone["id"] not in gateway.devices.records.known)
        late = await gateway.devices.register("ann", "late", key_of(21), parent=phone["id"])
        token, record = await gateway.tokens.create("ann", "owner", parent=phone["id"])
        own, _ = await gateway.tokens.create("ann", "owner", device=late.id)
        await refused_everywhere(rig, [token, own])
        assert late.id not in [device["id"] for device in (await owner.call("device.list"))["devices"]]
        assert record.id not in [one["id"] for one in (await owner.call("token.list"))["tokens"]]
    await rig.restart_gateway()
    assert late.id in gateway.devices.records.known
    await eventually(lambda: not rig.running.gateway.devices.records.known)
    await eventually(lambda: len(rig.running.gateway.tokens.records.known) == 1)


async def test_a_device_that_was_not_heard_of_yet_loses_nothing(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = rig.running.gateway
    async with await rig.client() as owner:
        phone = await paired_by(owner)

        def unknown(_: str | None) -> bool:
            return False

        with monkeypatch.context() as behind:
            behind.setattr(gateway.devices, "stands", unknown)
            await refused_everywhere(rig, [phone["token"]])
            await gateway.devices.forget_orphans()
            await gateway.tokens.forget_expired()
        async with await rig.client(token=phone["token"]):
            pass


async def test_a_device_that_leaves_tidies_up_though_its_own_connection_ends_with_it(rig: Rig) -> None:
    gateway = rig.running.gateway
    async with await rig.client() as owner:
        phone = await paired_by(owner)
        async with await rig.client(token=phone["token"]) as client:
            for _ in range(5):
                await client.call("token.create", actor="bob", role="viewer")
            with contextlib.suppress(ConnectionError):  # its answer may come first
                await client.call("device.revoke", id=phone["id"])
            await eventually(lambda: client.closed)
        await eventually(lambda: len(gateway.tokens.records.known) == 1)


async def test_who_is_paired_by_a_device_that_is_revoked_meanwhile_is_not_there(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = rig.running.gateway
    async with await rig.client() as owner:
        phone = await paired_by(owner)
        async with await rig.client(token=phone["token"]) as client:
            wanted = await wanted_of(client)
        create = gateway.tokens.create

        async def late(*args: Any, **more: Any) -> Any:
            await owner.call("device.revoke", id=phone["id"])
            return await create(*args, **more)

        monkeypatch.setattr(gateway.tokens, "create", late)
        assert await outcome(owner, "device.pair", **wanted) == "bad_pairing"
        await eventually(lambda: not gateway.devices.records.known)
        await eventually(lambda: len(gateway.tokens.records.known) == 1)


async def test_a_link_that_decides_ends_with_the_device_that_made_it(rig: Rig) -> None:
    writer = await rig.session()
    asked = ask(writer, "one")
    await rig.settled(writer)
    async with await rig.client() as owner, aiohttp.ClientSession() as browser:
        phone = await paired_by(owner, role="approver")
        async with await rig.client(token=phone["token"]) as client:
            link = await client.call("ask.link", ask=asked, session=writer.session)

        async def post(path: str, **more: str) -> int:
            body = {"code": link["code"], **more}
            async with browser.post(f"{rig.running.url}/a/{path}", json=body) as answer:
                return answer.status

        assert await post("look") == 200
        await owner.call("device.revoke", id=phone["id"])
        await eventually(lambda: phone["id"] not in rig.running.gateway.devices.records.known)
        assert (await post("look"), await post("decide", behaviour="allow")) == (401, 401)
    await writer.close()


async def test_a_device_that_is_revoked_while_it_is_paired_gets_no_token(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await rig.client() as owner:
        tokens = rig.running.gateway.tokens
        create = tokens.create

        async def late(*args: Any, device: str, **wanted: Any) -> Any:
            await owner.call("device.revoke", id=device)
            return await create(*args, device=device, **wanted)

        wanted = await wanted_of(owner)
        monkeypatch.setattr(tokens, "create", late)
        assert await outcome(owner, "device.pair", **wanted) == "bad_pairing"
        await eventually(lambda: not [token for token in tokens.list() if token.via == "pairing"])


def key_of(number: int) -> str:
    return base64.b64encode(bytes([number]) * 32).decode()


async def wanted_of(inviting: Client, role: str = "owner") -> dict[str, Any]:
    """What `device.pair` wants, of a device with keys of its own."""
    invited = await inviting.call("device.invite", actor="ann", role=role)
    keys = {name: base64.b64encode(os.urandom(32)).decode() for name in ("key", "route", "identity")}
    return {"name": "phone", "invitation": invited["invitation"], **keys}


async def paired_by(inviting: Client, pairing: Client | None = None, role: str = "owner") -> dict[str, Any]:
    return await (pairing or inviting).call("device.pair", **await wanted_of(inviting, role))


async def redeem(rig: Rig, code: str, key: str | None = None) -> tuple[int, str]:
    """How a browser fares with a sign-in link: the status, and the token in its cookie."""
    body = {"code": code, **({"key": key} if key else {})}
    async with (
        aiohttp.ClientSession() as browser,
        browser.post(f"{rig.running.url}/sign-in", json=body, headers={"Origin": rig.running.url}) as answer,
    ):
        return answer.status, next((cookie.value for cookie in answer.cookies.values()), "")


async def signed_in(rig: Rig, link: dict[str, Any], key: str | None = None) -> str:
    status, token = await redeem(rig, link["code"], key)
    assert status == 200
    return token


async def at(running: Running, token: str) -> Client:
    """At a gateway that may hear of the token a moment later."""
    tokens = running.gateway.tokens
    await eventually(lambda: tokens.stands(digest_of(token)[:32]))
    return await Client.connect(running.url, headers={"Authorization": f"Bearer {token}"})


async def refused_everywhere(rig: Rig, tokens: list[str], *others: Running) -> None:
    for running in (rig.running, *others):
        for token in tokens:
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await Client.connect(running.url, headers={"Authorization": f"Bearer {token}"})
            assert refused.value.status == 401


async def refuse(_: str) -> None:
    raise TrunklineError("log_unavailable", "NATS is away")
