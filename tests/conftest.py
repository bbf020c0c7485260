"""Every test runs between trip-wires: nothing leaked, nothing outside."""

from trunkline_testkit.tripwires import trip_wires, trip_wires_of_loop

__all__ = ["trip_wires", "trip_wires_of_loop"]
