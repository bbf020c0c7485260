"""Pages of extensions: given in a sandbox, to who may see them, without a way out."""

import base64
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import nats
import pytest
from nats.micro import add_service
from nats.micro.request import Request
from nats.micro.service import EndpointConfig
from tests.integration.gateway.rig import Rig
from yarl import URL

from trunkline_bus import direct
from trunkline_gateway import pages
from trunkline_gateway.pages import check_path
from trunkline_gateway.roles import Principal, Scope
from trunkline_gateway.tickets import Tickets
from trunkline_testkit import eventually
from trunkline_wire import TrunklineError, subjects

Answer = dict[str, Any] | bytes | None


class Site:
    """A fake extension `bot` with pages: what it answers by path, and what it was asked. None: it answers nothing."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {"": page("<h1>hi</h1>")}
        self.asked: list[tuple[str, dict[str, str]]] = []


def page(body: str | bytes, **about: Any) -> dict[str, Any]:
    raw = body.encode() if isinstance(body, str) else body
    return {"body": base64.b64encode(raw).decode(), **about}


@asynccontextmanager
async def site(rig: Rig, **metadata: str) -> AsyncGenerator[Site]:
    made = Site()
    connection = await nats.connect(rig.server.url)

    async def handle(request: Request) -> None:
        path = json.loads(request.data)["path"]
        made.asked.append((path, dict(request.headers or {})))
        answer = made.answers.get(path, page("none", status=404))
        if answer is not None:
            await request.respond(answer if isinstance(answer, bytes) else json.dumps(answer).encode())

    service = await add_service(connection, name="ext-bot", version="1.0.0")
    subject, about = "trunk.ext.bot.page", {"pages": "true", "role": "viewer", **metadata}
    await service.add_endpoint(EndpointConfig(name="page", subject=subject, handler=handle, metadata=about))
    await connection.flush()  # the server knows of it now
    try:
        yield made
    finally:
        await service.stop()
        await connection.close()


async def opened(rig: Rig, token: str | None = None) -> str:
    """The path of the pages, for an owner or whose `token` it is."""
    status, answer = await rig.post("extension.page", {"extension": "bot"}, token=token or rig.token)
    assert status == 200, answer
    return str(answer["path"])


async def get(rig: Rig, path: str, **headers: str) -> tuple[int, Any, dict[str, str]]:
    url = URL(f"{rig.running.url}{path}", encoded=True)
    async with aiohttp.ClientSession() as http, http.get(url, headers=headers) as answer:
        body: Any = await answer.read()
        if answer.content_type == "application/problem+json":
            body = json.loads(body)["code"]
        return answer.status, body, dict(answer.headers)


async def test_a_page_is_in_a_sandbox_and_no_cookie_comes_or_goes(rig: Rig) -> None:
    async with site(rig) as bot:
        path = await opened(rig)
        bot.answers["a/b.css"] = page("p {}", type="text/css")
        status, body, headers = await get(rig, path, Cookie="trunkline_x=secret", Authorization=f"Bearer {rig.token}")
        assert (status, body, headers["Content-Type"]) == (200, b"<h1>hi</h1>", "text/html; charset=utf-8")
        policy = headers["Content-Security-Policy"].split("; ")
        assert policy[0] == "sandbox allow-scripts allow-forms"  # no allow-same-origin: it has no origin
        assert {"default-src 'none'", "frame-ancestors 'self'", "base-uri 'none'", "form-action 'none'"} <= {*policy}
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"  # its address, which is a secret, goes nowhere
        assert headers["Cache-Control"] == "no-store"
        assert "Set-Cookie" not in headers
        ((_, told),) = bot.asked
        assert {name for name in told if name.startswith("Trunk-")} == {
            "Trunk-Actor",
            "Trunk-Role",
            "Trunk-Via",
            "Trunk-Method",
        }
        assert "secret" not in str(told)
        assert rig.token not in str(told)
        # As browsers ask for what a page without an origin loads.
        status, body, headers = await get(rig, f"{path}a/b.css", Origin="null")
        assert (status, body) == (200, b"p {}")
        assert headers["Cross-Origin-Resource-Policy"] == "cross-origin"
        assert (await get(rig, f"{path}a/b.css", Origin="https://elsewhere.example"))[:2] == (403, "bad_origin")
        for elsewhere in ("/", "/ext/bot", "/api/v1/openapi.json"):
            assert (await get(rig, elsewhere, Origin="null"))[:2] == (403, "bad_origin")
        assert (await get(rig, f"{path}none"))[:2] == (404, b"none")
        # Ours around it: only it may be framed there, and only from here.
        status, _, headers = await get(rig, "/ext/bot")
        assert status == 200
        assert "frame-src 'self'" in headers["Content-Security-Policy"]
        assert "script-src 'self';" in headers["Content-Security-Policy"]
        assert headers["X-Frame-Options"] == "DENY"


async def test_who_may_see_them(rig: Rig) -> None:
    tokens = rig.running.gateway.tokens
    viewer, record = await tokens.create("eve", "viewer")
    limited, _ = await tokens.create("bob", "owner", scope=Scope(sessions=("ses_" + "0" * 32,)))
    async with site(rig, role="participant"):
        for token in (viewer, limited):
            status, problem = await rig.post("extension.page", {"extension": "bot"}, token=token)
            assert (status, problem["code"]) == (403, "forbidden")
        assert (await rig.post("extension.page", {"extension": "bot"}))[0] == 401
        # It is no method, and a page that nobody offers is none.
        assert (await rig.post("ext.bot.page", {}, token=rig.token))[1]["code"] == "unknown_method"
        assert (await rig.post("extension.page", {"extension": "none"}, token=rig.token))[1][
            "code"
        ] == "unknown_extension"
        path = await opened(rig)
    async with site(rig) as bot:
        await rig.running.gateway.extensions.look()
        of_viewer = await opened(rig, viewer)
        assert (await get(rig, of_viewer))[0] == 200
        assert bot.asked[-1][1]["Trunk-Actor"] == "eve"
        assert bot.asked[-1][1]["Trunk-Role"] == "viewer"
        await tokens.revoke(record.id)
        await eventually(lambda: record.id not in tokens.records.known)
        assert (await get(rig, of_viewer))[:2] == (401, "unauthorized")
        assert (await get(rig, path.replace("/ext/bot/", "/ext/other/")))[:2] == (401, "unauthorized")
        assert (await get(rig, "/ext/bot/ticket/"))[:2] == (401, "unauthorized")
        altered = path[:-3] + ("A" if path[-3] != "A" else "B") + path[-2:]
        assert (await get(rig, altered))[:2] == (401, "unauthorized")
    async with site(rig, role="owner"):
        await rig.running.gateway.extensions.look()
        viewer, _ = await tokens.create("eve", "viewer")
        assert (await rig.post("extension.page", {"extension": "bot"}, token=viewer))[0] == 403
        # What was opened before is judged anew.
        ticket, _ = rig.running.gateway.tickets.make(
            "bot", Principal(actor="eve", role="viewer", via="tcp"), time.time()
        )
        status, code, headers = await get(rig, f"/ext/bot/{ticket}/")
        assert (status, code) == (403, "forbidden")
        assert headers["X-Frame-Options"] == "SAMEORIGIN"  # so that the frame shows why


@pytest.mark.parametrize(
    "path",
    ["../x", "a/../../x", "..", ".", "a/./b", "//x", "a//b", "/x", "a\\b", "a\x00", "a\n", "a/b\r\nX-Y: z", "a" * 513],
)
def test_a_path_has_no_way_out(path: str) -> None:
    with pytest.raises(TrunklineError) as refused:
        check_path(path)
    assert refused.value.code == "bad_params"


async def test_the_gateway_decodes_a_path_before_it_judges_it(rig: Rig) -> None:
    async with site(rig) as bot:
        path = await opened(rig)
        for escape in ("..%2f..%2fapi", "%2e%2e/x", "a/%2e%2e/%2e%2e/x", "a%5cb", "a%00"):
            assert (await get(rig, f"{path}{escape}"))[:2] == (400, "bad_params"), escape
        assert bot.asked == []
        assert check_path("a/b c.html") == "a/b c.html"
        assert check_path("") == ""
        assert check_path("a/") == "a/"


async def test_what_an_extension_may_not_give(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_PAGE", 100)
    monkeypatch.setattr(pages, "PAGE_S", 0.3)
    async with site(rig) as bot:
        path = await opened(rig)
        bot.answers |= {
            "redirect": page("", status=302),
            "type": page("x", type="text/html\r\nSet-Cookie: a=b"),
            "base64": {"body": "<h1>"},
            "json": b"{",
            "list": b"[]",
            "short": page("", size=10),
            "large": page("x" * 101),
            "claims": page("x", size=10**9),
            "silent": None,
        }
        for name in ("redirect", "type", "base64", "json", "list", "short"):
            assert (await get(rig, f"{path}{name}"))[:2] == (502, "extension_failed"), name
        for name in ("large", "claims"):
            assert (await get(rig, f"{path}{name}"))[:2] == (413, "too_large"), name
        assert (await get(rig, f"{path}silent"))[:2] == (504, "timeout")
        bot.answers["drip"] = page("x", size=100)
        monkeypatch.setattr(pages, "MAX_PARTS", 3)
        assert (await get(rig, f"{path}drip"))[:2] == (504, "timeout")
    assert (await get(rig, path))[:2] == (404, "unknown_extension")


async def test_a_ticket_is_no_part_of_the_audit(rig: Rig) -> None:
    async with site(rig):
        path = await opened(rig)
        await get(rig, path.replace("/ext/bot/", "/ext/other/"))

        async def refusal() -> bytes | None:
            stored = await direct.last(rig.bus, subjects.SYSTEM, subjects.system("refusal"))
            return None if stored is None else stored.raw

        await eventually(refusal)
        record = json.loads(await refusal() or b"")
    assert record["details"]["path"] == "/ext/other"
    assert path.split("/")[3] not in json.dumps(record)


def test_a_ticket_ends_with_its_hour_and_with_the_token() -> None:
    tickets, ann = Tickets(b"s" * 32), Principal(actor="ann", role="viewer", via="tcp", token="t")
    text, expires = tickets.make("bot", ann, 1000.0)
    assert expires == 4600.0
    assert tickets.read(text, "bot", 4599.0).principal.token == "t"
    for other, extension, now in (
        (tickets, "bot", 4600.0),
        (tickets, "bot2", 1000.0),
        (Tickets(b"x" * 32), "bot", 1000.0),
    ):
        with pytest.raises(TrunklineError) as refused:
            other.read(text, extension, now)
        assert refused.value.code == "unauthorized"
    for broken in ("", "x", text[:-4], text[1:], "é", "A" * 2000):
        with pytest.raises(TrunklineError):
            tickets.read(broken, "bot", 1000.0)
    until = Principal(actor="ann", role="viewer", via="tcp", expires=1010.0)
    assert tickets.make("bot", until, 1000.0)[1] == 1010.0
