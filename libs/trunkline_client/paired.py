"""A host that this device is paired with: what it is known by, and the keys for it."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from trunkline_wire import Answer
from trunkline_wire.secret import Discreet, Secret, SecretBytes
from trunkline_wire.signing import answer_mac


class Paired(Discreet, frozen=True, kw_only=True):
    """Bytes are base64 in JSON."""

    relay: str
    """The relay's address, `https://…`."""
    host: str
    """What the host calls itself."""
    route: bytes
    """The host's route key: its name at the relay is made of it."""
    identity: bytes
    """The host's newest identity."""
    number: int = 0
    """That of the identity; 0 of a host that did not count them when it was learned."""
    device: str
    actor: str
    role: str
    seed: SecretBytes
    """Of this device's route key."""
    secret: SecretBytes
    """Of this device's identity."""
    token: Secret
    key: SecretBytes
    """Signs what is decided here."""
    app: bytes = b""
    """Digest of the app that the host vouched for when this device was paired."""
    pad: int = 0
    """Messages are padded to a multiple of so many bytes, or of more if the host wants it; 0: as the host wants."""

    def learned(self, identity: bytes, number: int) -> "Paired":
        """With the host's newest identity, unless a newer one is known: a slow connection tells late. Hosts that don't count say 0."""
        return self if 0 < number <= self.number else replace(self, identity=identity, number=number)

    def signed(self, answer: Answer, time: str, nonce: str) -> dict[str, Any]:
        """The `signature` of an answer; `time` and `nonce` are from `ask.nonce`."""
        return {
            "device": self.device,
            "time": time,
            "nonce": nonce,
            "mac": answer_mac(self.key, answer, time, nonce),
        }


class Sealed:
    """A paired host as an address has it. It learns the host's newer identities; `keep` writes them down.

    `known` reads what is written down: others may have learned more, and the host lets nobody come by what they need no more.
    """

    def __init__(
        self,
        paired: Paired,
        keep: Callable[[Paired], None] | None = None,
        known: Callable[[], Paired] | None = None,
    ) -> None:
        self.paired = paired
        self._keep = keep
        self._known = known

    def look(self) -> Paired:
        """What is known now, before each connection. Raises what `known` does."""
        if self._known is not None:
            self.paired = self._known()
        return self.paired

    def learn(self, identity: bytes, number: int) -> None:
        """The host has said, in a sealed channel, what its newest identity is, and its number."""
        learned = self.paired.learned(identity, number)
        if learned != self.paired:
            self.paired = learned
            if self._keep is not None:
                self._keep(self.paired)

    def __repr__(self) -> str:
        return f"Sealed({self.paired!r})"
