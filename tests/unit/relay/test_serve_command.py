"""`trunkline relay`: its flags are the server's settings, and its tokens are what the gate knows."""

import os
from pathlib import Path

import click
import pytest

from trunkline_agentkit.hooks import PREFERRED_PORT
from trunkline_bus.server import DEFAULT_PORT as NATS_PORT
from trunkline_cli.commands import relay
from trunkline_cli.root import run
from trunkline_gateway.settings import GatewaySettings
from trunkline_relay.gate import Gate
from trunkline_relay.server_settings import ServerSettings
from trunkline_service.settings import load
from trunkline_supervisor.ports import GATEWAY_PORT
from trunkline_wire import TrunklineError


def test_a_token_lets_a_host_in_and_only_its_hash_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tokens"
    assert run(["relay", "token", str(file), "--name", "ann's\nbox"]) == 0
    assert run(["relay", "token", str(file)]) == 0
    first, second = capsys.readouterr().out.split()
    assert first != second
    gate = Gate(lambda: 0.0, tokens=file)
    for token in (first, second):
        gate.check_token(f"Bearer {token}")
        assert token not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(file.read_text().splitlines()) == 2
    file.write_text("".join(file.read_text().splitlines(keepends=True)[1:]))
    with pytest.raises(TrunklineError):
        gate.check_token(f"Bearer {first}")


def test_every_flag_is_a_setting_of_the_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    started: list[list[str]] = []

    def execv(_program: str, argv: list[str]) -> None:
        started.append(argv)

    monkeypatch.setattr(os, "execv", execv)
    given = {
        "bind": "0.0.0.0",
        "port": "0",
        "hosts": "a.example.org,b.example.org",
        "url": "https://a.example.org",
        "origins": "https://c.example.org",
        "tokens": "/t",
        "proxies": "10.0.0.0/8",
        "rate": "1",
        "burst": "2",
        "max-connections": "3",
        "certificate": "/c",
        "key": "/k",
        "app": "/a",
        "nats-url": "nats://n:4222",
        "nats-seed": "/s/relay.nk",
        "http-host": "127.0.0.2",
        "http-port": "9464",
        "home": str(tmp_path),
        "log-level": "debug",
    }
    flags = [word for name, value in given.items() for word in (f"--{name}", value)]
    options = {option.name for option in relay.serve.params} - {"check"}
    assert options == {name.replace("-", "_") for name in given}, "each is tried here"
    run(["relay", "serve", *flags])
    [[_, *argv]] = started
    assert argv[:2] == ["-m", "trunkline_relay.server"]
    settings, _ = load(ServerSettings, "relay_server", argv=argv[2:], environ={})
    assert settings.hosts == ["a.example.org", "b.example.org"]
    assert (settings.rate, settings.burst, settings.max_connections) == (1.0, 2.0, 3)
    assert (settings.certificate, settings.key, settings.tokens) == (Path("/c"), Path("/k"), Path("/t"))
    assert (settings.nats_url, settings.nats_seed) == ("nats://n:4222", Path("/s/relay.nk"))


def test_without_a_word_it_needs_no_nats_and_listens_on_loopback(tmp_path: Path) -> None:
    settings, _ = load(ServerSettings, "relay_server", argv=["--home", str(tmp_path)], environ={})
    assert (settings.nats_url, settings.bind, settings.hosts) == ("", "127.0.0.1", [])


def test_its_port_is_none_that_a_host_may_take_for_itself(tmp_path: Path) -> None:
    """A host searches upwards from each of its own."""
    settings, _ = load(ServerSettings, "relay_server", argv=["--home", str(tmp_path)], environ={})
    assert settings.port < min(NATS_PORT, GATEWAY_PORT, PREFERRED_PORT, GatewaySettings().port)
    (port,) = [option for option in relay.serve.params if option.name == "port"]
    assert isinstance(port, click.Option)
    assert f"default: {settings.port}" in str(port.help)
    deploy = Path(__file__).parents[3] / "deploy"
    for file in ("README.md", "docker/relay.yml", "kubernetes/components/relay/relay.yaml"):
        assert str(settings.port) in (deploy / file).read_text()


def test_a_certificate_needs_its_key() -> None:
    with pytest.raises(TrunklineError, match="go together"):
        ServerSettings(certificate=Path("/c")).checked()


def test_its_variables_are_not_those_of_the_hosts_side() -> None:
    environ = {"TRUNKLINE_RELAY_SERVER_PORT": "1", "TRUNKLINE_RELAY_URL": "https://other.example.org"}
    settings, _ = load(ServerSettings, "relay_server", environ=environ)
    assert (settings.port, settings.url) == (1, "")
