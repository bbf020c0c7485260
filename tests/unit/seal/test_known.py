"""Both languages against each other's recordings: tests/recordings/seal, made by tests.unit.seal.known and the app's tests/seal.test.ts."""

import json
from typing import Any

import pytest
from tests.unit.seal import known

from trunkline_seal import Accepting, Identity, Opening
from trunkline_seal.channel import Receiver, cost
from trunkline_seal.handshake import HEADER_BYTES
from trunkline_seal.pairing import Link
from trunkline_wire import TrunklineError


def recorded(name: str) -> dict[str, Any]:
    return json.loads((known.RECORDINGS / name).read_bytes())


RANDOM = ("first", "second", "header_up", "up", "down")


def test_what_is_not_drawn_at_random_is_made_as_it_was_recorded() -> None:
    now, then = known.made(), recorded("python.json")
    assert {name: now[name] for name in now if name not in RANDOM} == {
        name: then[name] for name in then if name not in RANDOM
    }
    assert [len(frame) for frame in now["up"]] == [len(frame) for frame in then["up"]]


@pytest.mark.parametrize("one", json.loads((known.RECORDINGS / "costs.json").read_bytes()))
def test_a_message_costs_what_both_languages_say(one: dict[str, int]) -> None:
    assert cost(one["size"], one["pad"]) == one["cost"]


def test_a_link_is_read_as_it_was_written() -> None:
    assert Link.parse(recorded("python.json")["link"]["url"]) == known.LINK


@pytest.mark.parametrize(
    "url", ["", "https://r.example/pair", "https://r.example/pair#1.AAAA", "ftp://r.example/pair#2.A"]
)
def test_what_is_no_link(url: str) -> None:
    with pytest.raises(TrunklineError) as refused:
        Link.parse(url)
    assert refused.value.code == "bad_params"


@pytest.mark.parametrize("place", ["[", "[::1", "r.example:x", "r.example:99999", ":443", "ann:secret@r.example", ""])
def test_a_place_that_can_be_no_relays(place: str) -> None:
    _, _, behind = known.LINK.url.partition("/pair#")
    with pytest.raises(TrunklineError) as refused:
        Link.parse(f"https://{place}/pair#{behind}")
    assert refused.value.code == "bad_params"
    assert behind not in str(refused.value)


def test_the_browsers_first_message_opens() -> None:
    first = bytes.fromhex(recorded("browser.json")["first"])
    accepting = Accepting([Identity.new(), known.HOST], known.SID, first)
    assert (accepting.device, accepting.about) == (known.DEVICE.public, b'{"route":"x"}')
    assert accepting.identity is known.HOST


def test_what_the_browser_sealed_opens() -> None:
    python, browser = recorded("python.json"), recorded("browser.json")
    receiver = Receiver(_up(python), bytes.fromhex(browser["header_up"]), known.SID)
    frames = [bytes.fromhex(frame) for frame in browser["up"]]
    said = [message for frame in frames[:-1] if (message := receiver.open(frame)) is not None]
    assert said == list(known.UP[:3])
    receiver.pad = known.PAD
    assert receiver.open(frames[-1]) == known.LAST
    assert receiver.ended


def _up(python: dict[str, Any]) -> bytes:
    """The key of the recorded handshake, as the host has it."""
    accepting = Accepting([known.HOST], known.SID, bytes.fromhex(python["first"]))
    _, waiting = accepting.answer(b"{}", fresh=known.FRESH_HOST)
    return waiting._key  # pyright: ignore[reportPrivateUsage] - it is what the recording pins


def test_the_recorded_handshake_opens() -> None:
    python = recorded("python.json")
    opening = Opening(known.DEVICE, known.HOST.public, known.SID, b"", fresh=known.FRESH_DEVICE)
    opening.first = bytes.fromhex(python["first"])
    channel, about, header = opening.answered(bytes.fromhex(python["second"]))
    assert about.decode() == python["about_host"]
    assert len(header) == HEADER_BYTES
    frames = [bytes.fromhex(frame) for frame in python["down"]]
    assert [message for frame in frames[:-1] if (message := channel.open(frame)) is not None] == list(known.DOWN)
    channel.pad(known.PAD)
    assert channel.open(frames[-1]) == known.LAST
