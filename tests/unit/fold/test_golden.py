"""A fold that computes something else has a new version: else projections would mix what two versions made.

After a change on purpose: raise the fold's VERSION and write the new file with `python tests/unit/fold/test_golden.py`.
"""

from pathlib import Path

import msgspec
import pytest

from trunkline_fold import asks, state
from trunkline_fold.asks import AsksState, fold_asks
from trunkline_fold.session import encode_state, fold_session, initial
from trunkline_wire import Event, decode_event, encode

GOLDEN = Path(__file__).parent / "golden"


def events() -> list[Event]:
    return [decode_event(line, strict=True) for line in (GOLDEN / "log.ndjson").read_bytes().splitlines()]


def session_bytes() -> bytes:
    folded = initial(events()[0].session)
    for sequence, event in enumerate(events(), 1):
        folded = fold_session(folded, event, sequence)
    return encode_state(folded)


def asks_bytes() -> bytes:
    folded = AsksState()
    for sequence, event in enumerate(events(), 1):
        folded = fold_asks(folded, event, sequence)
    return encode(folded)


def files() -> dict[str, bytes]:
    made = {f"session.v{state.VERSION}.json": session_bytes(), f"asks.v{asks.VERSION}.json": asks_bytes()}
    return {name: msgspec.json.format(content, indent=1) + b"\n" for name, content in made.items()}


@pytest.mark.parametrize("name", sorted(files()))
def test_the_fold_still_is_of_its_version(name: str) -> None:
    expected = (GOLDEN / name).read_bytes() if (GOLDEN / name).exists() else b""
    assert files()[name] == expected, "the fold has changed: raise its VERSION and write the new file (see above)"


if __name__ == "__main__":
    for file_name, file_content in files().items():
        (GOLDEN / file_name).write_bytes(file_content)
