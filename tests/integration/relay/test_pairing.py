"""Pairing: a link that is good once, six digits that a person compares, and nobody else who gets in by it."""

import asyncio

import pytest
from tests.integration.gateway.rig import Rig
from tests.integration.relay.device import CutError, Keys, line, meet, opened, talk, text64
from tests.integration.relay.stage import Asked, ask, offer, pair

from trunkline_relay.app import Host
from trunkline_seal.pairing import Link, commitment
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError

WANTED = {"actor": "ann", "role": "viewer"}


async def link_of(asked: Asked) -> str:
    said = await asked.next()
    assert said["type"] == "link", said
    return said["link"]


async def test_the_link_has_the_hosts_keys_and_the_status_none_of_its_secret(host: Host, rig: Rig) -> None:
    async with offer(rig.home, **WANTED) as asked:
        said = await asked.next()
        link = Link.parse(said["link"])
        assert (link.route, link.identity) == (host.devices.host.route.public, host.devices.host.newest.public)
        assert said["link"].startswith(f"{host.line.public_url or host.adapter.public_url}/pair#1.")
        assert (said["seconds"], said["fingerprint"]) == (60.0, host.status()["fingerprint"])
        assert text64(link.secret) not in str(host.status())


@pytest.mark.usefixtures("host")
async def test_a_link_is_good_once_whatever_came_of_it(rig: Rig) -> None:
    async with offer(rig.home, **WANTED) as asked:
        link = await link_of(asked)
        async with meet(link) as meeting:
            assert (await asked.next())["code"] == meeting.code
            with pytest.raises(CutError, match="bad_pairing"):
                async with meet(link):
                    pass
            asked.say({"agree": False})
            with pytest.raises(TrunklineError) as refused:
                await meeting.outcome()
            assert refused.value.code == "bad_pairing"
        assert (await asked.next())["code"] == "bad_pairing"
    with pytest.raises(CutError, match="bad_pairing"):
        async with meet(link):
            pass
    async with await rig.client() as owner:
        assert (await owner.call("device.list"))["devices"] == []


@pytest.mark.usefixtures("host")
async def test_who_hangs_up_takes_the_link_back(rig: Rig, host: Host) -> None:
    async with offer(rig.home, **WANTED) as asked:
        link = await link_of(asked)
    await eventually(lambda: not host.pairing.offers())
    with pytest.raises(CutError, match="bad_pairing"):
        async with meet(link):
            pass


async def test_a_link_that_is_too_old_is_none(host: Host, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_relay.door.VALID_S", 0.05)
    async with offer(rig.home, **WANTED) as asked:
        link = await link_of(asked)
        failed = await asked.next()
        assert (failed["type"], failed["code"]) == ("failed", "bad_pairing")
        with pytest.raises(CutError, match="bad_pairing"):
            async with meet(link):
                pass
    # And not even a relay that lets it pass gets it to the host.
    monkeypatch.setattr("trunkline_relay.pairing.VALID_S", -1.0)
    async with offer(rig.home, **WANTED) as asked:
        link = await link_of(asked)
        assert host.pairing.offers() == []


@pytest.mark.usefixtures("host")
async def test_a_device_that_goes_away_is_told_and_is_not_paired(rig: Rig) -> None:
    async with offer(rig.home, **WANTED) as asked:
        async with meet(await link_of(asked)):
            await asked.next()
        failed = await asked.next()
        assert (failed["code"], failed["message"]) == ("timeout", "the device went away")
    async with await rig.client() as owner:
        assert (await owner.call("device.list"))["devices"] == []


async def test_who_does_not_have_the_secret_or_lies_about_its_number_is_no_device(host: Host, rig: Rig) -> None:
    lies = [
        {"pair": text64(bytes(16))},
        {"commit": text64(commitment(bytes(16)))},
        {"key": text64(b"short")},
        {"route": "x"},
    ]
    for lie in lies:
        async with offer(rig.home, **WANTED) as asked:
            link = await link_of(asked)
            with pytest.raises((CutError, TrunklineError)):
                async with meet(link, None, **lie) as meeting:
                    await meeting.outcome()
            assert (await asked.next())["type"] == "failed", lie
    assert sum(host.visits.refused.values()) == len(lies)
    assert host.devices.known == {}


@pytest.mark.usefixtures("host")
async def test_what_the_person_chose_wins_over_what_the_device_says(rig: Rig) -> None:
    first = await pair(rig.home, name="Tablet", role="viewer", actor="bob")
    second = await pair(rig.home)
    async with await rig.client() as owner:
        devices = (await owner.call("device.list"))["devices"]
        assert [(one["name"], one["role"], one["actor"]) for one in devices] == [
            ("Tablet", "viewer", "bob"),
            ("Ann's phone", "owner", "ann"),
        ]
    # Keys that are known are not paired again: nobody takes a device's place by saying its route key.
    async with offer(rig.home, **WANTED) as asked:
        async with meet(await link_of(asked), Keys(route=first.route)) as meeting:
            await asked.next()
            asked.say({"agree": True})
            with pytest.raises(TrunklineError, match="revoke"):
                await meeting.outcome()
        assert (await asked.next())["code"] == "bad_params"
    async with talk(second) as one:
        assert (await one.call("hello", protocol=1))["device"] == second.device


@pytest.mark.usefixtures("host")
async def test_a_paired_device_has_no_use_for_a_link_of_another(rig: Rig) -> None:
    """A first message for a pairing, sent as an ordinary visit: the host treats it as what it came by."""
    phone = await pair(rig.home)
    stranger = Keys(relay=phone.relay, host_name=phone.host_name, host=phone.host)
    async with line(phone) as one:
        about = {"pair": text64(bytes(16)), "route": text64(phone.route.public), "commit": "", "key": ""}
        talking = await opened(one, stranger, about)
        await talking.control({"reveal": text64(bytes(16))})
        assert (await talking.said())["failed"]["code"] == "bad_frame"


@pytest.mark.usefixtures("host")
async def test_who_was_not_invited_by_the_gateway_pairs_nothing(rig: Rig) -> None:
    """An agent of the same user may open the door: it has no invitation, for the gateway gives agents none."""
    async with ask(rig.home, do="pair") as asked:
        assert (await asked.next())["code"] == "bad_params"
    async with ask(rig.home, do="pair", invitation="made up") as asked:
        async with meet(await link_of(asked)) as meeting:
            await asked.next()
            asked.say({"agree": True})
            with pytest.raises(TrunklineError, match="invitation"):
                await meeting.outcome()
        assert (await asked.next())["code"] == "bad_pairing"


async def test_who_is_paired_may_come_whatever_else_is_being_told(
    host: Host, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def busy(_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(host.visits, "end_devices", busy)
    phone = await pair(rig.home)
    async with talk(phone) as one:
        assert (await one.call("hello", protocol=1))["device"] == phone.device


async def test_a_program_that_says_what_has_no_end_is_left_and_its_link_taken_back(
    host: Host, rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    async with offer(rig.home, **WANTED) as asked:
        await link_of(asked)
        asked.say("x" * 64 * 1024)
        await eventually(lambda: not host.pairing.offers())
    assert not [one for one in caplog.records if one.levelname == "ERROR"]
