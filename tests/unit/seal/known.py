"""Known answers for both languages: `python -m tests.unit.seal.known` makes tests/recordings/seal/python.json of fixed keys, anew.

What libsodium draws at random (the box of the first message, the streams' headers) is recorded. The browser's half of it,
browser.json, is made by `TRUNKLINE_RECORD=1 npx vitest run tests/seal.test.ts -u` in services/trunkline_web, of the same keys.
"""

import json
from pathlib import Path
from typing import Any, Final

from trunkline_seal import BINARY, CONTROL, TEXT, Accepting, Channel, Identity, Opening, Route, fingerprint, host_name
from trunkline_seal.handshake import HEADER_BYTES
from trunkline_seal.pairing import Link, commitment, short_code

RECORDINGS: Final = Path(__file__).parents[2] / "recordings" / "seal"

HOST: Final = Identity.of(bytes(range(32)))
HOST_ROUTE: Final = Route.of(bytes(range(32, 64)))
DEVICE: Final = Identity.of(bytes(range(64, 96)))
DEVICE_ROUTE: Final = Route.of(bytes(range(96, 128)))
FRESH_DEVICE: Final = Identity.of(bytes(range(128, 160)))
FRESH_HOST: Final = Identity.of(bytes(range(160, 192)))
SID: Final = bytes(range(16))
NUMBERS: Final = (b"h" * 16, b"d" * 16)
LINK: Final = Link("https://relay.example:8443/here", HOST_ROUTE.public, HOST.public, b"a" * 32, b"s" * 16)
LARGE: Final = bytes(number % 251 for number in range(66_000))
"""More than one part."""
UP: Final = ((CONTROL, b'{"open":"/ws"}'), (TEXT, "ä".encode()), (BINARY, LARGE), (CONTROL, b'{"ack":1}'))
DOWN: Final = ((CONTROL, b'{"opened":true}'), (TEXT, "grüße".encode()), (BINARY, LARGE), (BINARY, b""))
LAST: Final = (CONTROL, b'{"closed":{"code":1000,"reason":""}}')
PAD: Final = 64


def messages(channel: Channel, said: tuple[tuple[int, bytes], ...]) -> list[str]:
    """The frames of the messages, of the last one padded, and of the end."""
    frames = [frame.hex() for kind, message in said for frame in channel.seal(kind, message)]
    channel.pad(PAD)
    return [*frames, *(frame.hex() for frame in channel.seal(*LAST, last=True))]


def made() -> dict[str, Any]:
    opening = Opening(DEVICE, HOST.public, SID, b'{"route":"x"}', fresh=FRESH_DEVICE)
    accepting = Accepting([HOST], SID, opening.first)
    second, waiting = accepting.answer(b'{"host":"box"}', fresh=FRESH_HOST)
    device, _, header = opening.answered(second)
    up = messages(device, UP)
    host, _ = waiting.proven(header + bytes.fromhex(up[0]))
    down = messages(host, DOWN)
    assert len(header) == HEADER_BYTES
    return {
        "from": "python -m tests.unit.seal.known",
        "host": {"secret": HOST.secret.hex(), "public": HOST.public.hex(), "fingerprint": fingerprint(HOST.public)},
        "host_route": {
            "seed": HOST_ROUTE.seed.hex(),
            "public": HOST_ROUTE.public.hex(),
            "name": host_name(HOST_ROUTE.public),
        },
        "device": {"secret": DEVICE.secret.hex(), "public": DEVICE.public.hex()},
        "device_route": {
            "seed": DEVICE_ROUTE.seed.hex(),
            "public": DEVICE_ROUTE.public.hex(),
            "signature": DEVICE_ROUTE.sign(b"text").hex(),
        },
        "fresh_device": FRESH_DEVICE.secret.hex(),
        "fresh_host": FRESH_HOST.secret.hex(),
        "link": {
            "url": LINK.url,
            "relay": LINK.relay,
            "route": LINK.route.hex(),
            "identity": LINK.identity.hex(),
            "app": LINK.app.hex(),
            "secret": LINK.secret.hex(),
            "name": LINK.name,
        },
        "numbers": [number.hex() for number in NUMBERS],
        "commitment": commitment(NUMBERS[1]).hex(),
        "code": short_code(
            (HOST_ROUTE.public, HOST.public), (DEVICE_ROUTE.public, DEVICE.public), (NUMBERS[0], NUMBERS[1])
        ),
        "sid": SID.hex(),
        "first": opening.first.hex(),
        "second": second.hex(),
        "about_host": '{"host":"box"}',
        "header_up": header.hex(),
        "up": up,
        "down": down,
    }


if __name__ == "__main__":
    RECORDINGS.mkdir(parents=True, exist_ok=True)
    (RECORDINGS / "python.json").write_text(json.dumps(made(), indent=1) + "\n", encoding="utf-8")
