"""An agent's own message as it goes into an event: its bytes as they are, unless they would make the event unreadable."""

from typing import Final

import msgspec

from trunkline_wire import encode, replace_lone_surrogates

_decoder: Final = msgspec.json.Decoder(msgspec.Raw)


def verbatim(native: bytes) -> msgspec.Raw:
    """`native` if it is JSON in UTF-8; else with its lone surrogates replaced; else as one JSON string."""
    if _is_json(native):
        return msgspec.Raw(native)
    mended = replace_lone_surrogates(native)
    return msgspec.Raw(mended if _is_json(mended) else encode(native.decode("utf-8", "replace")))


def _is_json(raw: bytes) -> bool:
    try:
        if not raw.isascii():
            raw.decode()
        _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True
