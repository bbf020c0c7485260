"""Who is there: seen at every gateway, gone when the client is."""

import pytest
from tests.integration.gateway.rig import Rig

from trunkline_bus import kv
from trunkline_gateway.presence import PresenceRecord
from trunkline_testkit import eventually
from trunkline_testkit.product import Client
from trunkline_wire import encode, timestamp
from trunkline_wire.subjects import KV_PRESENCE


async def there(client: Client, session: str) -> list[tuple[str, str]]:
    who = (await client.call("presence.list", session=session))["sessions"].get(session, [])
    return [(one["actor"], one["doing"]) for one in who]


def told(client: Client, session: str) -> list[tuple[str, str]] | None:
    """What its subscription was told last of a session."""
    frames = [frame for frame in client.frames if frame.get("type") == "presence" and frame["session"] == session]
    return [(one["actor"], one["doing"]) for one in frames[-1]["who"]] if frames else None


async def test_who_watches_and_who_types_is_seen_at_every_gateway(rig: Rig) -> None:
    async with await rig.client() as owner, await rig.session() as writer, rig.another() as second:
        await rig.settled(writer)
        made = await owner.call("token.create", actor="ann", role="participant")
        bearer = {"Authorization": f"Bearer {made['token']}"}
        async with await Client.connect(second.url, headers=bearer) as ann:
            await owner.call("subscribe", session=writer.session, presence=True)
            await ann.call("subscribe", session=writer.session)
            await eventually(lambda: ("ann", "watching") in (told(owner, writer.session) or []))
            (who,) = [
                one for one in (await owner.call("presence.list"))["sessions"][writer.session] if one["actor"] == "ann"
            ]
            assert (who["role"], who["program"], who["device"]) == ("participant", "test", None)
            await ann.call("presence.typing", session=writer.session)
            await eventually(lambda: ("ann", "typing") in (told(owner, writer.session) or []))
            await ann.call("presence.typing", session=writer.session, typing=False)
            await eventually(lambda: ("ann", "watching") in (told(owner, writer.session) or []))
            # Two subscriptions are one presence, until the last is gone.
            again = await ann.call("subscribe", session=writer.session)
            await ann.call("unsubscribe", subscription=again["subscription"])
            assert ("ann", "watching") in await there(owner, writer.session)
        # Closed: gone at once.
        await eventually(lambda: "ann" not in dict(told(owner, writer.session) or []))


async def test_who_types_and_says_no_more_has_stopped(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_gateway.presence.TYPING_S", 0.3)
    async with await rig.client() as owner, await rig.session() as writer:

        def doing() -> list[str]:
            return [doing for _, doing in told(owner, writer.session) or []]

        await rig.settled(writer)
        await owner.call("subscribe", session=writer.session, presence=True)
        await owner.call("presence.typing", session=writer.session)
        await eventually(lambda: doing() == ["typing"])
        await eventually(lambda: doing() == ["watching"])


async def test_a_client_that_no_longer_answers_is_gone(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_gateway.presence.AWAY_S", 0.2)
    monkeypatch.setattr("trunkline_gateway.presence.BEAT_S", 0.1)
    async with await rig.client() as owner, await rig.client() as mute, await rig.session() as writer:
        await rig.settled(writer)
        await mute.call("subscribe", session=writer.session)
        # Nothing comes from it any more, not even the answers to pings.
        mute.mute()
        await owner.call("subscribe", presence=True)
        await eventually(lambda: told(owner, writer.session) == [])


async def test_those_of_a_gateway_that_was_killed_are_gone_in_time(rig: Rig) -> None:
    async with await rig.client() as owner, await rig.session() as writer:
        await rig.settled(writer)
        await owner.call("subscribe", presence=True)
        # As a gateway leaves it behind that can neither renew nor delete it.
        left = PresenceRecord(
            id="f" * 32, actor="ann", role="viewer", since=timestamp(), sessions={writer.session: "watching"}
        )
        await kv.put(rig.bus, KV_PRESENCE, f"client.{left.id}", encode(left), ttl=1)
        await eventually(lambda: told(owner, writer.session) == [("ann", "watching")])
        await eventually(lambda: told(owner, writer.session) == [])
