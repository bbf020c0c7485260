"""States in memory: what is applied, what freezes, and who wins when two have written."""

from collections.abc import Sequence
from typing import ClassVar

import msgspec
import pytest

from trunkline_bus.cells import Cells
from trunkline_bus.stored import Stored
from trunkline_bus.views import View, decode_document

ERASED = "session.erased"


class Total(msgspec.Struct, frozen=True):
    """`said` is the sum of what was said, `mood` how the key feels."""

    said: int = 0
    mood: str = "fine"


class Totals(View[Total]):
    """Adds up the numbers said on `say.<key>`; anything else on it is poison."""

    name: ClassVar[str] = "totals"
    bucket: ClassVar[str] = "totals"
    version: ClassVar[int] = 7
    filters: ClassVar[Sequence[str]] = ("say.>",)

    def key(self, stored: Stored) -> str | None:
        family, _, key = stored.subject.partition(".")
        return key if family == "say" else None

    def initial(self, key: str) -> Total:
        del key
        return Total()

    def fold(self, state: Total, stored: Stored) -> Total:
        if stored.type == ERASED:
            return state
        return msgspec.structs.replace(state, said=state.said + int(stored.raw))

    def freeze(self, state: Total) -> Total:
        return msgspec.structs.replace(state, mood="bad")

    def hot(self, before: Total, after: Total) -> bool:
        return after.said >= 100 > before.said

    def decode(self, raw: bytes) -> Total:
        return msgspec.json.decode(raw, type=Total)


def say(sequence: int, what: str, key: str = "a", type: str | None = None) -> Stored:
    return Stored("EVENTS", sequence, f"say.{key}", type, f"id-{sequence}", None, what.encode(), 0)


def cells(*keys: str) -> Cells[Total]:
    made = Cells(Totals())
    for key in keys or ("a",):
        made.begin(key)
    return made


def test_a_document_is_cursor_state_and_version_in_this_order_of_names() -> None:
    made = cells()
    made.apply(say(4, "5"))
    assert made.document(made["a"]) == b'{"cursor":4,"state":{"mood":"fine","said":5},"version":7}'


def test_what_is_in_the_state_already_is_not_applied_again() -> None:
    made = cells()
    for sequence, number in ((1, "1"), (2, "10"), (1, "1"), (2, "10"), (3, "100")):
        made.apply(say(sequence, number))
    assert made["a"].state.said == 111


def test_only_keys_in_use_are_asked_for() -> None:
    made = cells("a")
    batch = [say(1, "1"), say(2, "1", "b"), say(3, "1", "b"), Stored("EVENTS", 4, "other.c", None, None, None, b"", 0)]
    assert made.unknown(batch) == ["b"]
    assert made.apply(batch[3]) is None


def test_dirty_and_hot() -> None:
    made = cells("a", "b")
    made.apply(say(1, "60"))
    made.apply(say(2, "60", "b"))
    assert (made.dirty, made.hot) == ({"a", "b"}, set())
    made.apply(say(3, "60"))
    assert made.hot == {"a"}
    made.settle("a")
    assert (made.dirty, made.hot) == ({"b"}, set())


def test_poison_freezes_its_key_and_nothing_else() -> None:
    made = cells("a", "b")
    made.apply(say(1, "1"))
    error = made.apply(say(2, "poison"))
    assert isinstance(error, ValueError)
    assert made.apply(say(3, "poison")) is None, "said once"
    made.apply(say(4, "2"))
    made.apply(say(5, "3", "b"))
    assert made.document(made["a"]) == (
        b'{"cursor":1,"frozen":{"error":"ValueError","id":"id-2","sequence":2},'
        b'"state":{"mood":"bad","said":1},"version":7}'
    )
    assert made["b"].state == Total(said=3)
    assert made.frozen == {"a"}


def test_an_erasure_thaws_and_leaves_no_trace_of_what_was_before() -> None:
    frozen, clean = cells(), cells()
    for one in (say(1, "1"), say(2, "poison"), say(3, "1"), say(4, "", type=ERASED), say(5, "7")):
        frozen.apply(one)
    for one in (say(4, "", type=ERASED), say(5, "7")):
        clean.apply(one)
    assert frozen.document(frozen["a"]) == clean.document(clean["a"])
    assert frozen.frozen == set()


def test_a_key_goes_on_from_its_document() -> None:
    first = cells()
    for one in (say(1, "1"), say(2, "poison")):
        first.apply(one)
    second: Cells[Total] = Cells(Totals())
    second.begin("a", first.document(first["a"]), 9)
    for one in (say(1, "1"), say(2, "poison"), say(3, "4")):
        assert second.apply(one) is None
    assert second.document(second["a"]) == first.document(first["a"])
    assert second["a"].revision == 9
    assert second.frozen == {"a"}
    assert second.dirty == set()


@pytest.mark.parametrize(
    ("mine", "theirs", "mine_stands", "said"),
    [
        ([1, 2], [1], True, 2),
        ([1], [1, 2], False, 2),
        ([1, 2], [1, 2], False, 2),
        ([1, 2], [], True, 2),
    ],
)
def test_of_two_documents_the_one_with_more_progress_stands(
    mine: list[int], theirs: list[int], mine_stands: bool, said: int
) -> None:
    """The last case: their key was deleted, or the bucket made anew."""
    ours, rival = cells(), cells()
    for sequence in mine:
        ours.apply(say(sequence, "1"))
    for sequence in theirs:
        rival.apply(say(sequence, "1"))
    raw = rival.document(rival["a"]) if theirs else None
    assert ours.meet("a", raw, 33) is mine_stands
    assert (ours["a"].state.said, ours["a"].revision) == (said, 33)


def test_a_frozen_document_knows_more_than_the_one_just_before_it() -> None:
    slow, quick = cells(), cells()
    slow.apply(say(1, "1"))
    quick.apply(say(1, "1"))
    quick.apply(say(2, "poison"))
    assert decode_document(quick.document(quick["a"])).cursor == 1
    assert slow.meet("a", quick.document(quick["a"]), 5) is False
    assert slow["a"].frozen is not None
    assert quick.meet("a", cells_of(say(1, "1")), 6) is True


def cells_of(*messages: Stored) -> bytes:
    made = cells()
    for one in messages:
        made.apply(one)
    return made.document(made["a"])


def test_what_is_not_stored_is_never_forgotten() -> None:
    made = cells("a", "b", "c", "d")
    made.apply(say(1, "1", "b"))
    made.forget_some(2)
    assert ("a" in made, "b" in made, "c" in made, "d" in made) == (False, True, False, True)
