"""What `trunkline relay serve` can be told."""

from pathlib import Path

from trunkline_service import Settings
from trunkline_wire import TrunklineError


class ServerSettings(Settings, frozen=True, kw_only=True):
    """`TRUNKLINE_RELAY_SERVER_<FIELD>`, the table `[relay_server]`, or flags."""

    bind: str = "127.0.0.1"
    port: int = 30084
    """0 takes any free one. The default is below those that a host takes for itself, or searches upwards from."""
    hosts: list[str] = []
    """Names, besides those of loopback, by which hosts and devices reach the relay: no other Host header is taken."""
    origins: list[str] = []
    """Origins of browser pages, besides the relay's own, that may connect (`https://app.example.org`)."""
    url: str = ""
    """The relay's address for people, which hosts put into links (`https://relay.example.org`)."""
    tokens: Path | None = None
    """A file of what hosts have to show, made by `trunkline relay token`; without it every host may come."""
    proxies: list[str] = []
    """Networks of proxies before the relay, whose `X-Forwarded-For` is believed (`10.0.0.0/8`)."""
    rate: float = 5.0
    """Connections a second that one address may make on the average; 0: any."""
    burst: float = 200.0
    """Connections that one address may make at once."""
    max_connections: int = 20_000
    """Of hosts and devices together."""
    certificate: Path | None = None
    """A TLS certificate with its chain (PEM), where no proxy has one."""
    key: Path | None = None
    """The certificate's key."""
    app: Path | None = None
    """The folder of a built app for browsers; the one in the package (`just web`) without it."""
    nats_url: str = ""
    """NATS, over which several processes are one relay; one alone needs none."""

    def checked(self) -> "ServerSettings":
        """Raises TrunklineError `bad_settings`."""
        if (self.certificate is None) != (self.key is None):
            raise TrunklineError("bad_settings", "`certificate` and `key` go together")
        return self
