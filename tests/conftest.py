"""Every test runs between trip-wires: nothing leaked, nothing outside.

Property tests take the same examples in every run. `--hypothesis-profile=hunt` takes new ones.
"""

import gc
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from trunkline_testkit.tripwires import trip_wires, trip_wires_of_loop

__all__ = ["trip_wires", "trip_wires_of_loop"]

# how long an example takes says how busy the machine is, not whether the code is right
settings.register_profile("hunt", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("trunkline", settings.get_profile("hunt"), derandomize=True, database=None)
settings.load_profile("trunkline")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests stay: no garbage is looked for while they are made, and none among them later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
