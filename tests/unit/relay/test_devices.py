"""The devices of a host: what a revocation does to its keys, whatever the disk does meanwhile."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from trunkline_relay import keys
from trunkline_relay.devices import Devices
from trunkline_relay.gateway import NewDevice, Paired
from trunkline_relay.keys import HostKeys
from trunkline_seal import Identity
from trunkline_seal.control import b64
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError

NEW = NewDevice(invitation="i", name="x", key="k", route="r", identity="i")


class Registry:
    """A gateway with these devices."""

    def __init__(self, *names: str) -> None:
        self.those = [device(name) for name in names]
        self.told: list[list[str]] = []
        self.trouble: Exception | None = None
        self.asked = 0

    async def devices(self) -> list[Paired]:
        self.asked += 1
        if self.trouble is not None:
            raise self.trouble
        return list(self.those)

    async def pair(self, device: NewDevice) -> tuple[Paired, str]:
        made = Paired(id="dev_new", actor="ann", name=device.name, role="owner", route="r", identity=device.identity)
        self.those.append(made)
        return made, "token"

    async def revoke(self, device: str) -> None:
        self.those = [one for one in self.those if one.id != device]

    async def seen(self, devices: list[str]) -> None:
        self.told.append(devices)

    async def leave(self) -> None: ...


def device(name: str) -> Paired:
    return Paired(
        id=f"dev_{name}", actor="ann", name=name, role="owner", route=name, identity=b64(Identity.new().public)
    )


@asynccontextmanager
async def watching(home: Path, registry: Registry, host: HostKeys) -> AsyncGenerator[tuple[Devices, list[set[str]]]]:
    devices = Devices(home, host, registry)
    gone: list[set[str]] = []

    def changed(those: Collection[str]) -> None:
        gone.append(set(those))

    devices.on_change = changed
    task = asyncio.create_task(devices.run())
    try:
        await devices.ready.wait()
        yield devices, gone
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_revocation_is_one_new_identity(tmp_path: Path) -> None:
    registry = Registry("ann", "eve")
    async with watching(tmp_path, registry, keys.load(tmp_path)) as (devices, gone):
        old = devices.host.newest
        await devices.revoke("dev_eve")
        await eventually(lambda: gone == [set(), {"dev_eve"}])
        new = devices.host.newest
        assert new != old
        assert (devices.routes(), keys.load(tmp_path)) == (["ann"], devices.host)
        devices.look()
        await devices.pair(NEW, new.public)
        devices.look()
        await eventually(lambda: "dev_new" in devices.known)
        assert devices.host.newest == new


async def test_a_gateway_that_does_not_answer_revokes_nobody(tmp_path: Path) -> None:
    registry = Registry("ann")
    async with watching(tmp_path, registry, keys.load(tmp_path)) as (devices, gone):
        old = devices.host.newest
        for trouble in (ConnectionError("gone"), TrunklineError("log_unavailable", "x")):
            registry.trouble, asked = trouble, registry.asked
            devices.look()
            await eventually(lambda asked=asked: registry.asked > asked)
        registry.trouble = None
        assert (devices.host.newest, devices.routes(), gone) == (old, ["ann"], [set()])


async def test_a_disk_that_takes_nothing_keeps_no_revoked_device_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry("ann", "eve")
    async with watching(tmp_path, registry, keys.load(tmp_path)) as (devices, gone):
        old = devices.host.newest
        with monkeypatch.context() as full:

            def refuse(*_: object) -> None:
                raise TrunklineError("bad_settings", "the disk is full")

            full.setattr("trunkline_relay.keys.save", refuse)
            await devices.revoke("dev_eve")
            await eventually(lambda: gone[-1] == {"dev_eve"})
            assert devices.host.newest != old
            assert devices.routes() == ["ann"]
            # Nobody is told of what is not on the disk.
            assert devices.identity == old.public == keys.load(tmp_path).newest.public
        told = len(gone)
        devices.look()
        await eventually(lambda: len(gone) > told and devices.identity == devices.host.newest.public)
        assert keys.load(tmp_path) == devices.host


async def test_those_who_are_here_are_told_of_once_a_minute(tmp_path: Path) -> None:
    registry = Registry("ann", "bob")
    async with watching(tmp_path, registry, keys.load(tmp_path)) as (devices, _):
        devices.here = lambda: ["dev_ann"]
        devices.look()
        await eventually(lambda: registry.told == [["dev_ann"]])
        devices.here = lambda: ["dev_ann", "dev_bob"]
        devices.look()
        await eventually(lambda: registry.told == [["dev_ann"], ["dev_bob"]])


async def test_a_device_that_knows_only_a_former_identity_is_not_paired(tmp_path: Path) -> None:
    registry = Registry("ann", "eve")
    async with watching(tmp_path, registry, keys.load(tmp_path)) as (devices, gone):
        old = devices.host.newest.public
        await devices.revoke("dev_eve")
        await eventually(lambda: gone[-1] == {"dev_eve"})
        with pytest.raises(TrunklineError) as refused:
            await devices.pair(NEW, old)
        assert refused.value.code == "bad_pairing"
        assert [one.id for one in registry.those] == ["dev_ann"]
        await devices.pair(NEW, devices.host.newest.public)
        assert devices.host.may_use("dev_new", devices.host.newest.public)


async def test_a_write_that_is_left_alone_ends_before_the_next_one_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry, save = Registry("ann", "eve"), keys.save
    async with watching(tmp_path, registry, keys.load(tmp_path)) as (devices, gone):
        begun, go_on = threading.Event(), threading.Event()

        def slow(home: Path, host: HostKeys) -> None:
            if not begun.is_set():
                begun.set()
                go_on.wait(5)
            save(home, host)

        monkeypatch.setattr("trunkline_relay.keys.save", slow)
        pairing = asyncio.create_task(devices.pair(NEW, devices.host.newest.public))
        await eventually(begun.is_set)
        pairing.cancel()
        await devices.revoke("dev_eve")
        asked = registry.asked
        await asyncio.wait({pairing}, timeout=0.1)
        assert (pairing.done(), registry.asked) == (False, asked)
        go_on.set()
        await asyncio.wait({pairing})
        assert pairing.cancelled()
        await eventually(lambda: gone[-1] == {"dev_eve"})
        assert keys.load(tmp_path) == devices.host
