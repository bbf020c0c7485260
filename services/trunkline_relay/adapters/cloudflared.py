"""*cloudflared*: Cloudflare's tunnel. Without a token it has an address of its own for each run; with one, the tunnel's.

Output as of cloudflared 2024 and later: `… INF |  https://three-or-four-words.trycloudflare.com  |`, `… INF Registered tunnel connection …`.
"""

import re
from typing import Final

from trunkline_relay.adapters.local import LocalRelay
from trunkline_relay.adapters.tunnel import Command, Tunnel, checked_url

_ADDRESS: Final = re.compile(r"https://(?!api\.)[a-z0-9-]+\.trycloudflare\.com")


def cloudflared(relay: LocalRelay, *, program: str, token: str, url: str) -> Tunnel:
    """Raises TrunklineError `bad_settings` for a token without an address."""
    name = program or "cloudflared"
    if not token:
        return Tunnel("cloudflared", relay, lambda port: Command(_argv(name, port)), ephemeral)
    public = checked_url(url, "a tunnel with a token")
    return Tunnel(
        "cloudflared",
        relay,
        lambda port: Command([*_argv(name, port), "run"], {"TUNNEL_TOKEN": token}),
        lambda line: public if "Registered tunnel connection" in line else None,
    )


def ephemeral(line: str) -> str | None:
    found = _ADDRESS.search(line)
    return found[0] if found else None


def _argv(program: str, port: int) -> list[str]:
    return [program, "tunnel", "--no-autoupdate", "--url", f"http://127.0.0.1:{port}"]
