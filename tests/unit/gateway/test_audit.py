from typing import Any, cast

import pytest

from trunkline_bus.requests import Requests
from trunkline_gateway import audit as audits
from trunkline_gateway.audit import Audit


async def test_a_flood_of_refusals_does_not_fill_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[tuple[str, str]] = []

    def note(_: Audit, kind: str, actor: str, **__: Any) -> None:
        noted.append((kind, actor))

    monkeypatch.setattr(Audit, "note", note)
    clock = [1000.0]
    monkeypatch.setattr(audits.time, "monotonic", lambda: clock[0])
    audit = Audit(cast("Requests", None))
    for _ in range(audits.REFUSALS * 3):
        audit.refusal("unknown", code="unauthorized")
    assert noted == [("refusal", "unknown")] * audits.REFUSALS
    clock[0] += 61
    audit.refusal("unknown", code="unauthorized")
    assert len(noted) == audits.REFUSALS + 1
