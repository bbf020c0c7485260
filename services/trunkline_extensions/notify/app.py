"""Notifications: asks and finished turns to whatever Apprise reaches (ntfy, Telegram, Slack, Discord, e-mail …)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final, cast

from trunkline_extensions.client import Client
from trunkline_extensions.sender import Deliver, Delivery, NotDeliveredError, SenderConfig
from trunkline_wire import TrunklineError, encode
from trunkline_wire.secret import Secret

SHOWN: Final = 600


class NotifyConfig(SenderConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`urls` are Apprise's, such as `ntfy://ntfy.example.org/topic`."""

    urls: tuple[Secret, ...]


def written(delivery: Delivery) -> tuple[str, str]:
    """Title and text of a notification. Pure."""
    event, where = delivery.event, delivery.title
    data: dict[str, Any] = event["data"]
    match event["type"]:
        case "permission.requested":
            title = f"{data['name']}? {where}"
            text = data.get("title") or data.get("description") or encode(data.get("input")).decode()
        case "plan.proposed":
            title, text = f"A plan: {where}", _plan(data.get("plan"))
        case "question.asked":
            title = f"A question: {where}"
            text = "\n".join(question["text"] for question in data.get("questions", [])) or data.get("message") or ""
        case "turn.completed":
            title, text = f"Done ({data.get('outcome', '?')}): {where}", data.get("result") or ""
        case other:
            title, text = f"{other}: {where}", ""
    text = str(text)[:SHOWN]
    return title[:250], f"{text}\n{delivery.link}" if delivery.link else text or "-"


def _plan(plan: Any) -> str:
    return plan if isinstance(plan, str) else str(cast("dict[str, Any]", plan or {}).get("preview", ""))


@asynccontextmanager
async def opened(config: NotifyConfig, _: Client) -> AsyncGenerator[Deliver]:
    """Raises TrunklineError `bad_settings` for a URL that Apprise does not know, or without Apprise."""
    try:
        import apprise
    except ImportError as error:
        raise TrunklineError("bad_settings", "notifications need Apprise: pip install 'trunkline[notify]'") from error
    if not config.urls:
        raise TrunklineError("bad_settings", "[extensions.notify] needs `urls`")
    channels: list[tuple[int, Any]] = []
    for number, url in enumerate(config.urls):
        channel: Any = apprise.Apprise.instantiate(url)
        if not channel:
            # The URL may hold a secret.
            raise TrunklineError("bad_settings", f"Apprise does not know the form of urls[{number}]")
        channels.append((number, channel))
    done: dict[str, set[int]] = {}

    async def deliver(delivery: Delivery) -> None:
        title, body = written(delivery)
        if delivery.id not in done:
            done.clear()
        sent = done.setdefault(delivery.id, set())
        for number, channel in channels:
            # What one channel took is not sent to it again because another one failed.
            if number not in sent and await asyncio.to_thread(channel.notify, title=title, body=body):
                sent.add(number)
        if len(sent) < len(channels):
            missing = [number for number, _ in channels if number not in sent]
            raise NotDeliveredError(f"not taken by urls{missing}")

    yield deliver
