"""The gateway of this host: asked as its owner over the unix socket, and opened for devices over TCP with their tokens."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any, Final, Self

import aiohttp
import msgspec

from trunkline_client import Address
from trunkline_client.connection import Connection
from trunkline_seal.app_digest import MANIFEST, manifest_digest
from trunkline_service.web import FOR_DEVICE
from trunkline_wire import TrunklineError
from trunkline_wire.ids import is_id
from trunkline_wire.secret import Discreet, Secret

PAGE: Final = 500
OPEN_S: Final = 10.0
CLOSE_S: Final = 2.0
MAX_MESSAGE: Final = 32 * 1024 * 1024
MAX_MANIFEST: Final = 1024 * 1024
TERMINAL: Final = "/ws/terminal/"
LOCAL: Final = {"Host": "localhost"}
"""Wherever it listens, this is a name by which it is called."""


class Paired(msgspec.Struct, frozen=True, kw_only=True):
    """A device that comes from anywhere; its public keys are base64."""

    id: str
    actor: str
    name: str
    role: str
    route: str
    identity: str


class NewDevice(Discreet, frozen=True, kw_only=True):
    """What the gateway is told of a device that is to be paired. `invitation` says as what, and that a person has agreed."""

    invitation: Secret
    name: str
    key: Secret
    route: str
    identity: str


class _Where(msgspec.Struct, frozen=True):
    url: str


class Gateway:
    """Use as an async context manager. Its calls raise TrunklineError, or ConnectionLostError where there is no gateway."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._connection: Connection | None = None
        self._http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, sock_connect=OPEN_S))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.leave()
        if self._http is not None:
            await self._http.close()

    async def leave(self) -> None:
        """Forget the connection: the next call makes another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def devices(self) -> list[Paired]:
        """All paired devices, whatever comes and goes between two pages: who is missing here counts as revoked."""
        found: list[dict[str, Any]] = []
        while True:
            page = await self._call("device.list", limit=PAGE, offset=max(0, len(found) - 1))
            listed: list[dict[str, Any]] = page["devices"]
            if found and (not listed or listed[0]["id"] != found[-1]["id"]):
                found = []  # one has gone, and those behind it moved up
                continue
            found += listed[1:] if found else listed
            if not page.get("has_more"):
                return [msgspec.convert(one, Paired) for one in found if "identity" in one]

    async def pair(self, device: NewDevice) -> tuple[Paired, str]:
        """The device as registered, and its token."""
        made = await self._call("device.pair", **msgspec.to_builtins(device))
        return msgspec.convert(made, Paired), made["token"]

    async def revoke(self, device: str) -> None:
        await self._call("device.revoke", id=device)

    async def seen(self, devices: list[str]) -> None:
        await self._call("device.seen", devices=devices)

    async def open(self, path: str, token: str, device: str) -> aiohttp.ClientWebSocketResponse:
        """A WebSocket as the device, whose token it has to be. Raises TrunklineError: `bad_params`, `unauthorized`, `forbidden`, `not_running`."""
        if path != "/ws" and not (path.startswith(TERMINAL) and is_id(path.removeprefix(TERMINAL), "ses")):
            raise TrunklineError("bad_params", "a device may open /ws and /ws/terminal/<session>", field="open")
        if not (token.isascii() and token.isprintable() and token):
            raise TrunklineError("unauthorized", "a device opens nothing without its token")
        try:
            # TCP, never the unix socket: there whoever comes is the owner.
            return await self._session.ws_connect(
                f"{self._url()}{path}",
                headers={"Authorization": f"Bearer {token}", FOR_DEVICE: device, **LOCAL},
                max_msg_size=MAX_MESSAGE,
                timeout=aiohttp.ClientWSTimeout(ws_close=CLOSE_S),  # pyright: ignore[reportCallIssue] - its fields are not seen
            )
        except aiohttp.WSServerHandshakeError as error:
            codes = {401: "unauthorized", 403: "forbidden", 404: "unknown_session"}
            code = codes.get(error.status, "not_running")
            raise TrunklineError(code, f"the gateway answered with HTTP status {error.status}") from None
        except (aiohttp.ClientError, OSError, TimeoutError, msgspec.MsgspecError) as error:
            raise TrunklineError(
                "not_running", "the host's gateway does not answer at the moment: try again"
            ) from error

    async def app(self) -> bytes:
        """The digest of the app that the gateway has for browsers; empty where it has none, or does not answer."""
        try:
            async with asyncio.timeout(OPEN_S), self._session.get(f"{self._url()}/{MANIFEST}", headers=LOCAL) as answer:
                return manifest_digest(await answer.content.read(MAX_MANIFEST)) if answer.status == 200 else b""
        except (aiohttp.ClientError, OSError, TimeoutError, msgspec.MsgspecError, TrunklineError):
            return b""

    @property
    def _session(self) -> aiohttp.ClientSession:
        assert self._http is not None
        return self._http

    def _url(self) -> str:
        """Raises OSError, msgspec's, where no gateway says where it is."""
        return _reachable(msgspec.json.decode((self._home / "gateway.json").read_bytes(), type=_Where).url)

    async def _call(self, method: str, **params: Any) -> Any:
        if self._connection is None:
            address = Address(url="http://localhost", socket=self._home / "gateway.sock")
            self._connection = await Connection.connect(address, name="relay")
        try:
            return await self._connection.call(method, **params)
        except ConnectionError:
            with contextlib.suppress(ConnectionError):
                await self.leave()
            raise


def _reachable(url: str) -> str:
    """A gateway that listens everywhere is here, too."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
