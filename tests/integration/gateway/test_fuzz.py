"""Whatever is sent, nothing fails at the server, nothing hangs, and nobody does what their role does not allow."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.integration.gateway.rig import Rig, begin_turn

from trunkline_gateway import openapi
from trunkline_gateway.methods import ALL
from trunkline_gateway.roles import Principal, Role

FUZZ = settings(
    max_examples=3,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
SCHEMA = schemathesis.openapi.from_dict(openapi.document("1", ALL))


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody takes what is sent here: the time until that is said is not what is tested."""
    for name in ("create.SPAWN_S", "sessions.OUTCOME_S", "asks.DECISION_S", "workspaces.ANSWER_S"):
        monkeypatch.setattr(f"trunkline_gateway.methods.{name}", 0.05)


@pytest.mark.parametrize("role", [pytest.param("viewer", marks=pytest.mark.long), "owner"])
async def test_requests_made_from_the_openapi(rig: Rig, role: Role) -> None:
    await rig.restart_gateway(rate_messages=0, rate_bytes=0)
    async with await rig.session() as writer:
        begin_turn(writer)
        await rig.settled(writer)
        token, _ = await rig.running.gateway.tokens.create("x", role)
        url, headers = rig.running.url, {"Authorization": f"Bearer {token}"}
        may = Principal(actor="x", role=role, via="tcp").may

        def fuzz(operation: Any) -> None:
            name = operation.path.rpartition("/")[2]

            @FUZZ
            @given(case=operation.as_strategy())
            def send(case: Any) -> None:
                answer = case.call(base_url=url, headers=headers, timeout=20)
                assert answer.status_code < 500 or answer.json()["code"] in ("no_worker", "unsupported", "timeout"), (
                    name,
                    answer.text,
                )
                if not may(ALL[name].role):
                    assert answer.status_code in (400, 403, 413), (name, answer.text)
                if answer.status_code != 200:
                    assert "application/problem+json" in answer.headers["content-type"]

            send()

        for found in SCHEMA.get_all_operations():
            operation: Any = found
            await asyncio.to_thread(fuzz, operation.ok())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
NAMES = st.sampled_from([*ALL, "hello", "subscribe", "unsubscribe"])
FIELDS = st.sampled_from(
    sorted({name for method in ALL.values() for name in getattr(method.params, "__struct_fields__", ())})
)
REQUESTS = st.fixed_dictionaries(
    {
        "type": st.just("req"),
        "id": st.integers(0, 9),
        "method": NAMES,
        "params": st.dictionaries(FIELDS, JSON, max_size=4),
    }
)
FRAMES: st.SearchStrategy[str | bytes] = st.one_of(
    REQUESTS.map(json.dumps), JSON.map(json.dumps), st.text(max_size=50), st.binary(max_size=50)
)


async def test_frames_of_all_kinds_are_answered_and_the_connection_lives_on(rig: Rig) -> None:
    await rig.restart_gateway(rate_messages=0, rate_bytes=0)
    token, _ = await rig.running.gateway.tokens.create("x", "viewer")
    examples: list[str | bytes] = []
    collect(examples.append)()
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http,
        http.ws_connect(f"{rig.running.url}/ws", max_msg_size=0) as ws,
    ):
        for frame in examples:
            await (ws.send_bytes(frame) if isinstance(frame, bytes) else ws.send_str(frame))
        await ws.send_json({"type": "req", "id": "last", "method": "worker.list"})
        answers: list[dict[str, Any]] = []
        async with asyncio.timeout(30):
            while not answers or answers[-1]["id"] != "last":
                message = await ws.receive()
                assert message.type is aiohttp.WSMsgType.TEXT, (message, answers[-1:])
                frame = json.loads(message.data)
                answers += [frame] if frame["type"] == "res" else []
    assert answers[-1]["ok"]
    codes = {answer["error"]["code"] for answer in answers if not answer["ok"]}
    assert "internal" not in codes
    assert {"bad_frame", "bad_params", "forbidden"} <= codes


def collect(take: Callable[[str | bytes], None]) -> Callable[[], None]:
    @settings(FUZZ, max_examples=300)
    @given(frame=FRAMES)
    def each(frame: str | bytes) -> None:
        take(frame)

    return each
