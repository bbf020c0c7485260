"""`overview.get`: what all sessions come to, counted as they go on, and the same after a restart."""

from typing import Any

import pytest
from tests.integration.gateway.rig import Rig, ask, begin_turn

from trunkline_testkit.product import Client
from trunkline_wire import ErrorInfo, TrunklineError
from trunkline_wire.blocks import Usage
from trunkline_wire.turn import TurnCompleted
from trunkline_wire.work import NativeMessage

COUNTED = ("sessions", "asks", "spent", "unknown")


async def counted(client: Client) -> dict[str, Any]:
    found = await client.call("overview.get")
    return {name: found[name] for name in COUNTED}


async def test_an_overview_counts_as_sessions_go_on(rig: Rig) -> None:
    await rig.restart_gateway(dashboards={"Grafana": "https://grafana.example.org/d/trunkline"})
    async with (
        await rig.client() as client,
        await rig.session(workspace="ws_a") as one,
        await rig.session(workspace="ws_b") as other,
    ):
        usage = Usage(input=100, output=20, cache_read=400)
        begin_turn(one)
        one.append(NativeMessage(known=False, kind="novel"), native=b'{"type": "novel"}')
        waits = ask(other, "t1", begin_turn(other))
        await rig.settled(one, other)
        before = await client.call("overview.get")
        assert before["sessions"] == {"total": 2, "by_status": {"running": 1, "waiting": 1}}
        asked = (await client.call("ask.list"))["asks"][0]
        assert (asked["ask"], before["asks"]["open"]) == (waits, 1)
        assert before["asks"]["oldest"] == {"session": other.session, "time": asked["time"]}
        assert before["unknown"] == {
            "total": 1,
            "by_agent": [{"agent": "fake", "version": "", "messages": 1}],
        }
        assert before["dashboards"] == {"Grafana": "https://grafana.example.org/d/trunkline"}
        assert before["events"]["position"] == before["log"]["last"]

        error = ErrorInfo(code="agent_failed", message="no")
        one.append(TurnCompleted(outcome="error", usage=usage, cost_usd=0.25, error=error), turn=f"tur_{1:032x}")
        await rig.settled(one)
        after = await counted(client)
        assert after["sessions"]["by_status"] == {"failed": 1, "waiting": 1}
        assert [(row["agent"], row["sessions"], row["cost_usd"]) for row in after["spent"]["by_agent"]] == [
            ("fake", 2, 0.25)
        ]
        rows = after["spent"]["by_workspace"]
        assert [(row["workspace"], row["input"], row["output"]) for row in rows] == [("ws_a", 500, 20), ("ws_b", 0, 0)]
    await rig.restart_gateway()
    async with await rig.client() as client:
        assert await counted(client) == after
        made = await client.call("token.create", actor="a", role="approver")
    async with await rig.client(token=made["token"]) as approver:
        with pytest.raises(TrunklineError) as refused:
            await approver.call("overview.get")
        assert refused.value.code == "forbidden"
