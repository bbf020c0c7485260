"""The server dies, hangs, comes back or goes back: nothing is lost, nothing is stored twice, nobody waits for ever."""

import asyncio
import shutil
from pathlib import Path

import psutil
import pytest
from prometheus_client import REGISTRY
from tests.integration.bus_write.sessions import claim, events, new_writer, note, texts, unbroken

from trunkline_bus import append, obstacles, topology
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.server import EmbeddedServer, ServerSettings
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.ports import free_port
from trunkline_wire import TrunklineError


async def test_a_killed_server_loses_and_doubles_nothing(tmp_path: Path) -> None:
    settings = ServerSettings(directory=tmp_path / "nats", port=free_port())
    async with EmbeddedServer(settings) as server, Bus.open(BusSettings(url=server.url)) as bus:
        await topology.apply(bus.js)
        writers = [await new_writer(bus) for _ in range(8)]
        for _ in range(3):
            for number in range(60):
                for writer in writers:
                    writer.append(note(str(number)))
            await eventually(lambda: any(0 < writer.queued < 50 for writer in writers))
            url = server.url
            await server.kill()
            await server.start()
            assert server.url == url
        async with asyncio.timeout(20):
            await asyncio.gather(*(writer.flush() for writer in writers))
        for writer in writers:
            assert unbroken(await events(bus, writer.session))
            assert await texts(bus, writer.session) == [str(number) for number in range(60)] * 3
            await writer.close()


async def test_a_writer_waits_for_an_unreachable_server_and_holds_its_agent_back(
    bus: Bus, fresh_nats: NatsServer
) -> None:
    writer = await new_writer(bus)
    fresh_nats.kill()
    await eventually(lambda: not bus.writing.is_connected)
    for _ in range(30):
        writer.append(note("x" * 300_000))
    room = asyncio.ensure_future(writer.room())
    assert not (await asyncio.wait([room], timeout=0.3))[0]
    await asyncio.to_thread(fresh_nats.restart)
    await asyncio.wait_for(room, 20)
    await writer.flush()
    assert writer.error is None
    assert unbroken(await events(bus, writer.session))
    await writer.close()


def timeouts() -> float:
    """How many appends of this process went without an answer so far."""
    return REGISTRY.get_sample_value("trunkline_append_unknown_outcomes_total", {"reason": "timeout"}) or 0.0


async def test_an_acknowledgement_that_never_came_is_looked_up(
    bus: Bus, fresh_nats: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A paused server stores what it had been sent once it goes on; the writer must not store it again."""
    monkeypatch.setattr("trunkline_bus.leader.ACK_WITHIN_S", 0.3)
    writer = await new_writer(bus)
    fresh_nats.pause()
    await eventually(lambda: psutil.Process(fresh_nats.pid).status() == psutil.STATUS_STOPPED)
    writer.append(note("sent into the dark"))
    before = timeouts()
    await eventually(lambda: timeouts() > before)
    fresh_nats.resume()
    writer.append(note("after"))
    await writer.flush()
    assert await texts(bus, writer.session) == ["sent into the dark", "after"]
    await writer.close()


async def test_silence_becomes_a_condition_and_ends(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_bus.leader.ACK_WITHIN_S", 0.2)
    monkeypatch.setattr(obstacles, "UNWRITABLE_AFTER_S", 0.3)
    writer = await new_writer(bus)
    # Appends go unanswered on a connection that stands and whose reads are answered: a full disk looks like this.
    real = bus.mux.send

    def swallow(subject: str, payload: bytes, headers: dict[str, str] | None = None, *, reply: str = "") -> None:
        if not subject.startswith("trunk.ev."):
            real(subject, payload, headers, reply=reply)

    with monkeypatch.context() as broken:
        broken.setattr(bus.mux, "send", swallow)
        writer.append(note("x"))
        await eventually(lambda: writer.condition is not None and writer.condition.code == "log_unwritable")
        assert writer.error is None
    await writer.flush()
    assert writer.condition is None
    await writer.close()


async def test_a_full_log_is_a_condition_then_an_error(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_bus.capacity.EVERY_S", 0.05)
    await topology.apply(bus.js, max_bytes=200_000)
    writer = await new_writer(bus)
    for _ in range(3):
        writer.append(note("x" * 90_000))
    await eventually(lambda: writer.condition is not None)
    assert writer.condition is not None
    assert writer.condition.code == "log_full"
    assert writer.queued == 1
    await topology.apply(bus.js, max_bytes=10_000_000)
    await writer.flush()
    await eventually(lambda: writer.condition is None)
    await topology.apply(bus.js, max_bytes=400_000)
    monkeypatch.setattr(obstacles, "GIVE_UP_AFTER_S", 0.5)
    for _ in range(3):
        writer.append(note("x" * 90_000))
    with pytest.raises(TrunklineError, match="log_full"):
        await writer.flush()
    await writer.close()


async def test_a_nearly_full_log_is_a_condition_before_it_refuses(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_bus.capacity.EVERY_S", 0.05)
    await topology.apply(bus.js, max_bytes=1_000_000)
    writer = await new_writer(bus)
    for _ in range(8):
        writer.append(note("x" * 100_000))
    await writer.flush()
    await eventually(lambda: writer.log_fill > 0.8)
    assert writer.condition is None
    writer.append(note("x" * 60_000))
    await eventually(lambda: writer.condition is not None)
    await writer.flush()
    assert writer.condition is not None
    assert writer.condition.code == "log_full"
    assert 0.85 < writer.condition.details["fill"] < 0.9
    assert REGISTRY.get_sample_value("trunkline_log_fill_ratio") == writer.log_fill
    await topology.apply(bus.js, max_bytes=10_000_000)
    await eventually(lambda: writer.condition is None)
    await writer.close()


async def test_a_log_that_went_back_stops_the_writer(
    bus: Bus, fresh_nats: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older copy of the store is put in place of the present one."""
    monkeypatch.setattr(append, "REGRESSED_AFTER_S", 0.5)
    writer = await new_writer(bus)
    writer.append(note("kept"))
    await writer.flush()
    await asyncio.to_thread(fresh_nats.terminate)
    shutil.copytree(fresh_nats.store, tmp_path / "copy")
    await asyncio.to_thread(fresh_nats.start)
    writer.append(note("lost with the copy"))
    await writer.flush()
    await asyncio.to_thread(fresh_nats.terminate)
    shutil.rmtree(fresh_nats.store)
    shutil.copytree(tmp_path / "copy", fresh_nats.store)
    await asyncio.to_thread(fresh_nats.start)
    writer.append(note("never"))
    with pytest.raises(TrunklineError, match="log_regressed"):
        await writer.flush()
    assert await texts(bus, writer.session) == ["kept"]
    # A new owner reads the log as it is and goes on.
    async with await claim(bus, writer.session) as heir:
        heir.append(note("goes on"))
        await heir.flush()
    assert unbroken(await events(bus, writer.session))
    await writer.close()


async def test_a_log_written_anew_up_to_the_same_sequence_is_noticed(
    bus: Bus, fresh_nats: NatsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The restored log reached the very sequence that was acknowledged, with another event there."""
    monkeypatch.setattr(append, "REGRESSED_AFTER_S", 0.5)
    writer = await new_writer(bus)
    await asyncio.to_thread(fresh_nats.terminate)
    shutil.copytree(fresh_nats.store, tmp_path / "copy")
    await asyncio.to_thread(fresh_nats.start)
    writer.append(note("lost"))
    await writer.flush()
    await asyncio.to_thread(fresh_nats.terminate)
    shutil.rmtree(fresh_nats.store)
    shutil.copytree(tmp_path / "copy", fresh_nats.store)
    await asyncio.to_thread(fresh_nats.start)
    heir = await claim(bus, writer.session)
    assert heir.claim_sequence == writer.stored_sequence
    # The server alone would take this append: the expected sequence fits. Only its answer is right, so the claim
    # must be seen first, by whoever reads the log; the next conflict shows it to the writer.
    heir.append(note("heir"))
    await heir.flush()
    writer.append(note("old"))
    with pytest.raises(TrunklineError, match="fenced"):
        await writer.flush()
    await writer.close()
    await heir.close()


async def test_a_server_that_ends_orderly_is_waited_for_too(tmp_path: Path) -> None:
    settings = ServerSettings(directory=tmp_path / "nats", port=free_port())
    async with EmbeddedServer(settings) as server, Bus.open(BusSettings(url=server.url)) as bus:
        await topology.apply(bus.js)
        async with await new_writer(bus) as writer:
            for number in range(400):
                writer.append(note(str(number)))
            await eventually(lambda: writer.queued < 350)
            await server.restart()
            await asyncio.wait_for(writer.flush(), 20)
        assert await texts(bus, writer.session) == [str(number) for number in range(400)]


@pytest.mark.slow
async def test_a_hung_server_is_given_up_and_found_again(bus: Bus, fresh_nats: NatsServer) -> None:
    """SIGSTOP under load: the time-outs are survived, and what was stored unseen is not stored again."""
    writer = await new_writer(bus)
    for number in range(300):
        writer.append(note(str(number)))
    await eventually(lambda: writer.queued < 290)
    fresh_nats.pause()
    try:
        await asyncio.sleep(6)  # longer than an acknowledgement is waited for; nothing can be observed meanwhile
    finally:
        fresh_nats.resume()
    await asyncio.wait_for(writer.flush(), 20)
    assert await texts(bus, writer.session) == [str(number) for number in range(300)]
    await writer.close()
