"""What the gateway can be told."""

from pathlib import Path

from trunkline_gateway.provider import Provider
from trunkline_gateway.roles import Role
from trunkline_service import Settings
from trunkline_wire import TrunklineError


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
    app: Path | None = None
    """The folder of a built app for browsers; the one in the package (`just web`) without it."""
    shells: bool = False
    """Whether owners may open a shell in the directory of any session."""
    dashboards: dict[str, str] = {}
    """Links of the overview, by what they are called (`{ Grafana = "https://grafana.example.org/d/trunkline" }`)."""
    acp: bool = False
    """Whether editors may connect at `/acp`, the Agent Client Protocol's WebSocket transport, which is a draft."""
    max_frame: int = 1024 * 1024
    """Bytes that a frame or a body may have."""

    rate_messages: float = 10.0
    """Requests a second that a client over TCP may send on the average; bursts of `rate_burst` seconds are fine. 0: any."""
    rate_bytes: float = 100 * 1024.0
    """Bytes a second, likewise."""
    rate_burst: float = 20.0
    """Seconds' worth of requests and bytes that may come at once."""
    oidc_issuer: str | None = None
    """An OpenID Connect provider whose tokens are accepted (`https://login.example.org`), for `oidc_audience`."""
    oidc_audience: str | None = None
    oidc_actor: str = "sub"
    """The claim with the person's name."""
    oidc_role: str = "trunkline_role"
    """The claim with a role of ours, or with groups that `oidc_roles` maps (`{ admins = "owner" }`)."""
    oidc_roles: dict[str, Role] = {}
    oidc_default: Role | None = None
    """The role of those whose token names none; without it they may not come in."""

    @property
    def provider(self) -> Provider | None:
        """Raises TrunklineError `bad_settings` for an issuer without an audience."""
        if self.oidc_issuer is None:
            return None
        if self.oidc_audience is None:
            raise TrunklineError("bad_settings", "`oidc_issuer` needs `oidc_audience`: whom its tokens have to be for")
        return Provider(
            issuer=self.oidc_issuer,
            audience=self.oidc_audience,
            actor=self.oidc_actor,
            role=self.oidc_role,
            roles=self.oidc_roles,
            default=self.oidc_default,
        )

    @property
    def socket_path(self) -> Path:
        return self.socket or self.home / "gateway.sock"
