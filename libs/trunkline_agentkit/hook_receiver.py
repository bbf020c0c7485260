"""The receiver of hooks: an HTTP server on loopback that answers at once, with nothing in it, whatever becomes of the call.

An agent waits for its hooks, so nothing here waits for anything but the call itself, and nothing that it answers decides anything.
"""

import asyncio
import hmac
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from aiohttp import web

from trunkline_agentkit.framing import decode_line
from trunkline_agentkit.hooks import PATH, SESSION_HEADER, HasHooks, Hook, HookEndpoint, read_endpoint
from trunkline_bus import metrics
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

LARGEST: Final = 256 * 1024
"""Bytes of a call."""
READ_WITHIN_S: Final = 5.0
AT_A_TIME: Final = 64
PER_SECOND: Final = 100
BURST: Final = 500
AGAIN_S: Final = 2.0
"""Seconds in which the same call is a repetition, though it may happen again later: a member is idle more than once."""

_KEPT: Final = 4096
_LOOK_S: Final = 2.0

Take = Callable[[Hook, str | None], bool]
"""Given the call and the session it says that it comes from: False where there is no room for it."""


class Seen:
    """Which calls are repetitions. `now` is in seconds."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._times: OrderedDict[str, float] = OrderedDict()

    def again(self, hook: Hook, now: float) -> bool:
        """Whether this call was here before; from now on it was."""
        before = self._times.pop(hook.id, None)
        self._times[hook.id] = now
        while len(self._times) > self._kept:
            self._times.popitem(last=False)
        return before is not None and (hook.once or now - before < AGAIN_S)


class Rate:
    """So many a second over time, `burst` at once."""

    def __init__(self, per_second: float = PER_SECOND, burst: int = BURST) -> None:
        self._per_second = per_second
        self._burst = burst
        self._left = float(burst)
        self._at = 0.0

    def allows(self, now: float) -> bool:
        self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class HookReceiver:
    """Listens while hooks are installed (`hooks.json` is in the state directory), and hands each call on once.

    One worker of a host has the port; another takes it when that one is gone.
    """

    def __init__(
        self, home: Path, adapters: Mapping[str, object], take: Take, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._home = home
        self._readers = {name: one for name, one in adapters.items() if isinstance(one, HasHooks)}
        self._take = take
        self._now = now
        self._seen = Seen()
        self._rate = Rate()
        self._running = 0
        self._endpoint: HookEndpoint | None = None
        self._warned = ""
        self.listening = False

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            wanted = await asyncio.to_thread(self._read)
            if wanted is None:
                await asyncio.sleep(_LOOK_S)
                continue
            try:
                await self._serve(wanted)
            except OSError as error:
                self._warn(f"port {wanted.port}: {error}")
                await asyncio.sleep(_LOOK_S)

    def _read(self) -> HookEndpoint | None:
        try:
            return read_endpoint(self._home)
        except TrunklineError as error:
            self._warn(error.message)
            return None

    def _warn(self, why: str) -> None:
        """Once, as long as it stays the same."""
        if self._warned != why:
            self._warned = why
            log.warning("hooks_not_heard", extra={"error": why})

    async def _serve(self, endpoint: HookEndpoint) -> None:
        """As long as the port stays what it is. Raises OSError where it is taken."""
        self._endpoint = endpoint
        app = web.Application(client_max_size=LARGEST)
        app.router.add_post(PATH, self._on_call)
        runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", endpoint.port).start()
            self.listening = True
            log.info("hooks_heard", extra={"port": endpoint.port})
            while True:
                await asyncio.sleep(_LOOK_S)
                wanted = await asyncio.to_thread(self._read)
                if wanted is None or wanted.port != endpoint.port:
                    return
                self._endpoint = wanted  # its secret may be another
        finally:
            self.listening = False
            await runner.cleanup()

    async def _on_call(self, request: web.Request) -> web.Response:
        status, outcome = await self._judged(request)
        metrics.HOOKS.labels(outcome).inc()
        response = web.Response(status=status)
        if status >= 400:
            response.force_close()
        return response

    async def _judged(self, request: web.Request) -> tuple[int, str]:
        assert self._endpoint is not None
        given = request.headers.get("Authorization", "").encode(errors="replace")
        if not hmac.compare_digest(given, f"Bearer {self._endpoint.secret}".encode()):
            return 401, "unauthorized"
        reader = self._readers.get(request.match_info["adapter"])
        if reader is None:
            return 404, "malformed"
        if self._running >= AT_A_TIME or not self._rate.allows(self._now()):
            return 429, "too_many"
        self._running += 1
        try:
            async with asyncio.timeout(READ_WITHIN_S):
                raw = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return 413, "too_large"
        except TimeoutError:
            return 408, "malformed"
        finally:
            self._running -= 1
        hook = _read_hook(reader, raw)
        if hook is None:
            return 400, "malformed"
        if self._seen.again(hook, self._now()):
            return 204, "again"
        if not self._take(hook, request.headers.get(SESSION_HEADER) or None):
            return 503, "no_room"
        return 204, "taken"


def _read_hook(reader: HasHooks, raw: bytes) -> Hook | None:
    try:
        message = decode_line(raw).message
        return reader.read_hook(message) if message is not None else None
    except RecursionError:
        return None
