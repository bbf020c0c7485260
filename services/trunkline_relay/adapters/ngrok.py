"""*ngrok*: its agent, version 3. Its log is JSON: `{"msg":"started tunnel","url":"https://….ngrok-free.app", …}`."""

from typing import Final

import msgspec

from trunkline_relay.adapters.local import LocalRelay
from trunkline_relay.adapters.tunnel import Command, Tunnel


class _Line(msgspec.Struct, frozen=True):
    msg: str = ""
    url: str = ""


_lines: Final = msgspec.json.Decoder(_Line)


def ngrok(relay: LocalRelay, *, program: str, token: str, url: str) -> Tunnel:
    """Without a token the one that ngrok has stored itself counts; `url` is an address that is reserved there."""
    wanted = ["--url", url] if url else []
    environment = {"NGROK_AUTHTOKEN": token} if token else {}

    def command(port: int) -> Command:
        argv = [program or "ngrok", "http", f"127.0.0.1:{port}", "--log", "stdout", "--log-format", "json", *wanted]
        return Command(argv, environment)

    return Tunnel("ngrok", relay, command, started)


def started(line: str) -> str | None:
    try:
        said = _lines.decode(line)
    except (msgspec.MsgspecError, UnicodeError):
        return None
    return said.url if said.msg == "started tunnel" and said.url.startswith("https://") else None
