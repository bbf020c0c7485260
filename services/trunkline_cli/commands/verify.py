"""`trunkline verify`: does the log keep its promises?"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunkline_bus.connection import Bus
    from trunkline_bus.stored import Stored
    from trunkline_fold.check import Violation
    from trunkline_wire import Event

EPILOG = """\b
Examples:
  trunkline verify               all sessions
  trunkline verify last
  trunkline verify 0199f3 --json one violation a line

What is checked, by number: 1 native messages complete and in order; 2 seq, epochs and the fence; 3 one end an ask,
delivered as decided; 6 one outcome a command; 7 nothing left open. Exit code 1 if anything is wrong.
"""

AROUND = 3
"""Events shown before and after a violation."""


@click.command(epilog=EPILOG)
@click.argument("session", required=False)
@click.option("--json", "as_json", is_flag=True, help="One violation a line.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def verify(session: str | None, as_json: bool, home: Path | None) -> int:
    """Check the invariants of SESSION (or of all sessions) against the log."""
    from trunkline_cli.context import finish

    return finish(_verify(session, as_json, home))


async def _verify(reference: str | None, as_json: bool, home: Path | None) -> int:
    from trunkline_cli.logbook import find_logged, open_log, session_ids

    broken = events = 0
    async with open_log(home) as bus:
        sessions = await session_ids(bus) if reference is None else [await find_logged(bus, reference)]
        for session in sessions:
            count, violations = await _verify_one(bus, session, as_json)
            events += count
            broken += violations
    if not as_json:
        word = "session" if len(sessions) == 1 else "sessions"
        result = f"{broken} violations" if broken else "all is well"
        click.echo(f"{len(sessions)} {word}, {events} events: {result}")
    return 1 if broken else 0


async def _verify_one(bus: "Bus", session: str, as_json: bool) -> tuple[int, int]:
    from trunkline_cli.logbook import history
    from trunkline_cli.output import ndjson
    from trunkline_fold.check import Violation, check_session
    from trunkline_wire import TrunklineError

    stored = await history(bus, session)
    events: list[tuple[int, str, Event]] = []
    found: list[Violation] = []
    for one in stored:
        try:
            event = one.event()
        except TrunklineError as error:
            found.append(Violation(invariant=1, sequence=one.sequence, message=str(error)))
            continue
        if one.id is not None and one.id != event.id:
            message = f"the header names the event {one.id}, the event itself {event.id}"
            found.append(Violation(invariant=1, sequence=one.sequence, message=message))
        events.append((one.sequence, one.subject, event))
    found += check_session(events)
    for violation in found:
        if as_json:
            ndjson({"session": session, **_builtins(violation)})
        else:
            _show(session, violation, stored)
    return len(stored), len(found)


def _builtins(violation: "Violation") -> dict[str, object]:
    import msgspec

    return msgspec.to_builtins(violation)


def _show(session: str, violation: "Violation", stored: "Sequence[Stored]") -> None:
    from trunkline_cli.line import event_line
    from trunkline_wire import TrunklineError

    click.echo(f"{session}: invariant {violation.invariant} at {violation.sequence}: {violation.message}")
    place = next((index for index, one in enumerate(stored) if one.sequence >= violation.sequence), len(stored))
    for one in stored[max(0, place - AROUND) : place + AROUND + 1]:
        mark = ">" if one.sequence == violation.sequence else " "
        try:
            line = event_line(one.event())
        except TrunklineError as error:
            line = str(error)
        click.echo(f"  {mark} {one.sequence:>8} {line}")
