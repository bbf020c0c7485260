"""What the gateway can be told."""

from pathlib import Path

from trunkline_service import Settings


class GatewaySettings(Settings, frozen=True, kw_only=True):
    """`TRUNKLINE_GATEWAY_<FIELD>`, the table `[gateway]`, or flags."""

    bind: str = "127.0.0.1"
    port: int = 30086
    """The next free port is taken where this one is not; 0 takes any free one."""
    socket: Path | None = None
    """The unix socket; `gateway.sock` in the home directory without it."""
    hosts: list[str] = []
    """Names, besides those of loopback, that a Host header may carry."""
    origins: list[str] = []
    """Origins of browser pages, besides the gateway's own, that may connect (`https://example.org`)."""
    max_frame: int = 1024 * 1024
    """Bytes that a frame or a body may have."""

    @property
    def socket_path(self) -> Path:
        return self.socket or self.home / "gateway.sock"
