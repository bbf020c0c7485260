"""`trunkline events`: the log as it is, of one session or of all."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import click

EPILOG = """\b
Examples:
  trunkline events last                          its events so far, one line each
  trunkline events last --follow --from now      what happens from now on
  trunkline events --follow --type 'tool.*'      tools of all sessions
  trunkline events last --json > session.ndjson  whole envelopes
  trunkline events last --from 120               from the agent's 120th event on
  trunkline events --nats --json                 all sessions, from the log itself, without the gateway

--from takes `start`, `now`, a number (an agent's event `seq`; with --nats a sequence of the stream), or a cursor.
"""


@click.command(epilog=EPILOG)
@click.argument("session", required=False)
@click.option("--follow", "-f", is_flag=True, help="Go on until Ctrl-C.")
@click.option("--from", "start", default="start", show_default=True, help="start, now, a number or a cursor.")
@click.option("--type", "-t", "types", multiple=True, metavar="PATTERN", help="Only these types; may be repeated.")
@click.option("--deltas", is_flag=True, help="Streaming pieces, too (with --follow).")
@click.option("--nats", "direct", is_flag=True, help="Read the log directly.")
@click.option("--json", "as_json", is_flag=True, help="Whole envelopes, one a line.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def events(session: str | None, home: Path | None, **given: Any) -> int:
    """Print the events of SESSION (or of all sessions) in order."""
    from trunkline_cli.context import finish

    if session is None and not given["follow"] and not given["direct"]:
        raise click.UsageError("name a SESSION, or take --follow, or --nats for all of the log")
    return finish(_events(session, home, given))


async def _events(session: str | None, home: Path | None, given: dict[str, Any]) -> int:
    source = _from_log if given["direct"] else _followed if given["follow"] else _finite
    from trunkline_cli.line import event_line, matches
    from trunkline_cli.output import ndjson
    from trunkline_wire import decode_event, encode

    async for value in source(session, home, given):
        if not matches(value["type"], given["types"]):
            continue
        if given["as_json"]:
            ndjson(value)
        else:
            click.echo(event_line(decode_event(encode(value)), with_session=session is None))
    return 0


async def _finite(session: str | None, home: Path | None, given: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """What there is so far: up to the event that is the last one now."""
    from trunkline_cli.context import find_session, open_link
    from trunkline_client import Received

    assert session is not None
    if given["start"] == "now":
        return
    begin = _Begin(given["start"])
    async with open_link(home) as link:
        session = await find_session(link, session)
        page = await link.session.history(session=session, limit=1, after=begin.cursor)
        if not page["events"]:
            return
        if begin.cursor is not None:
            page = await link.session.history(session=session, limit=1)
        last = page["events"][-1]["event"]["id"]
        async for notice in link.watch(session=session, start="start", cursor=begin.cursor, deltas=False):
            if isinstance(notice, Received):
                if begin.reached(notice.event):
                    yield notice.event
                if notice.event["id"] == last:
                    return


async def _followed(session: str | None, home: Path | None, given: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """What there is and what comes, through restarts of the gateway."""
    from trunkline_cli.context import find_session, open_link
    from trunkline_client import Broken, Gap, Received

    begin = _Begin(given["start"])
    async with open_link(home) as link:
        notices = link.watch(
            session=None if session is None else await find_session(link, session),
            start="now" if given["start"] == "now" else "start",
            cursor=begin.cursor,
            patterns=list(given["types"]) or None,
            deltas=given["deltas"],
        )
        async for notice in notices:
            match notice:
                case Received(event=value) if begin.reached(value):
                    yield value
                case Gap(payload=payload):
                    click.echo(f"gap: {payload.get('reason')}; what follows is complete again", err=True)
                case Broken(mended=mended):
                    click.echo("connected again" if mended else "the gateway is gone; reconnecting", err=True)
                case _:
                    pass


async def _from_log(session: str | None, home: Path | None, given: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """From EVENTS itself, with the stream's own sequence numbers."""
    from trunkline_bus.direct import end
    from trunkline_bus.reader import Reader
    from trunkline_cli.logbook import find_logged, open_log
    from trunkline_wire import decode_json, subjects

    start: str = given["start"]
    if start not in ("start", "now") and not start.isdecimal():
        raise click.UsageError("--nats takes no cursor: use start, now or a sequence of the stream")
    async with open_log(home) as bus:
        wanted = subjects.ALL_EVENTS if session is None else subjects.session_events(await find_logged(bus, session))
        last = await end(bus, subjects.EVENTS)
        after = last if start == "now" else int(start) - 1 if start.isdecimal() else 0
        if not given["follow"] and after >= last:
            return
        until = None if given["follow"] else last
        async with Reader(bus, subjects.EVENTS, [wanted], after=max(0, after), until=until) as reader:
            async for stored in reader:
                yield decode_json(stored.raw)


class _Begin:
    """What `--from` says: a `cursor`, or a number, and then events pass once an agent's event of that `seq` was seen."""

    def __init__(self, start: str) -> None:
        number = start.isdecimal()
        self.cursor = None if number or start in ("start", "now") else start
        self._seq = int(start) if number else 0
        self._reached = self._seq <= 1

    def reached(self, event: dict[str, Any]) -> bool:
        self._reached = self._reached or int(event.get("seq") or 0) >= self._seq
        return self._reached
