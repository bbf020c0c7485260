"""How this device comes to know a host: by a link of `trunkline pair`, and six digits that a person compares."""

import asyncio
import secrets
from collections.abc import Callable
from typing import Final

import aiohttp
import msgspec

from trunkline_client.lost import ConnectionLostError
from trunkline_client.paired import Paired
from trunkline_client.relayed import Refusal, Wire, reach
from trunkline_client.straight import straight
from trunkline_seal import Identity, Route, control, pairing
from trunkline_wire import TrunklineError
from trunkline_wire.secret import Discreet, Secret

REACH_S: Final = 15.0
CONFIRM_S: Final = 180.0
"""Seconds that the person at the host may take: the host gives up before."""
KEY_BYTES: Final = 32


class _Paired(Discreet, frozen=True):
    device: str
    actor: str
    role: str
    token: Secret
    host: str


class _Answer(msgspec.Struct, frozen=True):
    paired: _Paired | None = None
    failed: Refusal | None = None


async def pair(link: pairing.Link, name: str, show: Callable[[str, str], None]) -> Paired:
    """What the host makes of this device, which it will call `name`. `show` gets the six digits and the host's name for itself.

    Raises TrunklineError `bad_pairing` for a link that is too old or used, or a host whose person says no; `host_away`, `timeout`, `bad_seal`.
    """
    identity, route, key, number = Identity.new(), Route.new(), secrets.token_bytes(KEY_BYTES), pairing.nonce()
    about = {
        "pair": control.b64(link.secret),
        "route": control.b64(route.public),
        "commit": control.b64(pairing.commitment(number)),
        "name": name,
        "key": control.b64(key),
    }
    async with aiohttp.ClientSession(trace_configs=[straight()]) as http:
        try:
            async with asyncio.timeout(REACH_S):
                wire, host = await reach(
                    http,
                    link.relay,
                    link.route,
                    identity,
                    link.identity,
                    about,
                    lambda _relay, _challenge: control.Pairing(pairing=link.name),
                )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise TrunklineError("host_away", f"the relay at {link.relay} does not answer: {error}") from error
        try:
            theirs = control.plain(host.nonce)
            if len(theirs) != pairing.NONCE_BYTES:
                raise TrunklineError("bad_frame", "the host has no number for the code")
            await wire.say({"reveal": control.b64(number)})
            show(
                pairing.short_code((link.route, link.identity), (route.public, identity.public), (theirs, number)),
                host.host,
            )
            made = await _made(wire)
        finally:
            await wire.close()
    return Paired(
        relay=link.relay,
        host=made.host,
        route=link.route,
        identity=host.newest,
        number=host.number,
        device=made.device,
        actor=made.actor,
        role=made.role,
        seed=route.seed,
        secret=identity.secret,
        token=made.token,
        key=key,
        app=link.app,
    )


async def _made(wire: Wire) -> _Paired:
    try:
        async with asyncio.timeout(CONFIRM_S):
            answer = await wire.hear(_Answer)
    except TimeoutError:
        raise TrunklineError("timeout", "nobody at the host has said yes or no") from None
    except ConnectionLostError as error:
        raise TrunklineError("bad_pairing", f"the host ended the pairing: {error}") from error
    if answer.failed is not None:
        raise answer.failed.error()
    if answer.paired is None:
        raise TrunklineError("bad_frame", "the host says neither yes nor no")
    return answer.paired
