"""What the host's side of a relay can be told."""

import platform
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from trunkline_seal.channel import MAX_PAD
from trunkline_service import Settings
from trunkline_wire import TrunklineError
from trunkline_wire.secret import Secret

Kind = Literal["embedded", "direct", "cloudflared", "ngrok", "ssh"]


class RelaySettings(Settings, frozen=True, kw_only=True):
    """`TRUNKLINE_RELAY_<FIELD>`, the table `[relay]`, or flags."""

    kind: Kind = "embedded"
    """How devices reach the host: by a relay elsewhere, by one served here, or by one here behind a tunnel."""
    url: str = ""
    """*embedded*: the relay's address (`https://relay.example.org`). Else the address by which devices reach the relay here, where it can't be told otherwise."""
    token: Secret = ""
    """*embedded*: what the relay lets hosts in with, if it wants that. *cloudflared*, *ngrok*: the tunnel's token."""
    token_file: Path | None = None
    """A file (0600) with the token."""
    name: str = ""
    """What devices call this host; the machine's name without it."""
    pad: Annotated[int, msgspec.Meta(ge=0, le=MAX_PAD)] = 0
    """Devices are asked to pad messages, both ways, to a multiple of so many bytes, which hides their lengths from the relay; 0: as they like."""
    bind: str = "127.0.0.1"
    """*direct*: where the relay that is served here listens; `0.0.0.0` for the local network. The others keep to loopback."""
    port: int = 0
    """Its port; 0 takes any free one."""
    program: str = ""
    """The tunnel's program, where it is not found by its own name."""
    ssh_to: str = ""
    """*ssh*: who and where, as ssh wants it (`me@box.example.org`)."""
    ssh_port: int = 22
    ssh_listen: str = "127.0.0.1:8443"
    """*ssh*: where the other side listens (`address:port`), behind the proxy that has `url`."""
    ssh_key: Path | None = None
    """*ssh*: the private key's file; ssh's own choice without it."""
    ssh_known_hosts: Path | None = None

    @property
    def called(self) -> str:
        return self.name or platform.node() or "host"

    def secret(self) -> str:
        """The token, of the file or as it is set; empty for none. Raises TrunklineError `bad_settings`."""
        if self.token_file is None:
            return self.token
        try:
            if self.token_file.stat().st_mode & 0o077:
                raise TrunklineError(
                    "bad_settings", f"others can read {str(self.token_file)!r}: `chmod 600 {self.token_file}`"
                )
            return self.token_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeError) as error:
            raise TrunklineError("bad_settings", f"the token in {str(self.token_file)!r} can't be read") from error
