"""One answer to many asks: shown first, given after a yes."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from trunkline_cli.context import brief, find_session, open_link
from trunkline_cli.output import safe, short
from trunkline_cli.render import describe
from trunkline_wire import TrunklineError
from trunkline_wire.asks import PermissionRequested, PlanProposed


async def answer_many(
    behaviour: Literal["allow", "deny"],
    home: Path | None,
    *,
    session: str | None,
    filters: dict[str, Any],
    yes: bool,
    message: str | None = None,
) -> int:
    """Returns 1 if one of them was refused."""
    async with open_link(home) as link:
        wanted = {key: value for key, value in filters.items() if value is not None}
        if session is not None:
            wanted["session"] = await find_session(link, session)
        if not wanted:
            wanted["all"] = True
        dry = await link.ask.answer_many(behaviour=behaviour, dry_run=True, **wanted)
        if not dry["asks"]:
            click.echo("nothing that fits waits for a decision", err=True)
            return 0
        for one in dry["asks"]:
            click.echo(f"{brief(one['ask'])}  {brief(one['session'])}  {_wants(one)}", err=True)
        if not yes and not _agreed(behaviour, len(dry["asks"])):
            click.echo("nothing was decided", err=True)
            return 1
        # What has come since was not shown, and is not answered.
        asks = [one["ask"] for one in dry["asks"]]
        done = await link.ask.answer_many(behaviour=behaviour, asks=asks, id=dry["id"], message=message, within=120.0)
    refused = 0
    for one in done["asks"]:
        if (error := one.get("error")) is not None:
            refused += 1
            click.echo(f"{error['code']}: {one['ask']} of {one['session']}: {safe(error['message'])}")
        else:
            decided = one.get("outcome") == "decided"
            said = behaviour if decided else f"{one.get('votes')} of {one.get('quorum')} allow it"
            click.echo(f"{said}: {one['ask']} of {one['session']}")
    return 1 if refused else 0


def _agreed(behaviour: str, count: int) -> bool:
    if not sys.stdin.isatty():
        raise TrunklineError(
            "bad_params", f"there is no terminal to ask you at: add --yes to {behaviour} these {count}"
        )
    return click.confirm(f"{behaviour} {'this one' if count == 1 else f'these {count}'}?", err=True)


def _wants(shown: Mapping[str, Any]) -> str:
    kind: Any = PlanProposed if "plan" in shown["requested"] else PermissionRequested
    asked: PermissionRequested | PlanProposed = msgspec.convert(shown["requested"], kind)
    return short(" ".join(describe(asked)), 160)
