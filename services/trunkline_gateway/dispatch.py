"""One call of a method, over whatever connection: role, origin of the process, parameters, handler, metrics."""

import asyncio
import logging
import time
from typing import Any, Final

import msgspec
from opentelemetry.trace import SpanKind

from trunkline_bus import metrics
from trunkline_bus.trace import exemplar, span
from trunkline_gateway.agents import refuse_agents
from trunkline_gateway.calls import find
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.methods import ALL
from trunkline_gateway.registry import Method, read_params
from trunkline_gateway.roles import out_of_scope
from trunkline_gateway.sight import require_sight
from trunkline_wire import TrunklineError
from trunkline_wire.ids import check_id

log = logging.getLogger(__name__)

READY_S: Final = 10.0


async def call(gateway: Gateway, caller: Caller, name: str, raw: msgspec.Raw | dict[str, Any]) -> Any:
    """The payload of a method. Raises TrunklineError; any other failure becomes `internal`."""
    begun = time.monotonic()
    code = "ok"
    known = "unknown"
    leads: dict[str, str] | None = None
    try:
        method = await _find(gateway, name)
        known = name if name in ALL else "ext"
        with span(f"gateway {name}", kind=SpanKind.SERVER, attributes={"trunkline.actor": caller.principal.actor}):
            leads = exemplar()
            return await _run(gateway, caller, method, raw)
    except TrunklineError as error:
        code = error.code
        if error.status in (401, 403):
            refuse(gateway, caller, name, error)
        raise
    except Exception as error:
        code = "internal"
        log.exception("method_failed", extra={"method": known})
        raise TrunklineError("internal", "a fault of the gateway; its log has the details") from error
    finally:
        metrics.GATEWAY_REQUESTS.labels(known, code).inc()
        metrics.GATEWAY_REQUEST_SECONDS.labels(known).observe(time.monotonic() - begun, leads)


async def _find(gateway: Gateway, name: str) -> Method:
    found = await find(gateway, name)
    if found is None:
        raise TrunklineError(
            "unknown_method", f"there is no method {name[:64]!r}; `hello` lists them", method=name[:64]
        )
    return found


def refuse(gateway: Gateway, caller: Caller, name: str, error: TrunklineError) -> None:
    """Count, log and record a refusal."""
    metrics.GATEWAY_REFUSED.labels(error.code).inc()
    gateway.audit.refusal(caller.principal.actor, method=name[:64], code=error.code, via=caller.principal.via)


async def _run(gateway: Gateway, caller: Caller, method: Method, raw: msgspec.Raw | dict[str, Any]) -> Any:
    caller.principal.require(method.role, method.name)
    if method.limited == "never" and not caller.principal.scope.whole:
        raise out_of_scope(repr(method.name))
    params = read_params(method.params, raw)
    # Which sessions there are has to be known before it is judged whose process that is.
    await require_ready(gateway)
    if method.acts_as_person or method.role == "owner":
        await refuse_agents(gateway, caller)
    if method.limited == "session":
        session: Any = params.get("session", "") if isinstance(params, dict) else getattr(params, "session")  # noqa: B009 - such methods have one
        if not isinstance(params, dict) or not caller.principal.scope.whole:
            await require_sight(gateway.directory, caller.principal, check_id(str(session), "ses"))
    return await method.handler(gateway, caller, params)


async def require_ready(gateway: Gateway) -> None:
    """Wait until the log is folded. Raises TrunklineError `log_unavailable` after READY_S."""
    try:
        async with asyncio.timeout(READY_S):
            await gateway.directory.ready.wait()
    except TimeoutError:
        raise TrunklineError("log_unavailable", "the gateway still reads the log; try again in a moment") from None
