"""A gateway on a real nats-server; the worker and the permission service are fakes that write what real ones would."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
import pytest
from tests.integration.gateway.rig import Rig

from trunkline_gateway.registry import METHODS, Handler, Method
from trunkline_testkit.nats import NatsServer
from trunkline_wire import encode


def _checked(method: Method) -> Handler:
    async def handler(*given: Any) -> Any:
        answer = await method.handler(*given)
        said = encode(answer)
        assert set(msgspec.json.decode(said)) <= set(get_type_hints(method.result)), (
            f"{method.name} says more than its type"
        )
        msgspec.json.decode(said, type=method.result)
        return answer

    return handler


@pytest.fixture(autouse=True)
def answers_are_of_their_types(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a method answers in these tests is of the type that clients are told."""
    for name, method in METHODS.items():
        monkeypatch.setitem(METHODS, name, msgspec.structs.replace(method, handler=_checked(method)))


@pytest.fixture
async def rig(home: Path, fresh_nats: NatsServer) -> AsyncGenerator[Rig]:
    """A running gateway; stopped and started at will."""
    rig = Rig(home, fresh_nats)
    await rig.open()
    try:
        yield rig
    finally:
        await rig.close()
