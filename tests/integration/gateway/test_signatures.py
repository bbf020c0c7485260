"""Signed answers: whose device it was is known for certain, and no signature works twice or for anything else."""

import base64
import datetime as dt
from typing import Any

import pytest
from tests.integration.gateway.rig import Rig, ask, begin_turn

from trunkline_bus.writer import SessionWriter
from trunkline_gateway import signatures
from trunkline_gateway.methods import asks as methods
from trunkline_testkit.product import Client
from trunkline_wire import Answer, TrunklineError, timestamp
from trunkline_wire.ids import new_command_id
from trunkline_wire.signing import FORM, answer_mac

KEY = bytes(range(32))


async def signed(client: Client, device: str, ask_id: str, **other: Any) -> dict[str, Any]:
    """The parameters of an answer that `device` allows; `other` is what is signed otherwise."""
    given = await client.call("ask.nonce")
    assert given["form"] == FORM
    nonce, time = other.pop("nonce", given["nonce"]), other.pop("time", given["time"])
    key, mac = other.pop("key", KEY), other.pop("mac", None)
    params: dict[str, Any] = {"id": new_command_id(), "ask": ask_id, "behaviour": "allow", **other.pop("params", {})}
    answer = Answer(session="", time="", **(params | other))
    mac = mac or answer_mac(key, answer, time, nonce)
    return {**params, "signature": {"device": device, "time": time, "nonce": nonce, "mac": mac}}


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
                "another ask": await signed(client, mine, one, ask=other),
                "another behaviour": await signed(client, mine, one, behaviour="deny"),
                "somebody else's device": await signed(client, theirs, one),
                "no device": await signed(client, "dev_" + "0" * 32, one),
                "another id": await signed(client, mine, one, id=new_command_id()),
                "another option": await signed(client, mine, one, params={"option": "always"}, option="yes"),
                "another input": await signed(
                    client, mine, one, params={"updated_input": {"command": "rm"}}, updated_input={"command": "ls"}
                ),
                "an input that was not signed": await signed(
                    client, mine, one, params={"updated_input": {"command": "rm"}}, updated_input=None
                ),
                "another word": await signed(client, mine, one, params={"message": "do"}, message="don't"),
                "a rule that was not signed": await signed(
                    client, mine, one, params={"rule_updates": [{}]}, rule_updates=None
                ),
                "an interrupt that was not signed": await signed(
                    client, mine, one, params={"interrupt": True}, interrupt=False
                ),
                "too old": await signed(client, mine, one, time=long_ago),
                "a nonce of its own": await signed(client, mine, one, nonce="0" * 32),
                "a nonce given to somebody else": await signed(
                    client, mine, one, nonce=(await owner.call("ask.nonce"))["nonce"]
                ),
            }
            for why, answer in cases.items():
                assert await refused(client, answer) == "bad_signature", why
            assert await refused(client, await signed(client, mine, one, mac="x")) == "bad_signature"
            nameless = {name: value for name, value in (await signed(client, mine, one)).items() if name != "id"}
            assert await refused(client, nameless) == "bad_params"
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
        assert (await client.call("ask.answer", **first))["outcome"] == "decided"


async def test_the_same_answer_again_needs_no_other_nonce_and_no_other_answer_may_use_it(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await rig.client() as client, await rig.session() as writer:
        (one,) = await asks(rig, writer, 1)
        device = await phone(client)
        first = await signed(client, device, one, params={"option": "yes"})
        nonce = first["signature"]["nonce"]
        monkeypatch.setattr(methods, "DECISION_S", 0.05)
        # Nobody decides yet: its sender does not learn what became of it, and asks again.
        assert [await refused(client, first) for _ in range(2)] == ["timeout", "timeout"]
        with monkeypatch.context() as later:
            later.setattr(signatures, "WINDOW_S", -1)
            assert await refused(client, first) == "timeout"
        others = {
            "another id": await signed(client, device, one, nonce=nonce, params={"option": "yes"}),
            "another choice": await signed(client, device, one, nonce=nonce, params={"id": first["id"]}),
            "another time": await signed(
                client,
                device,
                one,
                nonce=nonce,
                time="2026-11-27T21:20:10Z",
                params={"id": first["id"], "option": "yes"},
            ),
        }
        for why, answer in others.items():
            assert await refused(client, answer) == "bad_signature", why
        monkeypatch.undo()
        await rig.decide_asks()
        assert (await client.call("ask.answer", **first))["outcome"] == "decided"
        assert {(answer.id, answer.option) for answer in rig.answers} == {(first["id"], "yes")}
