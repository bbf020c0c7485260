"""The only `main()`: settings, signals, health, metrics, tracing, logging and discovery of every Trunkline service."""

from trunkline_service.health import Health, HealthServer
from trunkline_service.logs import configure_logging
from trunkline_service.run import ExitCode, Service, leave, run, run_apart, settle
from trunkline_service.settings import Settings, effective, load
from trunkline_wire.secret import Secret

__all__ = [
    "ExitCode",
    "Health",
    "HealthServer",
    "Secret",
    "Service",
    "Settings",
    "configure_logging",
    "effective",
    "leave",
    "load",
    "run",
    "run_apart",
    "settle",
]
