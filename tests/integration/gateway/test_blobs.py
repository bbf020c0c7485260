"""Large values through the gateway: part by part as a method, whole over HTTP."""

import base64
import hashlib
import os

import aiohttp
from tests.integration.gateway.rig import Rig

from trunkline_bus.blobs import Blobs
from trunkline_testkit.product import Client


async def whole(client: Client, sha256: str) -> bytes:
    parts: list[bytes] = []
    after: str | None = None
    while True:
        part = await client.call("blob.get", sha256=sha256, after=after)
        parts.append(base64.b64decode(part["data"]))
        after = part["next"]
        if after is None:
            return b"".join(parts)


async def test_a_large_value_comes_in_parts_and_whole(rig: Rig) -> None:
    data = os.urandom(3_000_000)
    name = (await Blobs(rig.bus).put(data, "application/octet-stream")).sha256
    empty = (await Blobs(rig.bus).put(b"")).sha256
    async with await rig.client() as owner:
        made = await owner.call("token.create", actor="guest", role="viewer")
        assert await whole(owner, name) == data
        assert await whole(owner, empty) == b""
    headers = {"Authorization": f"Bearer {made['token']}"}
    async with aiohttp.ClientSession(rig.running.url, headers=headers) as http:
        async with http.get(f"/api/v1/blobs/{name}") as answer:
            assert (answer.status, await answer.read()) == (200, data)
            assert answer.headers["Content-Disposition"].startswith("attachment")
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
        for wrong, status, code in (
            (hashlib.sha256(b"nobody").hexdigest(), 404, "blob_missing"),
            ("..%2f..%2fetc", 400, "bad_params"),
            ("A" * 64, 400, "bad_params"),
        ):
            async with http.get(f"/api/v1/blobs/{wrong}") as answer:
                assert (answer.status, (await answer.json())["code"]) == (status, code)
    async with aiohttp.ClientSession(rig.running.url) as http, http.get(f"/api/v1/blobs/{name}") as answer:
        assert (answer.status, (await answer.json())["code"]) == (401, "unauthorized")


async def test_a_part_that_is_none_is_refused(rig: Rig) -> None:
    name = (await Blobs(rig.bus).put(b"x" * 300_000)).sha256
    for after in ("", "x", "1", "1-", "-1--1", "1-99999999999999999999"):
        status, answer = await rig.post("blob.get", {"sha256": name, "after": after}, token=rig.token)
        assert (status, answer["code"]) == (400, "bad_params")
