"""A phone, a relay and a host on three networks: real Chromium, the real Claude Code on a scripted model, `trunkline relay serve` between
the two, which can't reach each other. Whatever goes by the relay is searched for what was said.
"""

import asyncio
import contextlib
import os
import re
import stat
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Final, Self

import pytest
from playwright.async_api import expect
from tests.e2e.browser import ABSENT, CHROMIUM, MISSING, Screen, chromium
from tests.e2e.log import Log
from tests.e2e.test_relay import paired

from trunkline_testkit import eventually
from trunkline_testkit.agents import require
from trunkline_testkit.model_api import ScriptedApi
from trunkline_testkit.namespaces import Namespaces, namespaces_allowed
from trunkline_testkit.offline import offline_env
from trunkline_testkit.product import Product, running

pytestmark = [
    pytest.mark.live,
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(ABSENT, reason=MISSING),
    pytest.mark.skipif(not namespaces_allowed(), reason="needs root and network namespaces"),
]

PORT: Final = 8087
SAID: Final = "the heron lands at seven"
TYPED: Final = "herons-were-counted"
FILE: Final = "heron-notes.txt"
QUEUED: Final = "a heron flies once more"
SNIFF: Final = """
import socket, sys
line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
with open(sys.argv[1], "wb", buffering=0) as out:
    print("ready", flush=True)
    while True:
        out.write(line.recv(65536))
"""
"""All that comes and goes at the interfaces of a network."""


class Relay:
    """`trunkline relay serve` in a network of its own."""

    def __init__(self, address: str, within: Sequence[str], directory: Path) -> None:
        self.url = f"http://{address}:{PORT}"
        self._address = address
        self._within = within
        self._directory = directory
        self.log = directory / "relay.log"
        self.wire = directory / "wire"
        self._starts = 0
        self._process: asyncio.subprocess.Process | None = None
        self._sniffing: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        serve = ("serve", "--bind", self._address, "--port", str(PORT), "--hosts", self._address, "--url", self.url)
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(*self._within, sys.executable, "-m", "trunkline_cli", "relay", *serve, "--http-port", "0"),
                env={"PATH": os.environ["PATH"], "HOME": str(self._directory), "TRUNKLINE_LOG_LEVEL": "debug"},
                stdout=log,
                stderr=log,
            )
        self._starts += 1
        await eventually(lambda: self.log.read_text().count("listening") == self._starts, 30)

    async def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    async def __aenter__(self) -> Self:
        self._sniffing = await asyncio.create_subprocess_exec(
            *(*self._within, sys.executable, "-c", SNIFF, str(self.wire)), stdout=asyncio.subprocess.PIPE
        )
        assert self._sniffing.stdout is not None
        assert await self._sniffing.stdout.readline() == b"ready\n"
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in (self._process, self._sniffing):
            if process is not None and process.returncode is None:
                process.kill()
                await process.wait()

    def seen(self) -> bytes:
        """All that the relay has in its memory, in its log, and that came and went at its network."""
        parts = [self.wire.read_bytes(), self.log.read_bytes()]
        with Path(f"/proc/{self.pid}/mem").open("rb", buffering=0) as memory:
            for line in Path(f"/proc/{self.pid}/maps").read_text().splitlines():
                begin, end, rights = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()  # type: ignore[union-attr]
                if not rights.startswith("rw"):
                    continue
                with contextlib.suppress(OSError):
                    memory.seek(int(begin, 16))
                    parts.append(memory.read(int(end, 16) - int(begin, 16)))
        return b"".join(parts)


@pytest.fixture
def networks() -> Generator[Namespaces]:
    with Namespaces(3) as made:
        (phone, _), (host, _), _ = made.hosts
        made.isolate(phone)
        made.isolate(host)
        yield made


async def unreachable(within: Sequence[str], address: str) -> bool:
    """Whether packets from there to the address come to nothing: where they arrive, a port that nobody has refuses."""
    code = f"import socket; socket.create_connection(({address!r}, 9), 2)"
    process = await asyncio.create_subprocess_exec(
        *(*within, sys.executable, "-c", code), stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    return b"ConnectionRefused" not in said and (b"timed out" in said or b"No route" in said)


def chromium_within(within: Sequence[str], directory: Path) -> Path:
    """A program that is Chromium in a network."""
    program = directory / "chromium"
    program.write_text(f'#!/bin/sh\nexec {" ".join(within)} {CHROMIUM} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


async def test_a_phone_works_with_an_agent_at_home_and_nobody_in_between_reads_a_word(
    networks: Namespaces, tmp_path: Path
) -> None:
    (phone_at, in_phones), (host_at, in_hosts), (relay_at, in_relays) = networks.hosts
    assert await unreachable(in_phones, host_at)
    assert await unreachable(in_hosts, phone_at)
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    async with ScriptedApi(host=networks.here) as api, Relay(relay_at, in_relays, tmp_path) as relay:
        environment = offline_env("claude", home, api.url) | {"TRUNKLINE_PROGRAM_CLAUDE": str(require("claude"))}
        (home / ".trunkline").mkdir(parents=True, exist_ok=True)
        settings = f'[relay]\nkind = "embedded"\nurl = "{relay.url}"\nname = "box"\n'
        (home / ".trunkline" / "trunkline.toml").write_text(settings)
        flag = f"--unsafely-treat-insecure-origin-as-secure={relay.url}"
        async with (
            running(home, environment, within=in_hosts) as product,
            chromium(flag, program=chromium_within(in_phones, tmp_path)) as browser,
        ):
            phone = await paired(browser, product, relay)
            await phone.page.wait_for_url(f"{relay.url}/")
            await phone.page.locator(".connection[data-state=open]").first.wait_for(state="attached")
            path = await phone.start("Claude Code", project, f"SAY={SAID}")
            log = Log(product, path)
            await expect(phone.page.locator(".said").last).to_have_text(SAID)
            await log.answered(SAID)
            await approve(phone, project, log)
            await type_in_a_terminal(phone, product, project)
            await phone.open(path)
            await change_the_network(phone, networks, phone_at, log)
            await kill_the_relay(phone, relay, log)
            await log.is_shown(phone.page)
            seen = relay.seen()
            for word in (SAID, TYPED, FILE, QUEUED, "piece 7", str(project), product.token):
                assert word.encode() not in seen, word
            # where to look is right: the relay knows and carries what it has to
            assert b"hst_" in seen
            assert b"/relay/v1/device/" in seen
            await revoke(phone, product)


async def approve(phone: Screen, project: Path, log: Log) -> None:
    await phone.prompt(f"SCENARIO=bash CMD=touch {project / FILE}")
    await phone.page.locator(".transcript .ask, .ask").first.get_by_role("button", name="Allow", exact=True).click()
    await log.answered(FILE)
    assert (project / FILE).exists()


async def type_in_a_terminal(phone: Screen, product: Product, project: Path) -> None:
    async with await product.client() as client:
        made = await client.call("session.create", adapter="pty", agent="shell", cwd=str(project))
    await phone.open(f"/terminal/{made['session']}")
    await phone.page.get_by_role("button", name="Type here").click()
    await expect(phone.page.locator(".terminal .meta")).to_have_text("you type")
    await phone.page.locator(".terminal .screen").click()
    await phone.page.keyboard.type(f"echo $((40 + 2)) > {TYPED}\n")
    await eventually((project / TYPED).exists, 30)


async def change_the_network(phone: Screen, networks: Namespaces, at: str, log: Log) -> None:
    """In mid-stream there is no network for a while, then one with another address."""
    await phone.prompt("SCENARIO=slow N=120 DELAY_MS=100")
    await expect(phone.page.locator(".said").last).to_contain_text("piece 9")
    networks.cut(at)
    await phone.page.wait_for_timeout(5_000)
    networks.readdress(at)
    networks.heal(at)
    await expect(phone.page.locator(".said").last).to_have_text(pieces(120))
    await log.answered("N=120")


async def kill_the_relay(phone: Screen, relay: Relay, log: Log) -> None:
    await phone.prompt("SCENARIO=slow N=90 DELAY_MS=100")
    await expect(phone.page.locator(".said").last).to_contain_text("piece 9")
    await relay.kill()
    await expect(phone.page.locator(".connection[data-state=open]")).to_have_count(0)
    await phone.prompt(f"SAY={QUEUED}")
    await relay.start()
    await expect(phone.page.locator(".said").last).to_have_text(QUEUED)
    await expect(phone.page.locator(".said").nth(-2)).to_have_text(pieces(90))
    await log.answered(QUEUED)


async def revoke(phone: Screen, product: Product) -> None:
    async with await product.client() as client:
        (device,) = [one["id"] for one in (await client.call("device.list"))["devices"]]
    code, _, error = await product.cli("devices", "revoke", device)
    assert code == 0, error
    await expect(phone.page.locator(".sign-in")).to_be_visible()


def pieces(count: int) -> str:
    return " ".join(f"piece {number}" for number in range(1, count + 1))
