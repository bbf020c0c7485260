"""Signed answers: whose device it was is known for certain, and no signature works twice or for anything else."""

import base64
import datetime as dt
from typing import Any

import pytest
from tests.integration.gateway.rig import Rig, ask, begin_turn

from trunkline_bus.writer import SessionWriter
from trunkline_testkit.product import Client
from trunkline_wire import TrunklineError, timestamp
from trunkline_wire.signing import answer_mac

KEY = bytes(range(32))


async def signed(client: Client, device: str, ask_id: str, **other: Any) -> dict[str, Any]:
    """The parameters of an answer that `device` allows, with what is `other` about it."""
    given = await client.call("ask.nonce")
    nonce, time = other.get("nonce", given["nonce"]), other.get("time", given["time"])
    mac = answer_mac(other.get("key", KEY), other.get("signed_ask", ask_id), other.get("signed", "allow"), time, nonce)
    signature = {"device": device, "time": time, "nonce": nonce, "mac": other.get("mac", mac)}
    return {"ask": ask_id, "behaviour": "allow", "signature": signature}


async def refused(client: Client, answer: dict[str, Any]) -> str:
    with pytest.raises(TrunklineError) as error:
        await client.call("ask.answer", **answer)
    return error.value.code


async def phone(client: Client) -> str:
    made = await client.call("device.register", name="phone", key=base64.b64encode(KEY).decode())
    return str(made["id"])


async def asks(rig: Rig, writer: SessionWriter, count: int) -> list[str]:
    turn = begin_turn(writer)
    made = [ask(writer, f"t{number}", turn) for number in range(count)]
    await rig.settled(writer)
    return made


async def test_a_signed_answer_names_its_device_and_its_signature_is_kept(rig: Rig) -> None:
    await rig.decide_asks()
    async with await rig.client() as client, await rig.session() as writer:
        (one,) = await asks(rig, writer, 1)
        device = await phone(client)
        answer = await signed(client, device, one)
        assert (await client.call("ask.answer", **answer))["outcome"] == "decided"
        (given,) = rig.answers
        assert given.source is not None
        assert (given.source.device, given.source.role) == (device, "owner")
        assert given.signature is not None
        assert given.signature.mac == answer["signature"]["mac"]


async def test_signatures_that_do_not_count(rig: Rig) -> None:
    async with await rig.client() as owner, await rig.session() as writer:
        one, other = await asks(rig, writer, 2)
        bob = await owner.call("token.create", actor="bob", role="approver")
        async with await rig.client(token=bob["token"]) as client:
            mine, theirs = await phone(client), await phone(owner)
            used = await signed(client, mine, one)
            used["signature"]["mac"] = "0" * 64
            assert await refused(client, used) == "bad_signature"
            long_ago = timestamp(dt.datetime.now(dt.UTC) - dt.timedelta(seconds=31))
            cases = {
                "another key": await signed(client, mine, one, key=bytes(32)),
                "another ask": await signed(client, mine, one, signed_ask=other),
                "another behaviour": await signed(client, mine, one, signed="deny"),
                "somebody else's device": await signed(client, theirs, one),
                "no device": await signed(client, "dev_" + "0" * 32, one),
                "too old": await signed(client, mine, one, time=long_ago),
                "a nonce of its own": await signed(client, mine, one, nonce="0" * 32),
                "a nonce given to somebody else": await signed(
                    client, mine, one, nonce=(await owner.call("ask.nonce"))["nonce"]
                ),
            }
            for why, answer in cases.items():
                assert await refused(client, answer) == "bad_signature", why
            assert await refused(client, await signed(client, mine, one, mac="x")) == "bad_signature"
            await client.call("device.revoke", id=mine)
            assert await refused(client, await signed(client, mine, one)) == "bad_signature"
        assert await rig.answers_stored() == 0


async def test_a_nonce_is_used_once_at_however_many_gateways(rig: Rig) -> None:
    await rig.decide_asks()
    async with await rig.client() as client, await rig.session() as writer, rig.another() as second:
        one, other = await asks(rig, writer, 2)
        device = await phone(client)
        first = await signed(client, device, one)
        again = await signed(client, device, other, nonce=first["signature"]["nonce"])
        bearer = {"Authorization": f"Bearer {rig.token}"}
        async with await Client.connect(second.url, headers=bearer) as elsewhere:
            # The owner's token is another actor than this machine's user: it has a device of its own.
            assert await refused(elsewhere, again) == "bad_signature"
        await client.call("ask.answer", **first)
        assert await refused(client, again) == "bad_signature"
        # The same answer again is the same request, not a new use.
        assert (await client.call("ask.answer", **first, id=rig.answers[0].id))["outcome"] == "decided"
