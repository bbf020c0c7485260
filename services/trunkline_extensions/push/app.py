"""Push notifications: a browser whose app is closed hears that an ask waits. Its maker's push service carries ciphertext alone."""

import asyncio
import ipaddress
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import msgspec
from aiohttp.abc import ResolveResult
from aiohttp.resolver import ThreadedResolver
from nats.micro.request import Request

from trunkline_extensions.client import Client
from trunkline_extensions.push.keys import SenderKey
from trunkline_extensions.push.message import PADDED, sealed
from trunkline_extensions.sender import Deliver, Delivery, NotDeliveredError, RefusedError, SenderConfig
from trunkline_wire import TrunklineError, encode, parse_time
from trunkline_wire.secret import Discreet, Secret

log = logging.getLogger(__name__)

ASKS: Final = ("permission.requested", "question.asked", "plan.proposed")
TTL_S: Final = 1800
"""How long a push service keeps a message for a browser that is not there."""
SETTLE_S: Final = 0.5
"""An ask of this age that is open is one that no rule has decided."""
ANSWER_S: Final = 15.0
GONE: Final = frozenset({404, 410})
WORTH_TRYING: Final = frozenset({408, 425, 429})
MAX_TITLE: Final = 80
MAX_BODY: Final = 160
AT_ONCE: Final = 8


class PushConfig(SenderConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`contact` is a `mailto:` or `https:` address, for the maker of a push service who wants to reach the sender.

    `local` lets push services be on this machine or in its network.
    """

    contact: str
    patterns: tuple[str, ...] = ASKS
    attempts: int = 5
    local: bool = False


class _Keys(Discreet, frozen=True):
    p256dh: str
    auth: Secret


class Target(Discreet, frozen=True):
    """A device to be told, and where."""

    device: str
    endpoint: Secret
    keys: _Keys


class _Targets(msgspec.Struct, frozen=True):
    targets: list[Target]


def written(delivery: Delivery) -> bytes:
    """What a notification says, as the app says it of itself (`services/trunkline_web/src/view/announce.ts`). Pure."""
    data: dict[str, Any] = delivery.event["data"]
    match delivery.event["type"]:
        case "permission.requested":
            title = f"Allow {_plain(data['name'], MAX_TITLE)}?"
        case "plan.proposed":
            title = "A plan waits"
        case _:
            title = "A question waits"
    body = _plain(delivery.title, MAX_BODY)
    return encode({"title": title, "body": body, "path": f"/session/{delivery.event['session']}", "ask": data["ask"]})


def _plain(text: str, most: int) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text[:most]).strip()


class PublicOnly(ThreadedResolver):
    """Names of machines that are not on the internet have no address: a device must not have us call on our own network."""

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:
        found = await super().resolve(host, port, family)
        public = [one for one in found if ipaddress.ip_address(one["host"]).is_global]
        if not public:
            raise OSError("not on the internet")
        return public


class Pusher:
    """Sends to the devices of one delivery what has not reached them yet."""

    def __init__(self, client: Client, http: aiohttp.ClientSession, key: SenderKey, *, local: bool) -> None:
        self._client = client
        self._http = http
        self._key = key
        self._local = local
        self._delivery = ""
        self._done: set[str] = set()

    async def deliver(self, delivery: Delivery) -> None:
        """Raises NotDeliveredError, RefusedError."""
        if delivery.id != self._delivery:
            self._delivery, self._done = delivery.id, set()
            await asyncio.sleep(SETTLE_S - min(SETTLE_S, max(0.0, time.time() - _time_of(delivery))))
        ask = delivery.event["data"]["ask"]
        # Anew for each attempt: it may have been decided, or a device have gone.
        raw = await self._client.insist("itself", "push.targets", ask=ask)
        open_ = [one for one in msgspec.convert(raw, _Targets).targets if one.endpoint not in self._done]
        content, gate = written(delivery), asyncio.Semaphore(AT_ONCE)

        async def one(target: Target) -> Exception | None:
            async with gate:
                try:
                    await self._send(target, content)
                except NotDeliveredError as error:
                    return error
                except RefusedError as error:
                    self._done.add(target.endpoint)
                    return error
                self._done.add(target.endpoint)
                return None

        failed = [error for error in await asyncio.gather(*map(one, open_)) if error is not None]
        again = [error for error in failed if isinstance(error, NotDeliveredError)]
        for error in again or failed:
            raise error

    async def _send(self, target: Target, content: bytes) -> None:
        if not self._local and _is_address(target):
            raise RefusedError("a push service on this machine: [extensions.push] `local` allows it")
        try:
            body = sealed(content, target.keys.p256dh, target.keys.auth, padded=PADDED)
        except ValueError:
            await self._forget(target)
            return
        headers = {
            "Authorization": self._key.authorization(target.endpoint),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(TTL_S),
            "Urgency": "high",
        }
        try:
            async with self._http.post(target.endpoint, data=body, headers=headers, allow_redirects=False) as answer:
                status = answer.status
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            # Its text may hold the endpoint, which is a secret.
            raise NotDeliveredError(f"{_host(target)} can't be reached: {type(error).__name__}") from None
        if status in GONE:
            await self._forget(target)
        elif status >= 500 or status in WORTH_TRYING:
            raise NotDeliveredError(f"{_host(target)} answered {status}")
        elif status >= 300:
            raise RefusedError(f"{_host(target)} answered {status}")

    async def _forget(self, target: Target) -> None:
        log.info("subscription_gone", extra={"device": target.device})
        await self._client.insist("itself", "push.gone", device=target.device, endpoint=target.endpoint)


def _time_of(delivery: Delivery) -> float:
    return parse_time(delivery.event["time"]).timestamp()


def _host(target: Target) -> str:
    return urlsplit(target.endpoint).hostname or "the push service"


def _is_address(target: Target) -> bool:
    """Whether no name is looked up for it, which is where addresses are checked."""
    try:
        ipaddress.ip_address(_host(target))
    except ValueError:
        return False
    return True


@asynccontextmanager
async def opened(config: PushConfig, client: Client) -> AsyncGenerator[Deliver]:
    """Raises TrunklineError `bad_settings`."""
    if not config.contact.startswith(("mailto:", "https://")):
        raise TrunklineError("bad_settings", "[extensions.push] needs a `contact`: `mailto:` or `https://`")
    if not set(config.patterns) <= set(ASKS) or config.actor is not None:
        raise TrunklineError("bad_settings", f"push tells of asks ({', '.join(ASKS)}), without links: no `actor`")
    key = await asyncio.to_thread(SenderKey.kept, client.home, config.contact)

    async def on_key(request: Request) -> None:
        await request.respond(encode({"key": key.public}))

    await client.service.add_endpoint(
        name="key",
        subject=f"trunk.ext.{client.name}.key",
        handler=on_key,
        metadata={"role": "viewer", "internal": "true"},
    )
    resolver = None if config.local else PublicOnly()
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(resolver=resolver, limit=AT_ONCE), timeout=aiohttp.ClientTimeout(total=ANSWER_S)
    ) as http:
        yield Pusher(client, http, key, local=config.local).deliver
