"""The gateway's methods over NATS, for extensions: requests to `trunk.api.<name>.<right>.<method>`.

The server lets an extension's user publish only the rights that it was given (`trunkline extension add`), so the right in the
subject can be relied on: `viewer`, `participant` or `approver` is a role for any method, `emit` is `extension.emit`, `itself` what
an extension may know of itself. The answer is `{"ok": true, "payload"}` or `{"ok": false, "error": {code, message, details}}`.
"""

import asyncio
import logging
from typing import Any, Final

import msgspec
import nats.errors
from nats.aio.msg import Msg

from trunkline_gateway.dispatch import call
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.peers import Peer
from trunkline_gateway.roles import Principal, Role
from trunkline_wire import ErrorInfo, TrunklineError, encode, replace_lone_surrogates
from trunkline_wire.actors import EXTENSION
from trunkline_wire.ids import check_extension
from trunkline_wire.subjects import ALL_EXTENSION_REQUESTS

log = logging.getLogger(__name__)

MAX_PARALLEL: Final = 64

_ROLES: Final[dict[str, Role]] = {
    "viewer": "viewer",
    "participant": "participant",
    "approver": "approver",
    "emit": "viewer",
    "itself": "viewer",
}
_ONLY: Final = {
    "emit": frozenset({"extension.emit"}),
    "itself": frozenset({"extension.config", "extension.dead_letter", "push.targets", "push.gone"}),
}


async def serve(gateway: Gateway) -> None:
    """Answer until cancelled; of several gateways one takes each request."""
    connection = gateway.bus.commands
    running: set[asyncio.Task[None]] = set()

    async def take(message: Msg) -> None:
        if len(running) >= MAX_PARALLEL:
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        task = asyncio.create_task(_answer(gateway, message))
        running.add(task)
        task.add_done_callback(running.discard)

    subscription = await connection.subscribe(ALL_EXTENSION_REQUESTS, queue="gateway", cb=take)
    try:
        await asyncio.Event().wait()
    finally:
        if not connection.is_closed:
            await subscription.unsubscribe()
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _answer(gateway: Gateway, message: Msg) -> None:
    if not message.reply:
        return
    try:
        principal, method = read_subject(message.subject)
        caller = Caller(principal=principal, peer=Peer(local=False))
        answer: dict[str, Any] = {"ok": True, "payload": await call(gateway, caller, method, _params(message.data))}
    except TrunklineError as error:
        answer = _refusal(error)
    try:
        await message.respond(encode(answer))
    except nats.errors.MaxPayloadError:
        error = TrunklineError("too_large", "the answer is over the server's limit: ask for less at a time")
        await message.respond(encode(_refusal(error)))
    except nats.errors.Error as error:
        log.warning("api_not_answered", extra={"subject": message.subject, "error": str(error)})


def _refusal(error: TrunklineError) -> dict[str, Any]:
    return {"ok": False, "error": ErrorInfo.of(error)}


def read_subject(subject: str) -> tuple[Principal, str]:
    """Who asks, and for which method. Raises TrunklineError `bad_id`, `forbidden`."""
    _, _, name, right, method = (*subject.split(".", 4), "", "", "")[:5]
    check_extension(name)
    role = _ROLES.get(right)
    if role is None or method not in _ONLY.get(right, {method}):
        raise TrunklineError("forbidden", f"the right {right[:64]!r} does not reach {method[:64]!r}")
    return Principal(actor=f"{EXTENSION}{name}", role=role, via="nats", extension=name), method


def _params(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(replace_lone_surrogates(raw)) if raw else {}
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise TrunklineError("bad_frame", f"the body is not JSON: {error}") from error
