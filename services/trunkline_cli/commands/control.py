"""`trunkline interrupt`, `close` and `resume`."""

from pathlib import Path
from typing import Any

import click

INTERRUPT_EPILOG = """\b
Examples:
  trunkline interrupt last
  trunkline interrupt 0199f3 --queued   and drop the prompts that wait
"""
CLOSE_EPILOG = """\b
Examples:
  trunkline close last
  trunkline close 0199f3 --reason "done for today"
  trunkline close 0199f3 --kill    at once, also where its worker hangs

Its log stays: `trunkline attach`, `events` and `replay` still show it, `trunkline resume` opens it again.
"""
RESUME_EPILOG = """\b
Examples:
  trunkline resume 0199f3
  trunkline ls --all               closed sessions too

An imported session is opened like any other that is closed. One that is idle needs no resume: `trunkline send` wakes it.
"""


@click.command(epilog=INTERRUPT_EPILOG)
@click.argument("session")
@click.option("--queued", is_flag=True, help="Drop the prompts that wait, too.")
@click.option("--json", "as_json", is_flag=True, help="Print the gateway's answer as JSON.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def interrupt(session: str, queued: bool, as_json: bool, home: Path | None) -> int:
    """Interrupt the running turn of SESSION."""
    from trunkline_cli.context import finish

    params = {"cancel_queued": True} if queued else {}
    return finish(_call("session.interrupt", session, as_json, home, "interrupting", params))


@click.command(epilog=CLOSE_EPILOG)
@click.argument("session")
@click.option("--reason", help="Why, for the log.")
@click.option("--kill", is_flag=True, help="Kill the agent at once, also where its worker hangs.")
@click.option("--json", "as_json", is_flag=True, help="Print the gateway's answer as JSON.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def close(session: str, reason: str | None, kill: bool, as_json: bool, home: Path | None) -> int:
    """Close SESSION: its agent ends, its log stays."""
    from trunkline_cli.context import finish

    if kill:
        args = {"reason": reason} if reason is not None else {}
        return finish(_call("session.command", session, as_json, home, "killing", {"verb": "kill", "args": args}))
    return finish(_call("session.close", session, as_json, home, "closing", {"reason": reason}))


@click.command(epilog=RESUME_EPILOG)
@click.argument("session")
@click.option("--json", "as_json", is_flag=True, help="Print the gateway's answer as JSON.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def resume(session: str, as_json: bool, home: Path | None) -> int:
    """Open SESSION again after it was closed: its agent takes up what was said."""
    from trunkline_cli.context import finish

    return finish(_call("session.command", session, as_json, home, "resuming", {"verb": "resume"}))


async def _call(
    method: str, reference: str, as_json: bool, home: Path | None, said: str, params: dict[str, Any]
) -> int:
    from trunkline_cli.context import find_session, open_link
    from trunkline_cli.output import ndjson

    async with open_link(home) as link:
        session = await find_session(link, reference)
        answer = await link.call(method, session=session, **params)
    if as_json:
        ndjson(answer)
    else:
        click.echo(f"{said} {session}")
    return 0
