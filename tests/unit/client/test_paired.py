"""What a device remembers of its host: the newest identity, whichever connection tells of it first."""

import pytest
from msgspec.structs import replace

from trunkline_client import Paired, Sealed

BOX = Paired(
    relay="https://relay.example", host="box", route=bytes(32), identity=b"1" * 32, number=1, device="dev_1",
    actor="ann", role="owner", seed=bytes(32), secret=bytes(32), token="tl_1", key=bytes(32),
)  # fmt: skip


def test_an_older_identity_never_replaces_a_newer_one() -> None:
    kept: list[Paired] = []
    sealed = Sealed(BOX, kept.append)
    sealed.learn(b"3" * 32, 3)
    # Another connection, of before the second rotation, is only heard now.
    sealed.learn(b"2" * 32, 2)
    sealed.learn(b"3" * 32, 3)
    assert kept == [replace(BOX, identity=b"3" * 32, number=3)]
    assert sealed.paired == kept[0]


@pytest.mark.parametrize("known", [0, 5])
def test_of_a_host_that_does_not_count_the_latest_word_counts(known: int) -> None:
    sealed = Sealed(replace(BOX, number=known))
    sealed.learn(b"2" * 32, 0)
    assert (sealed.paired.identity, sealed.paired.number) == (b"2" * 32, 0)
    sealed.learn(b"3" * 32, 1)
    assert (sealed.paired.identity, sealed.paired.number) == (b"3" * 32, 1)
