"""`trunkline replay`: a session's state as of any moment, folded from the log."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunkline_bus.stored import Stored
    from trunkline_fold.session import SessionState

EPILOG = """\b
Examples:
  trunkline replay last                               as of now
  trunkline replay last --at 120                      after its agent's 120th event
  trunkline replay last --at 2026-11-27T21:20:10Z     as of a time (UTC unless it says otherwise)
  trunkline replay last --at 120 --json | jq .usage   the whole state

It reads the log itself: the gateway need not run, and nothing but the log is believed.
"""


@click.command(epilog=EPILOG)
@click.argument("session", default="last")
@click.option("--at", metavar="SEQ|TIME", help="The moment: an event's seq, or a time.")
@click.option("--json", "as_json", is_flag=True, help="The whole state as JSON.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def replay(session: str, at: str | None, as_json: bool, home: Path | None) -> int:
    """Show the state of SESSION as it was."""
    from trunkline_cli.context import finish

    return finish(_replay(session, at, as_json, home))


async def _replay(reference: str, at: str | None, as_json: bool, home: Path | None) -> int:
    from trunkline_cli.logbook import find_logged, history, open_log
    from trunkline_cli.output import ndjson

    async with open_log(home) as bus:
        session = await find_logged(bus, reference)
        stored = await history(bus, session)
    state, count = fold_until(session, stored, at)
    if as_json:
        ndjson(state)
        return 0
    for name, value in summary(state):
        click.echo(f"{name:<14}{value}")
    click.echo(f"{'events':<14}{count} of {len(stored)}")
    return 0


def fold_until(session: str, stored: "Sequence[Stored]", at: str | None) -> "tuple[SessionState, int]":
    """The state after the events up to `at`, and how many they are. Raises `bad_params` for a moment of another form."""
    from trunkline_fold.session import fold_session, initial
    from trunkline_wire import parse_time

    last_seq = int(at) if at is not None and at.isdecimal() else None
    moment = parse_time(at) if at is not None and last_seq is None else None
    if moment is not None and moment.tzinfo is None:
        import datetime as dt

        moment = moment.replace(tzinfo=dt.UTC)
    state, count = initial(session), 0
    for one in stored:
        event = one.event()
        if last_seq is not None and event.seq is not None and event.seq > last_seq:
            break
        if moment is not None and one.time > moment:
            break
        state = fold_session(state, event, one.sequence)
        count += 1
    return state, count


def summary(state: "SessionState") -> list[tuple[str, str]]:
    """What a person wants to know first, as (name, value)."""
    from trunkline_cli.output import safe, short

    usage = state.usage
    lines = [
        ("session", state.session),
        ("status", f"{state.status} since {state.status_since}" if state.status_since else state.status),
        ("adapter", " ".join(part for part in (state.adapter, state.model, state.mode) if part)),
        ("directory", state.cwd or ""),
        ("position", f"seq {state.seq}, epoch {state.epoch}, stream sequence {state.sequence}"),
        ("turns", f"{state.turns}{', one open' if state.turn is not None else ''}"),
        (
            "tokens",
            f"in {usage.input:,}, out {usage.output:,}, cache {usage.cache_read:,} read {usage.cache_write:,} written",
        ),
    ]
    if state.title:
        lines.insert(1, ("title", safe(state.title)))
    if state.cost_usd is not None:
        lines.append(("cost", f"${state.cost_usd:.4f}"))
    lines += [("open tool", f"{tool.name}: {short(safe(tool.title or ''))}") for tool in state.open_tools.values()]
    lines += [("open ask", ask) for ask in state.open_asks]
    lines += [("plan", f"{entry.status}: {short(safe(entry.content))}") for entry in state.plan]
    if state.last_error is not None:
        lines.append(("last error", f"{state.last_error.code}: {short(safe(state.last_error.message))}"))
    if state.last_text:
        lines.append(("last text", f"{state.last_author}: {short(safe(state.last_text))}"))
    return lines
