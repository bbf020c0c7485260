"""Webhooks: events posted to a URL, signed so that the receiver knows whom they come from and when."""

import hashlib
import hmac
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import aiohttp

from trunkline_extensions.client import Client
from trunkline_extensions.sender import Deliver, Delivery, NotDeliveredError, RefusedError, SenderConfig
from trunkline_wire import TrunklineError, encode
from trunkline_wire.secret import Secret

WORTH_TRYING: Final = frozenset({408, 425, 429})
ANSWER_S: Final = 15.0


class WebhookConfig(SenderConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`secret` is shared with the receiver, who checks the signature with it."""

    url: str
    secret: Secret


def signature(secret: str, body: bytes, now: int) -> str:
    """The value of the header `Trunkline-Signature`: the HMAC-SHA256 of `<now>.<body>`."""
    digest = hmac.new(secret.encode(), f"{now}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={now},v1={digest}"


@asynccontextmanager
async def opened(config: WebhookConfig, _: Client) -> AsyncGenerator[Deliver]:
    """Raises TrunklineError `bad_settings` for what is no URL or no secret."""
    if not config.url.startswith(("http://", "https://")) or len(config.secret) < 16:
        raise TrunklineError(
            "bad_settings", "a webhook needs an http(s) `url`, and a `secret` of 16 characters or more"
        )
    timeout = aiohttp.ClientTimeout(total=ANSWER_S)
    async with aiohttp.ClientSession(timeout=timeout) as http:

        async def deliver(delivery: Delivery) -> None:
            body = encode({"id": delivery.id, "event": delivery.event, "title": delivery.title, "link": delivery.link})
            headers = {
                "Content-Type": "application/json",
                "Trunkline-Delivery": delivery.id,
                "Trunkline-Event": str(delivery.event["type"]),
                "Trunkline-Signature": signature(config.secret, body, int(time.time())),
            }
            try:
                async with http.post(config.url, data=body, headers=headers, allow_redirects=False) as answer:
                    status = answer.status
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                raise NotDeliveredError(f"the receiver can't be reached: {type(error).__name__}") from error
            if status >= 500 or status in WORTH_TRYING:
                raise NotDeliveredError(f"the receiver answered {status}")
            if status >= 300:
                raise RefusedError(f"the receiver answered {status}")

        yield deliver
