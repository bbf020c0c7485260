"""`extension.*`: which extensions answer, and what they are told and may write."""

import asyncio
import re
import time
import tomllib
from typing import Any, Final, TypedDict, cast
from uuid import UUID

from trunkline_bus import direct
from trunkline_bus.credentials import extension_user
from trunkline_bus.dead_letters import bury
from trunkline_gateway.agents import refuse_agents
from trunkline_gateway.emitting import emit as write
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import Page, Paged, Params, method, page_of
from trunkline_gateway.roles import Limited, Role
from trunkline_wire import TrunklineError, subjects
from trunkline_wire.ids import check_id, new_event_id

MAX_ERROR: Final = 500
_KIND: Final = re.compile(r"[a-z][a-z0-9_]{0,31}(\.[a-z][a-z0-9_]{0,31}){0,3}")


class Nothing(Params, frozen=True, kw_only=True):
    pass


class ExtensionMethod(TypedDict):
    name: str
    role: Role
    limited: Limited


class ExtensionPages(TypedDict):
    role: Role
    title: str


class ShownExtension(TypedDict):
    """`refused`: what of it is no method, and why. `statistics`: what it says of itself, as NATS services do."""

    name: str
    version: str
    description: str
    methods: list[ExtensionMethod]
    refused: list[str]
    pages: ExtensionPages | None
    statistics: list[dict[str, Any]]


class ExtensionPage(Page):
    extensions: list[ShownExtension]


@method("extension.list", "viewer", Paged, limited="itself")
async def list_(gateway: Gateway, _: Caller, params: Paged) -> ExtensionPage:
    """The extensions that answer: their methods, what of them was refused and why, and their own statistics."""
    await gateway.extensions.look()
    known, page = page_of(sorted(gateway.extensions.known.values(), key=lambda one: one.name), params)
    statistics = await asyncio.gather(*(gateway.extensions.statistics(one.name) for one in known))
    return {
        "extensions": [
            {
                "name": one.name,
                "version": one.version,
                "description": one.description,
                "methods": [{"name": m.name, "role": m.role, "limited": m.limited} for m in one.methods],
                "refused": one.refused,
                "pages": None if one.pages is None else {"role": one.pages.role, "title": one.pages.title},
                "statistics": counted,
            }
            for one, counted in zip(known, statistics, strict=True)
        ],
        **page,
    }


class OfExtension(Params, frozen=True, kw_only=True):
    extension: str


class PagesTicket(TypedDict):
    """`expires` is in seconds since 1970."""

    path: str
    title: str
    expires: float


@method("extension.page", "viewer", OfExtension)
async def pages(gateway: Gateway, caller: Caller, params: OfExtension) -> PagesTicket:
    """Where the caller finds an extension's pages for the next hour: `path`, which is a secret, and what to call them."""
    offered = await gateway.extensions.pages(params.extension)
    caller.principal.require(offered.role, f"the pages of {params.extension}")
    if offered.role in {"approver", "owner"}:
        await refuse_agents(gateway, caller)
    ticket, expires = gateway.tickets.make(params.extension, caller.principal, time.time())
    return {"path": f"/ext/{params.extension}/{ticket}/", "title": offered.title, "expires": expires}


class OwnConfig(TypedDict):
    extension: str
    config: dict[str, Any]


@method("extension.config", "viewer", Nothing)
async def config(gateway: Gateway, caller: Caller, _: Nothing) -> OwnConfig:
    """The table `[extensions.<name>]` of this host's `trunkline.toml`, for that extension alone."""
    name = itself(caller)
    path = gateway.settings.home / "trunkline.toml"

    def read() -> dict[str, Any]:
        try:
            tables: Any = tomllib.loads(path.read_text(encoding="utf-8")).get("extensions", {})
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
            raise TrunklineError("bad_settings", f"`trunkline.toml` can't be read: {error}") from error
        own: Any = cast("dict[str, Any]", tables).get(name, {}) if isinstance(tables, dict) else {}
        return cast("dict[str, Any]", own) if isinstance(own, dict) else {}

    return {"extension": name, "config": await asyncio.to_thread(read)}


def itself(caller: Caller) -> str:
    """The name of the extension that calls. Raises TrunklineError `forbidden` for anybody else."""
    if caller.principal.extension is None:
        raise TrunklineError("forbidden", "this is for extensions, over NATS")
    return caller.principal.extension


class Emit(Params, frozen=True, kw_only=True):
    session: str
    kind: str
    data: dict[str, Any] = {}
    id: str | None = None


class Emitted(TypedDict):
    id: str
    sequence: int


@method("extension.emit", "viewer", Emit)
async def emit(gateway: Gateway, caller: Caller, params: Emit) -> Emitted:
    """Write the event `ext.<name>.<kind>` into a session's history; the same `id` again, at once, is the same event."""
    name = itself(caller)
    if _KIND.fullmatch(params.kind) is None:
        raise TrunklineError("bad_params", "kind is words of a-z, 0-9 and _ with dots between", field="kind")
    await gateway.directory.session(check_id(params.session, "ses"))
    gateway.require_room()
    id_ = new_event_id() if params.id is None else str(UUID(check_id(params.id, "cmd").removeprefix("cmd_")))
    sequence = await write(
        gateway.bus,
        params.session,
        f"ext.{name}.{params.kind}",
        params.data,
        id=id_,
        source=caller.principal.source,
    )
    return {"id": id_, "sequence": sequence}


class Letter(Params, frozen=True, kw_only=True):
    cursor: str
    error: str


class Buried(TypedDict):
    pass


@method("extension.dead_letter", "viewer", Letter)
async def dead_letter(gateway: Gateway, caller: Caller, params: Letter) -> Buried:
    """Note that the event at a cursor of `event.list` could not be delivered, for people to find."""
    name = itself(caller)
    stored = await direct.at(gateway.bus, subjects.EVENTS, gateway.cursors.place(params.cursor))
    if stored is None:
        raise TrunklineError("bad_cursor", "the event of this cursor is no longer in the log")
    await bury(gateway.bus, extension_user(name), stored, TrunklineError("extension_failed", params.error[:MAX_ERROR]))
    return {}
