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


async def test_the_use_of_a_token_is_recorded_once_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[str] = []

    def note(_: Audit, __: str, actor: str, **___: Any) -> None:
        noted.append(actor)

    monkeypatch.setattr(Audit, "note", note)
    clock = [1000.0]
    monkeypatch.setattr(audits.time, "monotonic", lambda: clock[0])
    audit = Audit(cast("Requests", None))
    for _ in range(5):
        audit.token_used("t1", "ann")
        audit.token_used("t2", "bob")
    clock[0] += audits.TOKEN_USE_S
    audit.token_used("t1", "ann")
    assert noted == ["ann", "bob", "ann"]
