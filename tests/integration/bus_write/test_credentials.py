"""What each NATS user may do, tried out: a refused publish is a time-out to the caller and a text to the error handler."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import nats
import nats.errors
import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import NoStreamResponseError
from tests.integration.bus_write.sessions import new_writer, note

from trunkline_bus import topology
from trunkline_bus.blobs import Blobs
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.credentials import GRANTS, ensure_keys, public_key, server_config
from trunkline_bus.lease import Lease
from trunkline_bus.reader import read_session
from trunkline_bus.server import EmbeddedServer, ServerSettings
from trunkline_testkit import eventually
from trunkline_testkit.ports import free_port
from trunkline_wire import TrunklineError

SES = "ses_" + "0" * 32
FACT, ASK = f"trunk.ev.1.{SES}.agent.fact", f"trunk.ev.1.{SES}.agent.ask"
PERMISSION, TEAM, DELTA = f"trunk.ev.1.{SES}.permission", f"trunk.ev.1.{SES}.team", f"trunk.delta.1.{SES}"
EXTENSION = f"trunk.ev.1.{SES}.ext"
COMMAND, ANSWER, SPAWN = f"trunk.cmd.{SES}.ann", f"trunk.answer.{SES}.ann", "trunk.spawn.any.claude"
SYSTEM, DEAD, BLOB = "trunk.sys.token", "trunk.dlq.x", "$O.trunk_blobs.C.x"
LEASE, SESSIONS, ASKS, TOKENS = "$KV.trunk_leases.x", "$KV.trunk_sessions.x", "$KV.trunk_asks.x", "$KV.trunk_tokens.x"
TEAMS = "$KV.trunk_teams.x"
EVERYTHING = {
    FACT, ASK, PERMISSION, TEAM, EXTENSION, DELTA, COMMAND, ANSWER, SPAWN, SYSTEM, DEAD, BLOB, LEASE, SESSIONS, ASKS, TOKENS, TEAMS,
}  # fmt: skip
MAY_WRITE = {
    "admin": EVERYTHING,
    "worker": {FACT, ASK, DELTA, SPAWN, DEAD, BLOB, LEASE},
    "projector": {SESSIONS, LEASE, DEAD, BLOB},
    "teams": {TEAM, TEAMS, LEASE, DEAD, BLOB},
    "permissions": {PERMISSION, SYSTEM, ASKS, LEASE, DEAD, BLOB},
    "gateway": {EXTENSION, COMMAND, ANSWER, SPAWN, SYSTEM, TOKENS, DEAD},
    "relay": set[str](),
    "reader": set[str](),
}


class Server:
    def __init__(self, url: str, keys: dict[str, Path]) -> None:
        self.url, self.keys = url, keys

    def settings(self, user: str) -> BusSettings:
        return BusSettings(url=self.url, seed_file=self.keys[user], name=user, connect_within=5)

    async def connect(self, user: str, errors: list[str]) -> Client:
        async def on_error(error: Exception) -> None:
            errors.append(str(error))

        seed, inbox = str(self.keys[user]), f"_INBOX_{user}"
        return await nats.connect(self.url, nkeys_seed=seed, inbox_prefix=inbox, error_cb=on_error)


@pytest_asyncio.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    keys = ensure_keys(tmp_path / "nats" / "keys")
    authorization = server_config({user: public_key(file) for user, file in keys.items()})
    settings = ServerSettings(directory=tmp_path / "nats", port=free_port(), authorization=authorization)
    async with EmbeddedServer(settings) as embedded:
        secured = Server(embedded.url, keys)
        async with Bus.open(secured.settings("admin")) as bus:
            await topology.apply(bus.js)
        yield secured


async def test_keys_are_made_once_and_private(tmp_path: Path) -> None:
    first = {user: file.read_bytes() for user, file in ensure_keys(tmp_path / "keys").items()}
    files = ensure_keys(tmp_path / "keys")
    assert {user: file.read_bytes() for user, file in files.items()} == first
    assert set(files) == set(GRANTS) == set(MAY_WRITE)
    assert {file.stat().st_mode & 0o777 for file in files.values()} == {0o600}
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o700
    assert all(public_key(file).startswith("U") for file in files.values())
    assert len({public_key(file) for file in files.values()}) == len(files)


async def test_a_file_that_is_no_seed_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.nk").write_text("nonsense")
    with pytest.raises(TrunklineError, match=r"x\.nk"):
        public_key(tmp_path / "x.nk")


async def test_without_a_key_nobody_comes_in(server: Server, tmp_path: Path) -> None:
    strangers = ensure_keys(tmp_path / "strangers")
    for settings in (BusSettings(url=server.url), BusSettings(url=server.url, seed_file=strangers["admin"])):
        with pytest.raises(TrunklineError) as caught:
            await Bus.open(settings)
        assert caught.value.code == "unauthorized"


async def test_a_key_under_another_name_says_what_is_wrong(server: Server, tmp_path: Path) -> None:
    renamed = tmp_path / "seed.nk"
    renamed.write_bytes(server.keys["gateway"].read_bytes())
    async with Bus.open(BusSettings(url=server.url, seed_file=renamed, connect_within=5)) as bus:
        with pytest.raises(TrunklineError, match="a key's file is named after its user") as caught:
            async with asyncio.timeout(10):
                await bus.wait_ended()
        assert caught.value.code == "unauthorized"
        assert bus.ended


@pytest.mark.parametrize("user", sorted(MAY_WRITE))
async def test_each_user_writes_its_own_subjects_and_no_other(server: Server, user: str) -> None:
    errors: list[str] = []
    connection = await server.connect(user, errors)
    js = connection.jetstream(timeout=5)

    async def stored(subject: str) -> bool:
        before = len(errors)
        writing = asyncio.ensure_future(js.publish(subject, b"{}"))
        refused = asyncio.ensure_future(
            eventually(lambda: any(subject.lower() in text.lower() for text in errors[before:]), 5)
        )
        await asyncio.wait((writing, refused), return_when=asyncio.FIRST_COMPLETED)
        took = writing.done() and writing.exception() is None
        for task in (writing, refused):
            task.cancel()
        await asyncio.gather(writing, refused, return_exceptions=True)
        return took

    try:
        assert {subject for subject in EVERYTHING if await stored(subject)} == MAY_WRITE[user]
    finally:
        await connection.close()


async def test_only_the_admin_changes_deletes_and_purges_streams(server: Server) -> None:
    for user in sorted(set(MAY_WRITE) - {"admin"}):
        errors: list[str] = []
        connection = await server.connect(user, errors)
        for name in ("STREAM.PURGE.EVENTS", "STREAM.DELETE.EVENTS", "STREAM.UPDATE.EVENTS", "STREAM.CREATE.X"):
            await connection.publish(f"$JS.API.{name}", b"{}")
        await eventually(lambda errors=errors: len(errors) == 4)
        await connection.close()


async def test_nobody_hears_what_is_not_meant_for_him(server: Server) -> None:
    forbidden = {"worker": "trunk.cmd.>", "projector": "_INBOX_worker.>", "gateway": "_INBOX_admin.>", "reader": ">"}
    for user, subject in forbidden.items():
        errors: list[str] = []
        connection = await server.connect(user, errors)
        await connection.subscribe(subject)
        await eventually(lambda errors=errors: len(errors) == 1)
        assert "permissions violation for subscription" in errors[0].lower()
        await connection.close()


async def test_a_worker_works_with_what_it_may(server: Server) -> None:
    async with Bus.open(server.settings("worker")) as bus:
        lease = Lease(bus, SES, {"worker": "w"}, 30)
        assert await lease.acquire()
        writer = await new_writer(bus)
        writer.append(note("x" * 600_000))
        writer.piece("itm", 0, "text", "streaming")
        await writer.flush()
        stored = await read_session(bus, writer.session)
        assert [one.type for one in stored] == ["session.created", "message.system"]
        reference = stored[1].event().data.text  # type: ignore[attr-defined]  # a note
        assert await Blobs(bus).get(reference.sha256) == b"x" * 600_000
        await writer.close()
        await lease.release()


async def test_a_reader_hears_gets_and_pulls(server: Server) -> None:
    errors: list[str] = []
    admin = await server.connect("admin", errors)
    reader = await server.connect("reader", errors)
    heard: list[Msg] = []
    pulled: list[Msg] = []

    async def hear(message: Msg) -> None:
        heard.append(message)

    async def pull(message: Msg) -> None:
        pulled.append(message)

    inbox = reader.new_inbox()
    await reader.subscribe("trunk.ev.>", cb=hear)
    await reader.subscribe(inbox, cb=pull)
    await reader.flush()
    js = admin.jetstream()
    await js.publish(FACT, b'{"n":1}')
    await eventually(lambda: [message.data for message in heard] == [b'{"n":1}'])
    assert (await reader.request("$JS.API.DIRECT.GET.EVENTS", b'{"seq":1}', timeout=5)).data == b'{"n":1}'
    made = {"stream_name": "EVENTS", "config": {"durable_name": "bi", "ack_policy": "explicit"}}
    await admin.request("$JS.API.CONSUMER.DURABLE.CREATE.EVENTS.bi", json.dumps(made).encode(), timeout=5)

    async def event_came() -> bool:
        # As any client does: a pull that brought nothing is asked again.
        await reader.publish("$JS.API.CONSUMER.MSG.NEXT.EVENTS.bi", b'{"batch":1,"expires":900000000}', reply=inbox)
        return any(message.data == b'{"n":1}' for message in pulled)

    await eventually(event_came, interval=0.3)
    await reader.publish(next(message.reply for message in pulled if message.data), b"+ACK")

    async def acknowledged() -> bool:
        return (await js.consumer_info("EVENTS", "bi")).num_ack_pending == 0

    await eventually(acknowledged)
    assert errors == []
    await reader.close()
    await admin.close()


async def test_a_reader_can_not_aim_an_answer_at_a_stream(server: Server) -> None:
    """The server publishes an answer wherever the request says: in the reader's account that reaches nobody."""
    errors: list[str] = []
    admin = await server.connect("admin", errors)
    reader = await server.connect("reader", errors)
    js = admin.jetstream()
    await js.publish(FACT, b'{"n":1}')
    made = {"stream_name": "EVENTS", "config": {"durable_name": "bi", "ack_policy": "none"}}
    await admin.request("$JS.API.CONSUMER.DURABLE.CREATE.EVENTS.bi", json.dumps(made).encode(), timeout=5)
    for target in (COMMAND, FACT, LEASE):
        await reader.publish("$JS.API.DIRECT.GET.EVENTS", b'{"seq":1}', reply=target)
        await reader.publish("$JS.API.CONSUMER.MSG.NEXT.EVENTS.bi", b'{"batch":1,"expires":500000000}', reply=target)
    # Answered in order: once this one is back, the others were too.
    assert (await reader.request("$JS.API.DIRECT.GET.EVENTS", b'{"seq":1}', timeout=5)).data == b'{"n":1}'
    for stream, held in (("EVENTS", 1), ("COMMANDS", 0), ("KV_trunk_leases", 0)):
        assert (await js.stream_info(stream)).state.messages == held
    with pytest.raises((nats.errors.TimeoutError, NoStreamResponseError)):
        await reader.jetstream(timeout=0.3).publish(COMMAND, b"{}")
    await reader.close()
    await admin.close()


async def test_a_service_that_may_not_is_told_by_its_condition(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline_bus.leader.ACK_WITHIN_S", 0.2)
    monkeypatch.setattr("trunkline_bus.obstacles.GIVE_UP_AFTER_S", 0.5)
    async with Bus.open(server.settings("gateway")) as bus:
        with pytest.raises(TrunklineError, match="log_unwritable"):
            await new_writer(bus)
