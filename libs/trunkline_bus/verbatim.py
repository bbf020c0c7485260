"""An agent's own message as it goes into an event: its bytes as they are, unless they would make the event unreadable."""

import msgspec

from trunkline_wire import encode, replace_lone_surrogates


def verbatim(native: bytes) -> msgspec.Raw:
    """`native` if it is JSON in UTF-8; else with its lone surrogates replaced; else as one JSON string."""
    for candidate in (native, replace_lone_surrogates(native)):
        if _is_json(candidate):
            return msgspec.Raw(candidate)
    return msgspec.Raw(encode(native.decode("utf-8", "replace")))


def _is_json(raw: bytes) -> bool:
    try:
        raw.decode()
        msgspec.json.decode(raw, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True
