"""Every test runs between trip-wires: nothing leaked, nothing outside. Property tests have no deadline of their own."""

from hypothesis import HealthCheck, settings

from trunkline_testkit.tripwires import trip_wires, trip_wires_of_loop

__all__ = ["trip_wires", "trip_wires_of_loop"]

# how long an example takes says how busy the machine is, not whether the code is right
settings.register_profile("trunkline", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("trunkline")
