"""Every way to a relay: served here, behind a real proxy, through a real ssh, and through programs whose fakes print what theirs do."""

import asyncio
import getpass
import json
import os
import shutil
import socket
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.integration.gateway.rig import Rig
from tests.integration.relay import stage
from tests.integration.relay.device import Keys, talk
from tests.integration.relay.stage import pair

from trunkline_relay.adapters.tunnel import Tunnel
from trunkline_relay.app import Host, hosting
from trunkline_relay.gate import digest
from trunkline_relay.server import serving
from trunkline_relay.server_settings import ServerSettings
from trunkline_relay.settings import RelaySettings
from trunkline_testkit import eventually

SSHD = "/usr/sbin/sshd"

# What the programs print, after the fake has noted how it was started.
FAKE = """#!{python}
import json, os, sys, time
with open({notes!r}, "a") as notes:
    notes.write(json.dumps({{"argv": sys.argv[1:], "environment": sorted(os.environ), "token": os.environ.get({variable!r})}}) + "\\n")
for line in {lines!r}:
    print(line, file={stream}, flush=True)
time.sleep(600)
"""

QUICK = [
    "2024-05-01T10:00:01Z INF Requesting new quick Tunnel on trycloudflare.com...",
    "2024-05-01T10:00:02Z INF |  https://seasonal-deck-organisms-sf.trycloudflare.com  |",
    "2024-05-01T10:00:03Z INF Registered tunnel connection connIndex=0",
]
NGROK = ['{"lvl":"info","msg":"started tunnel","name":"command_line","url":"https://1f2e.ngrok-free.app"}']


class Fake:
    """A program that notes how it was started, and prints."""

    def __init__(self, folder: Path, variable: str, lines: list[str], stream: str) -> None:
        self.program = folder / "program"
        self._notes = folder / "notes"
        text = FAKE.format(
            python=sys.executable, notes=str(self._notes), variable=variable, lines=lines, stream=f"sys.{stream}"
        )
        self.program.write_text(text)
        self.program.chmod(0o700)

    def starts(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._notes.read_text().splitlines()] if self._notes.exists() else []


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@asynccontextmanager
async def host(rig: Rig, **settings: Any) -> AsyncGenerator[Host]:
    async with hosting(RelaySettings(home=rig.home, name="box", **settings)) as made:
        await eventually(lambda: made.running.done() or (made.line.ready and made.adapter.connected), 20)
        if made.running.done():
            made.running.result()
        yield made


async def reaches(phone: Keys) -> bool:
    async with talk(phone) as one:
        return (await one.call("hello", protocol=1))["device"] == phone.device


async def test_direct(rig: Rig) -> None:
    async with host(rig, kind="direct") as made:
        assert made.adapter.public_url.startswith("http://127.0.0.1:")
        assert await reaches(await pair(rig.home))
    assert made.adapter.public_url == ""


@pytest.mark.skipif(shutil.which("caddy") is None, reason="caddy is not installed")
async def test_direct_behind_a_reverse_proxy(rig: Rig, tmp_path: Path) -> None:
    inner, outer = free_port(), free_port()
    config = tmp_path / "Caddyfile"
    config.write_text(
        f"{{\n admin off\n auto_https off\n}}\nhttp://127.0.0.1:{outer} {{\n reverse_proxy 127.0.0.1:{inner}\n}}\n"
    )
    proxy = await asyncio.create_subprocess_exec(
        "caddy",
        "run",
        "--config",
        str(config),
        env={
            "HOME": str(tmp_path),
            "PATH": os.environ["PATH"],
            "XDG_DATA_HOME": str(tmp_path),
            "XDG_CONFIG_HOME": str(tmp_path),
        },
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    async with (
        _served(proxy, outer),
        host(rig, kind="direct", port=inner, url=f"http://127.0.0.1:{outer}") as made,
    ):
        phone = await pair(rig.home)
        assert phone.relay == made.adapter.public_url == f"http://127.0.0.1:{outer}"
        assert await reaches(phone)


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


@contextmanager
def separation() -> Generator[None]:
    """The system's service makes this folder, and an sshd that root runs wants it."""
    folder = Path("/run/sshd")
    made = os.geteuid() == 0 and not folder.exists()
    if made:
        folder.mkdir(mode=0o755)
    try:
        yield
    finally:
        if made:
            folder.rmdir()


@asynccontextmanager
async def sshd(folder: Path) -> AsyncGenerator[dict[str, Any]]:
    """A real sshd on loopback with keys of its own; what `[relay]` needs to reach it."""
    port = free_port()
    for name in ("host", "me"):
        making = await asyncio.create_subprocess_exec(
            "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)
        )
        assert await making.wait() == 0
    public = (folder / "host.pub").read_text().split()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {public[0]} {public[1]}\n")
    shutil.copy(folder / "me.pub", folder / "authorized")
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\nUsePAM no\nStrictModes no\n"
        f"AuthorizedKeysFile {folder}/authorized\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
        "AllowTcpForwarding remote\n"
    )
    with separation():
        server = await asyncio.create_subprocess_exec(
            SSHD, "-D", "-e", "-f", str(folder / "config"), stderr=asyncio.subprocess.DEVNULL
        )
        async with _served(server, port):
            yield {
                "ssh_to": f"{getpass.getuser()}@127.0.0.1",
                "ssh_port": port,
                "ssh_key": folder / "me",
                "ssh_known_hosts": folder / "known",
            }


@asynccontextmanager
async def _served(server: asyncio.subprocess.Process, port: int) -> AsyncGenerator[None]:
    try:
        await eventually(lambda: _listens(port), 20)
        yield
    finally:
        server.terminate()
        await server.wait()


@pytest.mark.skipif(
    not Path(SSHD).exists() or shutil.which("ssh") is None, reason="OpenSSH's server and client are not installed"
)
async def test_ssh_and_again_after_its_death_and_to_no_host_that_it_does_not_know(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("trunkline_relay.adapters.tunnel.FIRST_S", 0.1)
    port = free_port()
    async with sshd(tmp_path) as there:
        settings: dict[str, Any] = {
            "kind": "ssh",
            "url": f"http://127.0.0.1:{port}",
            "ssh_listen": f"127.0.0.1:{port}",
            **there,
        }
        async with host(rig, **settings) as made:
            phone = await pair(rig.home)
            assert await reaches(phone)
            tunnel = made.adapter
            assert isinstance(tunnel, Tunnel)
            assert tunnel.process is not None
            tunnel.process.kill()
            await eventually(lambda: tunnel.starts == 2 and tunnel.connected, 20)
            await eventually(lambda: reaches(phone), 20, ignore=(OSError,))
        assert not tunnel.connected
        caplog.clear()
        (tmp_path / "known").write_text("")
        async with hosting(RelaySettings(home=rig.home, **settings)) as made:
            await eventually(lambda: "tunnel_ended" in caplog.text, 20)
            assert not made.adapter.connected
    ended = next(vars(one) for one in caplog.records if one.message == "tunnel_ended")
    assert "Host key verification failed" in ended["reason"]


@pytest.mark.parametrize(
    ("settings", "variable", "lines", "stream", "url", "start"),
    [
        (
            {"kind": "cloudflared"},
            "TUNNEL_TOKEN",
            QUICK,
            "stderr",
            "https://seasonal-deck-organisms-sf.trycloudflare.com",
            ["tunnel", "--no-autoupdate", "--url", "http://127.0.0.1:PORT"],
        ),
        (
            {"kind": "cloudflared", "url": "https://box.example.org/", "token": "s3cret-token"},
            "TUNNEL_TOKEN",
            QUICK[2:],
            "stderr",
            "https://box.example.org",
            ["tunnel", "--no-autoupdate", "--url", "http://127.0.0.1:PORT", "run"],
        ),
        (
            {"kind": "ngrok", "token": "s3cret-token"},
            "NGROK_AUTHTOKEN",
            NGROK,
            "stdout",
            "https://1f2e.ngrok-free.app",
            ["http", "127.0.0.1:PORT", "--log", "stdout", "--log-format", "json"],
        ),
    ],
    ids=["quick", "named", "ngrok"],
)
async def test_a_fake_tunnel_is_read_and_started_again(
    rig: Rig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    settings: dict[str, str],
    variable: str,
    lines: list[str],
    stream: str,
    url: str,
    start: list[str],
) -> None:
    caplog.set_level("DEBUG")
    monkeypatch.setattr("trunkline_relay.adapters.tunnel.FIRST_S", 0.05)
    monkeypatch.setenv("SOMEBODY_ELSES_SECRET", "x")
    fake = Fake(tmp_path, variable, lines, stream)
    port = free_port()
    async with host(rig, program=str(fake.program), port=port, **settings) as made:
        assert made.adapter.public_url == url
        assert made.status()["url"] == url
        tunnel = made.adapter
        assert isinstance(tunnel, Tunnel)
        assert tunnel.process is not None
        first = tunnel.process
        first.kill()
        await eventually(lambda: tunnel.starts == 2 and tunnel.connected)
        assert tunnel.process is not first
    token = settings.get("token")
    assert [one["argv"] for one in fake.starts()] == 2 * [[word.replace("PORT", str(port)) for word in start]]
    assert [one["token"] for one in fake.starts()] == [token, token]
    assert not any("SOMEBODY_ELSES_SECRET" in one["environment"] for one in fake.starts())
    assert "tunnel_ended" in caplog.text
    assert not token or token not in "".join(str(vars(record)) for record in caplog.records)


async def test_a_program_that_is_not_installed_is_told_of(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    async with hosting(RelaySettings(home=rig.home, kind="ngrok", program="/nowhere/ngrok")) as made:
        await eventually(lambda: "tunnel_ended" in caplog.text)
        assert not made.adapter.connected
        trouble = "ngrok can't be started, No such file or directory: install it, or name it with `program` of [relay]"
        assert made.status()["trouble"] == trouble
    ended = next(vars(one) for one in caplog.records if one.message == "tunnel_ended")
    assert ended["reason"] == trouble


REFUSED = 'ERR failed to request quick Tunnel: Post "https://api.trycloudflare.com/tunnel": dial tcp: no such host'


@pytest.mark.parametrize("lives", [True, False], ids=["silent", "ended"])
async def test_a_program_that_never_says_an_address_is_told_of_where_people_look(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, lives: bool
) -> None:
    monkeypatch.setattr("trunkline_relay.adapters.tunnel.SILENT_S", 0.01)
    monkeypatch.setattr("trunkline_relay.app.WAIT_S", 0.05)
    fake = Fake(
        tmp_path, "TUNNEL_TOKEN", [f"\x1b[31m{REFUSED}", "done with s3cret-token"][: 1 if lives else 2], "stderr"
    )
    if not lives:
        fake.program.write_text(fake.program.read_text().replace("time.sleep(600)", "sys.exit(3)"))
    settings = RelaySettings(
        home=rig.home, kind="cloudflared", url="https://x", token="s3cret-token", program=str(fake.program)
    )
    words, said = (
        ("tunnel_silent", f"cloudflared runs, but has said no address for devices yet: [31m{REFUSED}; look whether")
        if lives
        else ("tunnel_ended", "cloudflared ended, status 3: done with ********; look whether")
    )
    async with hosting(settings) as made:
        await eventually(lambda: words in caplog.text and made.adapter.trouble.startswith(said))
        async with stage.ask(rig.home, do="pair", invitation="x") as asked:
            failed = await asked.next()
        assert failed["code"] == "host_away"
        assert f"at the moment: {said}" in failed["message"]
    logged = next(vars(one) for one in caplog.records if one.message == words)
    assert "look whether this machine reaches the internet" in logged["reason"]
    assert "s3cret-token" not in caplog.text + str(failed)


async def test_a_relay_elsewhere_that_wants_a_token(rig: Rig, tmp_path: Path) -> None:
    known, mine = tmp_path / "known", tmp_path / "mine"
    known.write_text(f"{digest('s3cret-token')} # box\n")
    mine.write_text("s3cret-token\n")
    mine.chmod(0o600)
    async with serving(ServerSettings(home=tmp_path, port=0, tokens=known)) as relay:
        async with hosting(RelaySettings(home=rig.home, url=relay.url)) as made:
            await eventually(lambda: made.line.trouble.startswith("unauthorized"))
            assert not made.line.ready
        async with host(rig, url=relay.url, token_file=mine):
            assert await reaches(await pair(rig.home))
