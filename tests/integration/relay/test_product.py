"""The whole product behind a relay: paired by the command line, steered from elsewhere, read by nobody in between, and out once revoked."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.integration.relay import stage
from tests.integration.relay.device import CutError, Keys, Talk, meet, talk
from tests.integration.relay.stage import noted

from trunkline_testkit import eventually
from trunkline_testkit.product import Product, running
from trunkline_wire import TrunklineError
from trunkline_wire.ids import new_session_id

SECRET_WORDS = "the heron lands at seven"


@pytest.fixture
def carried(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    return noted(monkeypatch)


async def paired(product: Product, *arguments: str) -> tuple[Keys, str]:
    """A device that `trunkline pair` has taken in, and what that command printed."""
    command = await asyncio.create_subprocess_exec(
        "trunkline",
        "pair",
        *arguments,
        env=product.environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert command.stdin is not None
    assert command.stdout is not None
    link = (await command.stdout.readline()).decode().strip()
    async with meet(link) as meeting:
        command.stdin.write(b"y\n")
        out, err = await command.communicate()
        assert meeting.code in err.decode(), err
        assert command.returncode == 0, err
        return await meeting.outcome(), out.decode() + err.decode()


async def event(one: Talk, type_: str) -> dict[str, Any]:
    """The next event of a type, of those that came already or will come."""
    while True:
        for frame in one.frames:
            if frame["type"] == "event" and frame["event"] == type_:
                return frame["payload"]
        said = await one.next()
        one.frames += said if isinstance(said, list) else [said]


async def test_from_pairing_to_revocation(home: Path, carried: list[bytes]) -> None:
    async with stage.relay() as relay:
        state = home / ".trunkline"
        state.mkdir(parents=True)
        (state / "trunkline.toml").write_text(f'[relay]\nkind = "embedded"\nurl = "{relay.url}"\nname = "box"\n')
        async with running(home) as product:
            assert product.find("relay") is not None
            await eventually(lambda: relay.switch.hosts, 20)
            phone, printed = await paired(product, "--name", "Phone", "--actor", "ann")
            assert "'Phone'" in printed
            session = new_session_id()
            async with asyncio.timeout(60), talk(phone) as one:
                hello = await one.call("hello", protocol=1, client="phone")
                assert (hello["actor"], hello["role"], hello["device"]) == ("ann", "owner", phone.device)
                await one.call("session.create", session=session, adapter="demo", cwd=str(home))
                await one.call("subscribe", session=session, patterns=["*"], **{"from": "start"})
                await one.call(
                    "session.prompt", session=session, text=f"say {SECRET_WORDS}; ask make test; say {SECRET_WORDS}"
                )
                ask = await event(one, "permission.requested")
                await one.call("ask.answer", ask=ask["data"]["ask"], behaviour="allow")
                decided = await event(one, "ask.decided")
                assert (decided["data"]["behaviour"], decided["data"]["by"]) == ("allow", "ann")
                await event(one, "turn.completed")
                assert SECRET_WORDS in json.dumps(one.frames)
                _, listed, _ = await product.cli("devices")
                assert phone.device[:16] in listed
                assert "paired" in listed
                code, out, _ = await product.cli("devices", "revoke", phone.device)
                assert (code, "rotates its keys" in out) == (0, True)
                assert await one.until_closed() == "revoked"
            with pytest.raises((CutError, TrunklineError)):
                async with talk(phone):
                    pass
            await eventually(lambda: not relay.switch.hosts[phone.host_name].admitted)
            with pytest.raises(CutError, match="unpaired"):
                async with talk(phone):
                    pass
            logs = "".join(path.read_text(errors="replace") for path in (state / "logs").iterdir())
            keys = json.loads((state / "keys" / "host.json").read_text())
            arguments = [" ".join(process.cmdline()) for process in product.processes()]
    whole = b"".join(carried)
    assert len(carried) > 20
    for words in (SECRET_WORDS, session, "ann", "permission.requested", "session.prompt", phone.token, "Phone"):
        assert words.encode() not in whole, words
    for secret in (phone.token, keys["route"], *(one["secret"] for one in keys["identities"])):
        assert secret not in logs
        assert not any(secret in line for line in arguments)


async def test_the_command_line_of_another_machine(home: Path, tmp_path: Path) -> None:
    async with stage.relay() as relay:
        state = home / ".trunkline"
        state.mkdir(parents=True)
        (state / "trunkline.toml").write_text(f'[relay]\nurl = "{relay.url}"\nname = "box"\n')
        async with running(home) as product:
            await eventually(lambda: relay.switch.hosts, 20)
            laptop = Product(tmp_path)
            asking, joining = [
                await asyncio.create_subprocess_exec(
                    "trunkline",
                    *words,
                    env=environment,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=asyncio.subprocess.PIPE,
                )
                for words, environment in (
                    (("pair", "--role", "participant", "--actor", "ann"), product.environment),
                    (("pair", "join", "--name", "Laptop"), laptop.environment),
                )
            ]
            assert asking.stdout is not None
            assert asking.stdin is not None
            assert joining.stderr is not None
            link = await asking.stdout.readline()
            told = asyncio.create_task(joining.communicate(link))
            asking.stdin.write(b"y\n")
            (_, asked), (_, joined) = await asyncio.wait_for(asyncio.gather(asking.communicate(), told), 30)
            code = re.search(r"\d{3} \d{3}", asked.decode())
            assert code is not None
            assert code[0] in joined.decode()
            assert (asking.returncode, joining.returncode) == (0, 0), (asked, joined)
            status, out, err = await laptop.cli("--host", "box", "devices")
            assert (status, "Laptop" in out) == (0, True), err
            status, _, err = await laptop.cli("--host", "box", "token", "list")
            assert (status, "forbidden" in err) == (1, True)
            (device,) = re.findall(r"dev_\w+", out)
            assert (await product.cli("devices", "revoke", device))[0] == 0
            statuses: list[int] = []

            async def unpaired() -> bool:
                status, _, err = await laptop.cli("--host", "box", "ls")
                statuses.append(status)
                return "unpaired" in err

            await eventually(unpaired, 20)
            assert set(statuses) == {1}


async def test_without_its_table_there_is_no_relay_and_pairing_says_what_to_do(home: Path) -> None:
    async with running(home) as product:
        assert product.find("relay") is None
        code, _, err = await product.cli("pair")
        assert code == 1
        assert "[relay]" in err
        assert str(product.trunkline_home / "trunkline.toml") in err


async def test_a_relay_service_that_refuses_its_settings_says_which(home: Path) -> None:
    state = home / ".trunkline"
    state.mkdir(parents=True)
    (state / "trunkline.toml").write_text('[relay]\nurl = "relay.example.org"\n')
    product = Product(home)
    with pytest.raises(AssertionError, match=r'url = "https://relay\.example\.org"'):
        await product.start()
