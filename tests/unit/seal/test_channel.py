"""A channel gives what was sealed, once and in order, and nothing else: whatever somebody does to the frames between."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.bindings import crypto_secretstream as stream

from trunkline_relay import lines
from trunkline_seal import BINARY, CONTROL, TEXT, Accepting, Channel, Identity, Opening, envelope
from trunkline_seal import channel as channels
from trunkline_wire import TrunklineError

HOST, DEVICE = Identity.new(), Identity.new()
SID = b"s" * 16
# 17 bytes are the stream's, of each frame; one says of a message what it is
SEAL = 17

Said = list[tuple[int, bytes]]
said = st.lists(st.tuples(st.sampled_from((TEXT, BINARY, CONTROL)), st.binary(max_size=200)), min_size=1, max_size=6)


def shaken(sid: bytes = SID) -> tuple[Channel, Channel]:
    """The two ends of a connection: the device's, and the host's."""
    opening = Opening(DEVICE, HOST.public, sid, b"about")
    accepting = Accepting([HOST], sid, opening.first)
    assert (accepting.device, accepting.about) == (DEVICE.public, b"about")
    second, waiting = accepting.answer(b"host")
    device, about, header = opening.answered(second)
    assert about == b"host"
    host, first = waiting.proven(header + b"".join(device.seal(CONTROL, b"first")))
    assert first == b"first"
    return device, host


def opened(channel: Channel, frames: list[bytes]) -> Said:
    return [message for frame in frames if (message := channel.open(frame)) is not None]


def sealed(channel: Channel, messages: Said) -> list[bytes]:
    return [frame for kind, message in messages for frame in channel.seal(kind, message)]


def refuses(channel: Channel, frame: bytes) -> None:
    with pytest.raises(TrunklineError) as refused:
        channel.open(frame)
    assert refused.value.code == "bad_seal"


@given(up=said, down=said, pad=st.sampled_from((0, 16, 100)))
def test_both_directions(up: Said, down: Said, pad: int) -> None:
    device, host = shaken()
    device.pad(pad)
    host.pad(pad)
    frames = sealed(device, up)
    assert opened(host, frames) == up
    assert opened(device, sealed(host, down)) == down
    if pad:
        assert all((len(frame) - SEAL) % pad == 0 for frame in frames)


@pytest.mark.parametrize("size", [0, 1, channels.PART_BYTES - 1, channels.PART_BYTES, channels.PART_BYTES + 1])
def test_a_part_that_is_not_full_and_not_the_last_is_refused(size: int) -> None:
    """A flood of empty ones would be a message that no limit of bytes ends."""
    key, state = b"k" * 32, stream.crypto_secretstream_xchacha20poly1305_state()
    header = stream.crypto_secretstream_xchacha20poly1305_init_push(state, key)
    tag = stream.crypto_secretstream_xchacha20poly1305_TAG_MESSAGE
    receiver = channels.Receiver(key, header, SID)
    for full in (True, True, size == channels.PART_BYTES):
        part = bytes(channels.PART_BYTES if full else size)
        frame = stream.crypto_secretstream_xchacha20poly1305_push(state, part, SID, tag)
        if full:
            assert receiver.open(frame) is None
        else:
            with pytest.raises(TrunklineError) as refused:
                receiver.open(frame)
            assert refused.value.code == "bad_seal"


@given(size=st.integers(0, 3 * channels.PART_BYTES), pad=st.sampled_from((0, 16, 100, 65536)))
@settings(max_examples=30)
def test_a_message_costs_no_less_than_it_has_on_its_way(size: int, pad: int) -> None:
    device, _ = shaken()
    device.pad(pad)
    frames = [envelope.pack(SID, frame) for frame in device.seal(BINARY, bytes(size))]
    waiting = sum(len(frame) + lines.OVERHEAD for frame in frames)
    assert waiting <= device.cost(bytes(size)) <= waiting + len(frames) * 32


@given(messages=said, data=st.data())
def test_what_was_done_to_a_frame_ends_the_connection(messages: Said, data: st.DataObject) -> None:
    device, host = shaken()
    frames = sealed(device, [*messages, (TEXT, b"after")])
    at = data.draw(st.integers(0, len(frames) - 2))
    how = data.draw(st.sampled_from(("change", "cut", "repeat", "drop", "swap", "other")))
    assert opened(host, frames[:at]) == messages[:at]
    frame = frames[at]
    match how:
        case "change":
            place = data.draw(st.integers(0, len(frame) - 1))
            frame = frame[:place] + bytes((frame[place] ^ data.draw(st.integers(1, 255)),)) + frame[place + 1 :]
        case "cut":
            frame = frame[: data.draw(st.integers(0, len(frame) - 1))]
        case "repeat":
            frame = frames[at - 1] if at else frames[-1]
        case "drop" | "swap":
            frame = frames[at + 1]
        case _:
            frame = sealed(shaken()[0], [(TEXT, b"another connection's")])[0]
    refuses(host, frame)
    # and nothing opens after it, not even what would have been next
    refuses(host, frames[at])


def test_a_frame_of_a_channel_of_the_same_keys_under_another_sid_does_not_open() -> None:
    key, header = b"k" * 32, channels.Sender(b"k" * 32, SID)
    frame = b"".join(header.seal(TEXT, b"hello"))
    with pytest.raises(TrunklineError):
        channels.Receiver(key, header.header, b"t" * 16).open(frame)
    assert channels.Receiver(key, header.header, SID).open(frame) == (TEXT, b"hello")


@pytest.mark.parametrize(("size", "parts"), [(0, 1), (65_535, 1), (65_536, 2), (131_071, 2), (131_072, 3)])
def test_messages_go_in_parts_of_64_kib(size: int, parts: int) -> None:
    device, host = shaken()
    frames = list(device.seal(BINARY, b"x" * size))
    assert len(frames) == parts
    assert max(map(len, frames)) <= 65_536 + SEAL
    assert opened(host, frames) == [(BINARY, b"x" * size)]


def test_a_message_that_is_too_large_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "MAX_MESSAGE", 100_000)
    device, host = shaken()
    frames = list(device.seal(BINARY, b"x" * 99_999))
    assert opened(host, frames) == [(BINARY, b"x" * 99_999)]
    first, second = device.seal(BINARY, b"x" * 100_000)
    assert host.open(first) is None
    refuses(host, second)


def test_nothing_comes_after_the_last() -> None:
    device, host = shaken()
    assert opened(host, list(device.seal(TEXT, b"bye", last=True))) == [(TEXT, b"bye")]
    assert host.ended
    refuses(host, next(device.seal(TEXT, b"more")))


def test_kinds_that_are_none_end_the_connection() -> None:
    device, host = shaken()
    refuses(host, next(device.seal(7, b"what")))


def test_a_first_message_brought_again_ends_at_the_proof() -> None:
    opening = Opening(DEVICE, HOST.public, SID, b"about")
    _, waiting = Accepting([HOST], SID, opening.first).answer(b"host")
    second, _ = Accepting([HOST], SID, opening.first).answer(b"host")
    device, _, header = opening.answered(second)
    with pytest.raises(TrunklineError) as refused:
        waiting.proven(header + b"".join(device.seal(CONTROL, b"first")))
    assert refused.value.code == "bad_seal"


def test_another_host_or_device_is_refused() -> None:
    with pytest.raises(TrunklineError):
        Accepting([Identity.new()], SID, Opening(DEVICE, HOST.public, SID, b"about").first)
    opening = Opening(DEVICE, HOST.public, SID, b"about")
    second, _ = Accepting([HOST], SID, opening.first).answer(b"host")
    with pytest.raises(TrunklineError):
        Opening(Identity.new(), HOST.public, SID, b"about").answered(second)
    with pytest.raises(TrunklineError):
        opening.answered(second[:40])


@given(sid=st.binary(min_size=16, max_size=16), ct=st.binary(max_size=100), cut=st.integers(1, 20))
def test_envelopes(sid: bytes, ct: bytes, cut: int) -> None:
    packed = envelope.pack(sid, ct)
    assert envelope.unpack(packed) == envelope.Envelope(sid, ct)
    for broken in (packed[:-cut], packed + b"x", b"\x02" + packed[1:]):
        with pytest.raises(TrunklineError):
            envelope.unpack(broken)
