"""What the NATS user of an extension may, tried out; and an extension in another language."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

import nats.errors
import pytest
from nats.aio.client import Client as Nats
from tests.integration.gateway.secured import Secured, secured
from tests.node.install import node_modules

from trunkline_bus import direct
from trunkline_bus.connection import Bus
from trunkline_testkit import eventually
from trunkline_wire import subjects

SES = "ses_" + "0" * 32
FACT = f"trunk.ev.1.{SES}.agent.fact"


@pytest.fixture
async def place(home: Path) -> AsyncGenerator[Secured]:
    async with secured(home) as made:
        yield made


async def refused(connection: Nats, errors: list[str], *published: str) -> None:
    errors.clear()
    for subject in published:
        await connection.publish(subject, b"{}", reply=connection.new_inbox())
    await eventually(lambda: len(errors) == len(published))
    assert all("permissions violation" in error for error in errors)


async def test_an_extension_may_only_what_it_was_given(place: Secured) -> None:
    place.admit("bot")
    place.admit("other", "events", "participant")
    errors: list[str] = []
    bot = await place.connect("bot", errors)
    other = await place.connect("other", other_errors := [])
    await refused(
        bot,
        errors,
        FACT,
        f"trunk.ev.1.{SES}.ext",
        f"trunk.cmd.{SES}.bot",
        f"trunk.answer.{SES}.gateway",
        "trunk.spawn.any.claude",
        "trunk.sys.token",
        "$JS.API.INFO",
        "$JS.API.STREAM.MSG.GET.EVENTS",
        "$KV.trunk_tokens.x",
        "trunk.ext.other.x",
        "$SRV.PING",
        "trunk.api.bot.viewer.session.list",
        "trunk.api.bot.emit.extension.emit",
        "trunk.api.other.participant.session.prompt",
    )
    await refused(other, other_errors, "trunk.api.other.approver.ask.answer", "trunk.api.other.owner.token.create")
    errors.clear()
    for subject in ("trunk.ev.>", "trunk.ext.other.>", "$SRV.INFO.ext-other", "_INBOX_ext-other.>", "trunk.api.>"):
        await bot.subscribe(subject)
    await eventually(lambda: len(errors) == 5)
    await bot.close()
    await other.close()


async def test_the_answer_to_its_request_can_not_be_sent_into_the_log(place: Secured) -> None:
    place.admit("bot", "viewer")
    bot = await place.connect("bot")
    async with Bus.open(place.settings("admin")) as admin:
        await bot.publish("trunk.api.bot.viewer.session.list", b"{}", reply=FACT)
        # Behind it, so that it was answered before.
        assert (await bot.request("trunk.api.bot.viewer.session.list", b"{}", timeout=5)).data
        assert await direct.last(admin, subjects.EVENTS, FACT) is None
    await bot.close()


async def test_who_is_put_out_is_disconnected(place: Secured) -> None:
    place.admit("bot")
    errors: list[str] = []
    bot = await place.connect("bot", errors)
    (place.directory / "extensions" / "bot.json").unlink()
    place.admit("another")
    await eventually(lambda: not bot.is_connected or errors, 10)
    with suppress(nats.errors.Error):
        await bot.close()


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
async def test_an_extension_in_javascript_is_called_through_the_gateway(place: Secured) -> None:
    environment = place.admit("shouter", "viewer")
    folder = await asyncio.to_thread(node_modules)
    script = folder / "extension.mjs"
    shutil.copy(Path(__file__).parents[2] / "node" / "extension.mjs", script)
    process = await asyncio.create_subprocess_exec(
        "node", str(script), env={"PATH": os.environ["PATH"], **environment}, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert (await asyncio.wait_for(process.stdout.readline(), 30)).strip() == b"ready"
        status, answer = await place.post("ext.shouter.shout", {"text": "quiet"})
        assert (status, answer["shouted"], answer["sessions"]) == (200, "QUIET", 0)
        assert answer["for"]
        status, problem = await place.post("ext.shouter.shout", {})
        assert (status, problem["code"], problem["detail"]) == (502, "extension_failed", "there is nothing to shout")
        assert problem["details"]["reason"] == "400"
        status, opened = await place.post("extension.page", {"extension": "shouter"})
        assert (status, opened["title"]) == (200, "Shouting")
        status, media_type, page = await place.get(opened["path"])
        assert (status, media_type) == (200, "text/html")
        assert b'<script src="who.js">' in page
        status, media_type, script = await place.get(f"{opened['path']}who.js")
        assert (status, media_type, answer["for"].encode() in script) == (200, "text/javascript", True)
        status, _, large = await place.get(f"{opened['path']}large.bin")
        assert (status, large) == (200, b"trunk" * 300_000)
        assert await place.get(f"{opened['path']}none") == (404, "text/plain", b"there is no none")
    finally:
        process.terminate()
        await process.wait()
    status, problem = await place.post("ext.shouter.shout", {"text": "quiet"})
    assert problem["code"] in {"unknown_extension", "timeout"}
