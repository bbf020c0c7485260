"""What Trunkline's tests and those of outside adapters are made of: real servers, a scripted model, real agents."""

from trunkline_testkit.waiting import eventually, eventually_sync

__all__ = ["eventually", "eventually_sync"]
