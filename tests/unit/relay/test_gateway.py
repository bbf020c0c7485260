"""What the host's side asks of its gateway."""

from pathlib import Path
from typing import Any

import pytest

from trunkline_gateway.devices import DeviceRecord
from trunkline_relay.gateway import Gateway, NewDevice

KEY = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I="


def listed(name: str, **more: str) -> dict[str, Any]:
    return {"id": f"dev_{name}", "actor": "ann", "name": name, "role": "viewer", "route": "r", **more}


async def test_a_device_that_goes_between_two_pages_takes_no_other_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline_relay.gateway.PAGE", 3)
    those = [listed(name, identity="i") for name in "abcdefg"] + [listed("browser")]
    gone = ["dev_a", "dev_e"]

    async def call(_: Gateway, __: str, *, limit: int, offset: int) -> dict[str, Any]:
        page = those[offset : offset + limit]
        more = offset + len(page) < len(those)
        if gone and offset:
            those[:] = [one for one in those if one["id"] != gone[0]]
            gone.pop(0)
        return {"devices": page, "has_more": more, "total": len(those)}

    monkeypatch.setattr(Gateway, "_call", call)
    assert "".join(one.name for one in await Gateway(tmp_path).devices()) == "bcdfg"
    those.clear()
    assert await Gateway(tmp_path).devices() == []


def test_no_key_of_a_device_is_in_a_repr() -> None:
    new = NewDevice(invitation="once", name="phone", key=KEY, route="r", identity="i")
    record = DeviceRecord(id="dev_1", actor="ann", name="phone", key=KEY, created="2026-01-01T00:00:00Z")
    for shown in (repr(new), repr(record), str([new, record])):
        assert "phone" in shown
        assert KEY not in shown
        assert "once" not in shown
