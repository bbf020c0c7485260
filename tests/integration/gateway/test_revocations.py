"""A device that is revoked leaves no token, whatever comes between."""

import base64
from typing import Any

import pytest
from tests.integration.gateway.rig import Rig

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
        paired = await owner.call("device.pair", **await _wanted(owner))
        tokens = rig.running.gateway.tokens

        async def refuse(_: str) -> None:
            raise TrunklineError("log_unavailable", "NATS is away")

        with monkeypatch.context() as away:
            away.setattr(tokens.records, "delete", refuse)
            assert await outcome(owner, "device.revoke", id=paired["id"]) == "log_unavailable"
        assert [device["id"] for device in (await owner.call("device.list"))["devices"]] == [paired["id"]]
        async with await rig.client(token=paired["token"]) as phone:
            await owner.call("device.revoke", id=paired["id"])
            await eventually(lambda: phone.closed)


async def test_a_device_that_is_revoked_while_it_is_paired_gets_no_token(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await rig.client() as owner:
        tokens = rig.running.gateway.tokens
        create = tokens.create

        async def late(*args: Any, device: str, **wanted: Any) -> Any:
            await owner.call("device.revoke", id=device)
            return await create(*args, device=device, **wanted)

        wanted = await _wanted(owner)
        monkeypatch.setattr(tokens, "create", late)
        assert await outcome(owner, "device.pair", **wanted) == "bad_pairing"
        await eventually(lambda: not [token for token in tokens.list() if token.via == "pairing"])


async def _wanted(owner: Client) -> dict[str, Any]:
    """What `device.pair` wants."""
    keys = {name: base64.b64encode(bytes([at]) * 32).decode() for at, name in enumerate(("key", "route", "identity"))}
    invited = await owner.call("device.invite", actor="ann", role="approver")
    return {"name": "phone", "invitation": invited["invitation"], **keys}
