"""Who acts, by name: a person (`ada`), an extension (`ext:notify`), or a person whom an extension vouches for
(`ext:notify/ada`), whom Trunkline itself has not seen.
"""

from typing import Final

from trunkline_wire.errors import TrunklineError

EXTENSION: Final = "ext:"
"""Begins the name of an extension as an actor; no person's name begins so."""

POLICY: Final = "policy"
"""The actor of what the policy decides."""

MAX_ACTOR: Final = 128


def check_person(name: str) -> str:
    """A name that a person may be known by. Raises TrunklineError `bad_params`."""
    if not 0 < len(name) <= MAX_ACTOR or not name.isprintable() or any(letter.isspace() for letter in name):
        raise TrunklineError(
            "bad_params", f"an actor has 1 to {MAX_ACTOR} printable characters and no spaces", field="actor"
        )
    if name.startswith(EXTENSION) or name == POLICY:
        raise TrunklineError("bad_params", f"{name!r} is no person's name: choose another one", field="actor")
    return name


def vouched(extension: str, person: str) -> str:
    """The actor of what a person does through an extension (`ext:<name>`), by the extension's word."""
    return f"{extension}/{person}"


def voices(actor: str) -> frozenset[str]:
    """Who speaks when `actor` does. Where several people have to agree, each voice counts once.

    An extension that names a person is both of them: it can neither lend its voice to several people, nor can a person speak
    once through it and once more in person.
    """
    extension, _, person = actor.partition("/") if actor.startswith(EXTENSION) else ("", "", actor)
    return frozenset(voice for voice in (extension, person) if voice)
