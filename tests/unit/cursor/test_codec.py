"""The cursor's form: it comes back as it was, is short, and can't be altered or made by others."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline_bus.cursor import Cursor, CursorCodec, scope_hash
from trunkline_wire import TrunklineError
from trunkline_wire.ids import new_event_id

SECRET = b"0123456789abcdef"
CODEC = CursorCodec(SECRET)
USUAL = Cursor(
    log="5f0c1d3a9b7e4c21a1b2c3d4e5f60718",
    positions={"EVENTS": 1_234_567},
    ids={"EVENTS": "0193a1b2-c3d4-7e5f-8a6b-0123456789ab"},
    scope=scope_hash("ses_1", "*"),
)

names = st.sampled_from(["EVENTS", "EV0", "EV1", "COMMANDS"])
sequences = st.integers(0, 2**63 - 1)
texts = st.text(st.characters(codec="utf-8"), max_size=40)
ids = st.one_of(st.builds(new_event_id), st.text("0123456789abcdef", min_size=1, max_size=40), texts.filter(bool))


@st.composite
def cursors(draw: st.DrawFn) -> Cursor:
    positions = draw(st.dictionaries(names, sequences, max_size=4))
    known = [stream for stream in positions if draw(st.booleans())]
    return Cursor(
        log=draw(ids),
        positions=positions,
        ids={stream: draw(ids) for stream in known},
        scope=draw(texts),
        anchors={
            stream: position - draw(st.integers(1, position))
            for stream in known
            if (position := positions[stream]) > 0 and draw(st.booleans())
        },
    )


@given(cursors())
def test_it_comes_back_as_it_was(cursor: Cursor) -> None:
    assert CODEC.decode(CODEC.encode(cursor)) == cursor


def test_the_usual_one_is_short_and_fits_a_url() -> None:
    text = CODEC.encode(USUAL)
    assert len(text) <= 112
    assert set(text) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def test_the_same_cursor_has_one_text() -> None:
    assert CODEC.encode(USUAL) == CODEC.encode(USUAL)


@pytest.mark.parametrize("place", range(len(CODEC.encode(USUAL))))
def test_no_character_may_be_altered(place: int) -> None:
    text = CODEC.encode(USUAL)
    for other in "AQgw_":
        if other != text[place]:
            with pytest.raises(TrunklineError) as caught:
                CODEC.decode(text[:place] + other + text[place + 1 :])
            assert caught.value.code == "bad_cursor"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A",
        "x" * 100,
        "ünicode",
        CODEC.encode(USUAL)[:-1],
        CODEC.encode(USUAL) + "A",
        CODEC.encode(USUAL) + "=",
        "\n",
    ],
)
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(TrunklineError) as caught:
        CODEC.decode(text)
    assert caught.value.code == "bad_cursor"


def test_another_secret_makes_other_cursors() -> None:
    with pytest.raises(TrunklineError):
        CursorCodec(b"another secret, as long").decode(CODEC.encode(USUAL))


def test_a_version_to_come_is_refused_even_if_it_is_genuine() -> None:
    """The version byte is under the signature: a gateway that knows a newer form must not be misread."""
    import hmac

    body = b"\x02" + base64.urlsafe_b64decode(CODEC.encode(USUAL) + "==")[1:-16]
    text = base64.urlsafe_b64encode(body + hmac.digest(SECRET, body, "sha256")[:16]).rstrip(b"=").decode()
    with pytest.raises(TrunklineError):
        CODEC.decode(text)


def test_a_short_secret_is_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        CursorCodec(b"short")


def test_a_scope_changes_with_every_part_and_their_borders() -> None:
    assert (
        len({scope_hash("a", "b"), scope_hash("ab"), scope_hash("a", "c"), scope_hash("b", "a"), scope_hash("a")}) == 5
    )
