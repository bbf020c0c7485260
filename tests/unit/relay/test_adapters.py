"""What tunnels are started with, and what of their output is an address. The lines are the programs' own, as they document and print them."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from trunkline_relay.adapters.cloudflared import ephemeral
from trunkline_relay.adapters.ngrok import started
from trunkline_relay.adapters.tunnel import Command, environment_of, masked
from trunkline_relay.app import make_adapter
from trunkline_relay.settings import RelaySettings
from trunkline_wire import TrunklineError


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (
            "2024-05-01T10:00:02Z INF |  https://seasonal-deck-organisms-sf.trycloudflare.com  |",
            "https://seasonal-deck-organisms-sf.trycloudflare.com",
        ),
        ("2024-05-01T10:00:01Z INF Requesting new quick Tunnel on trycloudflare.com...", None),
        ('ERR failed to request quick Tunnel: Post "https://api.trycloudflare.com/tunnel": dial tcp', None),
        ("INF Thank you for trying Cloudflare Tunnel. … https://developers.cloudflare.com/", None),
    ],
)
def test_the_address_of_a_quick_tunnel(line: str, found: str | None) -> None:
    assert ephemeral(line) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (
            '{"addr":"http://127.0.0.1:80","msg":"started tunnel","name":"command_line","url":"https://1f2e.ngrok-free.app"}',
            "https://1f2e.ngrok-free.app",
        ),
        ('{"lvl":"info","msg":"client session established","obj":"tunnels.session"}', None),
        ('{"msg":"started tunnel","url":"tcp://1.tcp.ngrok.io:1"}', None),
        ("ERROR:  authentication failed", None),
    ],
)
def test_the_address_of_ngrok(line: str, found: str | None) -> None:
    assert started(line) == found


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"kind": "embedded"}, "url = "),
        ({"kind": "embedded", "url": "wss://x"}, "url = "),
        ({"kind": "embedded", "url": "https://user@x"}, "url = "),
        ({"kind": "embedded", "url": "http://relay.example.org", "token": "t"}, "https alone"),
        ({"kind": "cloudflared", "token": "t"}, "wants `url`"),
        ({"kind": "ssh", "ssh_to": "me@box"}, "wants `url`"),
        ({"kind": "ssh", "url": "https://x"}, "`ssh_to`"),
        ({"kind": "ssh", "url": "https://x", "ssh_to": "-oProxyCommand=x"}, "`ssh_to`"),
    ],
)
def test_what_is_missing_is_named(settings: dict[str, Any], why: str) -> None:
    wanted = replace(RelaySettings(), **settings)
    with pytest.raises(TrunklineError, match=why) as refused:
        make_adapter(wanted, wanted.token)
    assert refused.value.code == "bad_settings"


def test_a_token_comes_from_a_file_that_nobody_else_can_read(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("s3cret\n")
    file.chmod(0o644)
    settings = RelaySettings(token_file=file)
    with pytest.raises(TrunklineError, match="chmod 600") as refused:
        settings.secret()
    assert "s3cret" not in str(refused.value)
    file.chmod(0o600)
    assert settings.secret() == "s3cret"


def test_a_program_gets_its_secret_and_little_else() -> None:
    own = {"PATH": "/bin", "TRUNKLINE_RELAY_TOKEN": "x", "AWS_SECRET": "y", "https_proxy": "http://p"}
    assert environment_of(own, {"TUNNEL_TOKEN": "t"}) == {
        "PATH": "/bin",
        "https_proxy": "http://p",
        "TUNNEL_TOKEN": "t",
    }
    assert masked("bad token abc", {"TUNNEL_TOKEN": "abc"}) == "bad token ********"
    assert "abc" not in repr(Command(["x"], {"TUNNEL_TOKEN": "abc"}))
