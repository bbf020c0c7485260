"""Settings of the monitor."""

from trunkline_service import Settings


class MonitorSettings(Settings, frozen=True, kw_only=True):
    """`http_host` and `http_port` say where its metrics are."""

    servers: tuple[str, ...] = ("http://127.0.0.1:8222",)
    """The NATS servers' monitoring endpoints."""
    certificates: tuple[str, ...] = ()
    """`host:port` of TLS servers whose certificates are to be watched, such as the gateway's public address."""
    every_s: float = 10.0
    """Seconds between two looks at the NATS servers."""
