"""Adapters are found by entry points of the group `trunkline.adapters`: one may live in any distribution."""

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Final, cast

from trunkline_agentkit.protocol import BackendAdapter
from trunkline_wire import TrunklineError

GROUP: Final = "trunkline.adapters"


def installed() -> list[str]:
    """The names of all installed adapters, sorted."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def load(name: str) -> BackendAdapter:
    """A new instance of the adapter. Raises TrunklineError `unknown_adapter`."""
    found = [point for point in entry_points(group=GROUP) if point.name == name]
    if not found:
        known = ", ".join(installed()) or "none"
        raise TrunklineError("unknown_adapter", f"no adapter {name!r} is installed; there are: {known}")
    return _load(found[0])


def load_all(broken: Callable[[TrunklineError], None]) -> dict[str, BackendAdapter]:
    """All installed adapters by name. `broken` is told of each that can't be loaded: it hides no other."""
    found: dict[str, BackendAdapter] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            found[point.name] = _load(point)
        except TrunklineError as error:
            broken(error)
    return found


def _load(point: EntryPoint) -> BackendAdapter:
    try:
        adapter = cast("BackendAdapter", point.load()())
    except Exception as error:
        raise TrunklineError(
            "unknown_adapter", f"adapter {point.name!r} ({point.value}) can't be loaded: {error}"
        ) from error
    if adapter.name != point.name:
        raise TrunklineError(
            "unknown_adapter",
            f"adapter {point.name!r} ({point.value}) calls itself {adapter.name!r}: the names must agree",
        )
    return adapter
