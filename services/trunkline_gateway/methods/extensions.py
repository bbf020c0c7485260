"""`extension.*`: which extensions answer, and what they are told and may write."""

import asyncio
import tomllib
from typing import Any, cast

from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import Params, method
from trunkline_wire import TrunklineError


class Nothing(Params, frozen=True, kw_only=True):
    pass


@method("extension.list", "viewer", Nothing, limited="itself")
async def list_(gateway: Gateway, _: Caller, __: Nothing) -> dict[str, Any]:
    """The extensions that answer: their methods, what of them was refused and why, and their own statistics."""
    await gateway.extensions.look()
    known = sorted(gateway.extensions.known.values(), key=lambda one: one.name)
    statistics = await asyncio.gather(*(gateway.extensions.statistics(one.name) for one in known))
    return {
        "extensions": [
            {
                "name": one.name,
                "version": one.version,
                "description": one.description,
                "methods": [{"name": m.name, "role": m.role, "limited": m.limited} for m in one.methods],
                "refused": one.refused,
                "statistics": counted,
            }
            for one, counted in zip(known, statistics, strict=True)
        ]
    }


@method("extension.config", "viewer", Nothing)
async def config(gateway: Gateway, caller: Caller, _: Nothing) -> dict[str, Any]:
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
