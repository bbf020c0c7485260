"""Extensions: NATS services (ADR-32) in any language whose endpoints become methods of the gateway.

An extension `<name>` is the service `ext-<name>` with endpoints `trunk.ext.<name>.<method>`, called as `ext.<name>.<method>`.
An endpoint's metadata says who may call it: `role` (owner without it), and `limited: session` where tokens with a scope may
call it for a session of theirs. The endpoint whose metadata has `pages: true` is no method: it gives the extension's pages, to
who has its role (`pages.py`). A call's body is the parameters, its headers are `Trunk-Actor`, `Trunk-Role`, `Trunk-Via` and the
trace; the answer is JSON, or an error of ADR-32. Who answers for a name is asked at `$SRV.INFO.ext-<name>`, which only that
extension's NATS user can hear: no extension can say what another one's methods are.
"""

import asyncio
import logging
import re
from typing import Any, Final, get_args

import msgspec
import nats.errors
from nats.micro.request import ERROR_CODE_HEADER, ERROR_HEADER

from trunkline_bus import trace
from trunkline_bus.connection import Bus
from trunkline_bus.credentials import extension_user
from trunkline_gateway.roles import Limited, Role
from trunkline_wire import TrunklineError, encode
from trunkline_wire.ids import check_extension, is_extension

log = logging.getLogger(__name__)

EVERY_S: Final = 5.0
ANSWER_S: Final = 1.0
CALL_S: Final = 30.0
"""Seconds that an extension may take for a call."""
MAX_EXTENSIONS: Final = 100
MAX_ENDPOINTS: Final = 100
MAX_TEXT: Final = 500

_METHOD: Final = re.compile(r"[a-z][a-z0-9_]{0,40}")
_PREFIX: Final = extension_user("")
_ROLES: Final = frozenset(get_args(Role))


class _Endpoint(msgspec.Struct, frozen=True):
    name: str = ""
    subject: str = ""
    metadata: dict[str, str] | None = None


class ServiceInfo(msgspec.Struct, frozen=True):
    """What a NATS service says of itself (`io.nats.micro.v1.info_response`)."""

    name: str
    id: str
    version: str = ""
    description: str | None = None
    endpoints: list[_Endpoint] = []


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """A method of an extension: its full name, and who may call it."""

    name: str
    subject: str
    role: Role
    limited: Limited
    summary: str


class PagesOffer(msgspec.Struct, frozen=True, kw_only=True):
    """Where an extension gives its pages, and who may see them."""

    subject: str
    role: Role
    title: str


class Extension(msgspec.Struct, frozen=True, kw_only=True):
    """`refused` says which endpoints are no methods, and why."""

    name: str
    id: str
    version: str
    description: str
    methods: list[Offer]
    refused: list[str]
    pages: PagesOffer | None = None


def understand(info: ServiceInfo) -> Extension:
    """What a service offers. Pure. Raises TrunklineError `bad_id` for a service that is no extension."""
    name = check_extension(info.name.removeprefix(_PREFIX) if info.name.startswith(_PREFIX) else "")
    offers: dict[str, Offer] = {}
    refused: list[str] = []
    pages: PagesOffer | None = None
    for endpoint in info.endpoints[:MAX_ENDPOINTS]:
        metadata = endpoint.metadata or {}
        role, limited = metadata.get("role", "owner"), metadata.get("limited", "never")
        begin, _, method = endpoint.subject.rpartition(".")
        if begin != f"trunk.ext.{name}" or _METHOD.fullmatch(method) is None:
            refused.append(f"{endpoint.subject[:MAX_TEXT]!r}: not of the form trunk.ext.{name}.<method>")
        elif role not in _ROLES:
            refused.append(f"{method!r}: there is no role {role[:MAX_TEXT]!r}")
        elif limited not in {"session", "never"}:
            refused.append(f"{method!r}: `limited` is `session` or left out")
        elif metadata.get("pages") == "true":
            title = metadata.get("description", "")[:MAX_TEXT] or name
            pages = PagesOffer(subject=endpoint.subject, role=msgspec.convert(role, Role), title=title)
        elif metadata.get("internal") != "true":
            offers[method] = Offer(
                name=f"ext.{name}.{method}",
                subject=endpoint.subject,
                role=msgspec.convert(role, Role),
                limited="session" if limited == "session" else "never",
                summary=metadata.get("description", "")[:MAX_TEXT],
            )
    return Extension(
        name=name,
        id=info.id,
        version=info.version[:64],
        description=(info.description or "")[:MAX_TEXT],
        methods=list(offers.values()),
        refused=refused,
        pages=pages,
    )


class Extensions:
    """The extensions that answer. Run `run()` as a task; a name that was not seen yet is asked for when it is called."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.known: dict[str, Extension] = {}

    @property
    def offers(self) -> list[Offer]:
        return [offer for one in self.known.values() for offer in one.methods]

    async def run(self) -> None:
        """Look for extensions every EVERY_S until cancelled."""
        while True:
            try:
                await self.look()
            except nats.errors.Error as error:
                log.warning("extensions_not_seen", extra={"error": str(error)})
            await asyncio.sleep(EVERY_S)

    async def look(self) -> None:
        """Ask who is there, and each for what it offers; who does not answer is gone."""
        names = sorted({*self.known, *await self._answering()})[:MAX_EXTENSIONS]
        await asyncio.gather(*(self.find(name) for name in names))

    async def find(self, name: str) -> Extension | None:
        """What an extension offers now; None, and forgotten, where it does not answer."""
        try:
            raw = await self._ask("INFO", name)
            found = understand(msgspec.json.decode(raw, type=ServiceInfo))
        except (TimeoutError, nats.errors.Error):
            if self.known.pop(name, None) is not None:
                log.info("extension_gone", extra={"extension": name})
            return None
        except (msgspec.MsgspecError, TrunklineError) as error:
            log.warning("extension_not_understood", extra={"extension": name, "error": str(error)})
            return None
        if found.name != name:
            return None
        if self.known.get(name) != found:
            log.info("extension_found", extra={"extension": name, "refused": found.refused})
        self.known[name] = found
        return found

    async def statistics(self, name: str) -> list[dict[str, Any]]:
        """Requests, errors and times (in nanoseconds) by endpoint, as the extension counts them; empty if it does not."""
        try:
            found = msgspec.json.decode(await self._ask("STATS", name), type=_Stats)
        except (TimeoutError, nats.errors.Error, msgspec.MsgspecError):
            return []
        return [msgspec.to_builtins(endpoint) for endpoint in found.endpoints[:MAX_ENDPOINTS]]

    async def offer(self, full: str) -> Offer:
        """The offer `ext.<name>.<method>`. Raises TrunklineError `unknown_extension`, `unknown_method`."""
        name = full.split(".", 2)[1]
        found = _offer(self.known.get(name), full)
        if found is not None:
            return found
        extension = await self.find(name) if is_extension(name) else None
        if extension is None:
            raise unknown_extension(name)
        found = _offer(extension, full)
        if found is None:
            raise TrunklineError(
                "unknown_method", f"the extension {name!r} has no {full[:128]!r}: `extension.list` shows what it has"
            )
        return found

    async def pages(self, name: str) -> PagesOffer:
        """Where an extension gives its pages. Raises TrunklineError `unknown_extension`, `no_pages`."""
        extension = self.known.get(name)
        if extension is None or extension.pages is None:
            extension = await self.find(name) if is_extension(name) else None
        if extension is None:
            raise unknown_extension(name)
        if extension.pages is None:
            raise TrunklineError("no_pages", f"the extension {name!r} has no pages", extension=name)
        return extension.pages

    async def request(self, name: str, subject: str, params: Any, headers: dict[str, str], within: float) -> Any:
        """An extension's answer. Raises TrunklineError `unknown_extension`, `extension_failed`, `timeout`, `too_large`."""
        try:
            reply = await self._bus.commands.request(
                subject, encode(params), timeout=within, headers=trace.inject(headers)
            )
        except nats.errors.NoRespondersError as error:
            self.known.pop(name, None)
            raise unknown_extension(name) from error
        except TimeoutError as error:
            raise TrunklineError(
                "timeout",
                f"the extension {name!r} did not answer within {within:g} s; it may still do it",
                extension=name,
            ) from error
        except nats.errors.MaxPayloadError as error:
            raise TrunklineError("too_large", "the parameters are over the server's limit") from error
        answered = reply.headers or {}
        if ERROR_CODE_HEADER in answered or ERROR_HEADER in answered:
            raise TrunklineError(
                "extension_failed",
                answered.get(ERROR_HEADER, "")[:MAX_TEXT] or "the extension gave no reason",
                extension=name,
                reason=answered.get(ERROR_CODE_HEADER, "")[:64],
            )
        try:
            return msgspec.json.decode(reply.data or b"null")
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise TrunklineError(
                "extension_failed", f"{name!r} answered with no JSON: {error}", extension=name
            ) from error

    async def _answering(self) -> set[str]:
        heard: set[str] = set()
        connection = self._bus.commands
        inbox = connection.new_inbox()

        async def take(message: Any) -> None:
            try:
                name = msgspec.json.decode(message.data, type=ServiceInfo).name
            except msgspec.MsgspecError:
                return
            if name.startswith(_PREFIX) and is_extension(name.removeprefix(_PREFIX)):
                heard.add(name.removeprefix(_PREFIX))

        subscription = await connection.subscribe(inbox, cb=take)
        try:
            await connection.publish("$SRV.PING", b"", reply=inbox)
            await asyncio.sleep(ANSWER_S)
        finally:
            if not connection.is_closed:
                await subscription.unsubscribe()
        return heard

    async def _ask(self, verb: str, name: str) -> bytes:
        subject = f"$SRV.{verb}.{extension_user(name)}"
        return (await self._bus.commands.request(subject, b"", timeout=ANSWER_S)).data


class _EndpointStats(msgspec.Struct, frozen=True):
    name: str = ""
    subject: str = ""
    num_requests: int = 0
    num_errors: int = 0
    average_processing_time: int = 0
    last_error: str | None = None


class _Stats(msgspec.Struct, frozen=True):
    endpoints: list[_EndpointStats] = []


def _offer(extension: Extension | None, full: str) -> Offer | None:
    return next((offer for offer in extension.methods if offer.name == full), None) if extension is not None else None


def unknown_extension(name: str) -> TrunklineError:
    return TrunklineError(
        "unknown_extension", f"no extension {name[:64]!r} answers: `extension.list` shows who does", extension=name[:64]
    )
