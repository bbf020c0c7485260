"""The audit: bounded, and nothing is forgotten."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline_bus.requests import Requests
from trunkline_gateway import audit as audits
from trunkline_gateway.audit import Audit
from trunkline_gateway.roles import Principal
from trunkline_gateway.tally import MAX_KEYS, VARIOUS, Tally
from trunkline_testkit import eventually
from trunkline_wire import SystemRecord, TrunklineError


class FakeLog:
    """Keeps records, and refuses those attempts that it is told to."""

    def __init__(self) -> None:
        self.records: list[SystemRecord] = []
        self.refusing: Iterator[str | None] = iter(())

    async def record(self, record: SystemRecord) -> int:
        await asyncio.sleep(0)
        code = next(self.refusing, None)
        if code is not None:
            raise TrunklineError(code, "no")
        self.records.append(record)
        return len(self.records)

    def counted(self, kind: str) -> int:
        """Of how many acts the records tell."""
        return sum(record.details.get("count", 1) for record in self.records if record.kind == kind)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def make(log: FakeLog, clock: Clock) -> Audit:
    return Audit(cast("Requests", log), clock)


@contextlib.asynccontextmanager
async def running(audit: Audit) -> AsyncGenerator[None]:
    task = asyncio.create_task(audit.run())
    await asyncio.sleep(0)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_flood_of_refusals_does_not_fill_the_log_and_its_size_is_told() -> None:
    clock, log = Clock(), FakeLog()
    audit = make(log, clock)
    async with running(audit):
        for _ in range(audits.REFUSALS * 3):
            audit.refusal("unknown", code="unauthorized", path="/ws", peer="10.0.0.1")
        await eventually(lambda: len(log.records) == audits.REFUSALS)
        clock.now += 61
        audit.refusal("unknown", code="unauthorized", path="/ws", peer="10.0.0.1")
        await eventually(lambda: len(log.records) == audits.REFUSALS + 2)
    (told,) = [record for record in log.records if "count" in record.details]
    assert (told.kind, told.actor) == ("refusal", "unknown")
    assert told.details["count"] == audits.REFUSALS * 2
    assert (told.details["code"], told.details["path"]) == ("unauthorized", "/ws")
    assert told.details["since"] <= told.details["last"]
    assert log.counted("refusal") == audits.REFUSALS * 3 + 1


async def test_many_short_calls_of_a_client_are_one_record_an_hour_and_their_number() -> None:
    clock, log = Clock(), FakeLog()
    audit = make(log, clock)
    ann = Principal(actor="ann", role="owner", via="socket")
    async with running(audit):
        for _ in range(500):
            audit.signed_in(ann, "cli")
        audit.signed_in(ann, "acp")
        await eventually(lambda: len(log.records) == 2)
        clock.now += audits.SIGN_IN_S
        audit.signed_in(ann, "cli")
        await eventually(lambda: len(log.records) == 4)
    assert [(one.details["client"], one.details.get("count")) for one in log.records] == [
        ("cli", None),
        ("acp", None),
        ("cli", None),
        ("cli", 499),
    ]


async def test_another_person_token_or_device_is_a_sign_in_of_its_own() -> None:
    log = FakeLog()
    audit = make(log, Clock())
    people = [
        Principal(actor="ann", role="owner", via="socket"),
        Principal(actor="bob", role="owner", via="socket"),
        Principal(actor="ann", role="owner", via="tcp", token="t1"),
        Principal(actor="ann", role="viewer", via="tcp", token="t2"),
        Principal(actor="ann", role="viewer", via="tcp", token="t2", device="dev_1"),
    ]
    async with running(audit):
        for person in people * 2:
            audit.signed_in(person, "page")
    singly = [record for record in log.records if "count" not in record.details]
    assert [(one.actor, one.details.get("token"), one.details.get("device")) for one in singly] == [
        (person.actor, person.token, person.device) for person in people
    ]
    assert log.counted("sign_in") == len(people) * 2


async def test_a_client_that_always_calls_itself_otherwise_fills_nothing() -> None:
    log = FakeLog()
    audit = make(log, Clock())
    async with running(audit):
        for number in range(2_000):
            audit.signed_in(Principal(actor="ann", role="viewer", via="tcp", token="t"), f"client {number}")
    assert len(log.records) == audits.MAX_CLIENTS + 2  # one for all others, and how many more they were
    assert log.counted("sign_in") == 2_000


async def test_the_use_of_a_token_is_recorded_once_an_hour() -> None:
    clock, log = Clock(), FakeLog()
    audit = make(log, clock)
    async with running(audit):
        for _ in range(5):
            audit.token_used("t1", "ann")
            audit.token_used("t2", "bob")
        clock.now += audits.TOKEN_USE_S
        audit.token_used("t1", "ann")
    assert [record.actor for record in log.records] == ["ann", "bob", "ann"]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("refusal"), st.integers(1, 2_500), st.sampled_from(["ann", "bob", "unknown"])),
        st.tuples(st.just("paths"), st.integers(1, 300), st.just("unknown")),
        st.tuples(st.just("time"), st.integers(1, 90), st.just("")),
        st.tuples(st.just("write"), st.integers(1, 20), st.just("")),
    ),
    max_size=8,
)
OUTAGES = st.lists(st.sampled_from([None, None, "log_unavailable", "log_full"]), max_size=40)


@settings(max_examples=40, deadline=None)
@given(STEPS, OUTAGES)
def test_nothing_refused_goes_unrecorded(steps: list[tuple[str, int, str]], outages: list[str | None]) -> None:
    async def play(monkeypatch: pytest.MonkeyPatch) -> None:
        clock, log, refused = Clock(), FakeLog(), 0
        monkeypatch.setattr(audits, "AGAIN_S", 0)
        log.refusing = iter(outages)
        audit = make(log, clock)
        async with running(audit):
            for what, count, actor in steps:
                match what:
                    case "time":
                        clock.now += count
                    case "write":
                        for _ in range(count):
                            await asyncio.sleep(0)
                    case _:
                        for number in range(count):
                            path = f"/{number}" if what == "paths" else "/ws"
                            audit.refusal(actor, code="unauthorized", path=path)
                        refused += count
        # What the log refused to the last is known to be missing, to the last one.
        assert log.counted("refusal") + audit.untold == refused
        if "log_full" not in outages:
            assert audit.untold == 0

    with pytest.MonkeyPatch.context() as monkeypatch:
        asyncio.run(play(monkeypatch))


def test_a_tally_is_bounded_and_counts_all() -> None:
    tally = Tally()
    for number in range(MAX_KEYS * 3):
        tally.add("refusal", f"actor {number}", {"code": "forbidden"}, time=f"t{number:03}", due=10.0)
    assert tally.take(9.9) == []
    told = tally.take(10.0)
    assert len(told) == MAX_KEYS + 1
    assert (told[-1].actor, told[-1].told["count"], told[-1].told["since"]) == (VARIOUS, MAX_KEYS * 2, "t200")
    assert sum(entry.count for entry in told) == MAX_KEYS * 3
    assert tally.next_due is None
