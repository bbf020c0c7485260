"""*embedded*: the host connects to a relay elsewhere, outbound."""

from urllib.parse import urlsplit

from trunkline_wire import TrunklineError


class Embedded:
    type = "embedded"
    trouble = ""

    def __init__(self, url: str, token: str) -> None:
        """Raises TrunklineError `bad_settings` for what is no address, or one to which a token would go in the clear."""
        parts = urlsplit(url)
        if parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.username:
            raise TrunklineError(
                "bad_settings",
                f'`url` of [relay] is the relay\'s address, as in url = "https://relay.example.org", not {url!r}',
            )
        if token and parts.scheme == "http" and parts.hostname not in {"localhost", "127.0.0.1", "::1"}:
            raise TrunklineError("bad_settings", "the relay's token goes over https alone: change `url` of [relay]")
        self.public_url = url.rstrip("/")
        self.connected = False

    async def connect(self) -> str:
        self.connected = True
        return self.public_url

    async def disconnect(self) -> None:
        self.connected = False
