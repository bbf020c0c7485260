"""`trunkline teams`: teams of agents, their boards, and asking a lead to end its team."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from trunkline_client.results import TeamBoard, TeamSummary

EPILOG: Final = """\b
Examples:
  trunkline teams                     the teams that have not ended
  trunkline teams show lab            members, tasks, open asks, messages, costs
  trunkline teams board lab --watch   the tasks, redrawn whenever they change
  trunkline teams asks lab            what the lead and all members want decided
  trunkline teams approve lab         allow all of it, shown before you say yes
  trunkline teams shutdown lab        ask the lead to end the team
  trunkline teams --json | jq .usage

A team is named by its name, or by its id SESSION/NAME where several have one name.
"""

json_option = click.option("--json", "as_json", is_flag=True, help="JSON, one value a line.")


@click.group(invoke_without_command=True, epilog=EPILOG)
@click.option("--all", "-a", "everything", is_flag=True, help="Teams that have ended, too.")
@json_option
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
@click.pass_context
def teams(ctx: click.Context, everything: bool, as_json: bool, home: Path | None) -> int:
    """List teams of agents, the one that changed last first."""
    from trunkline_cli.context import finish

    ctx.obj = home
    if ctx.invoked_subcommand is not None:
        return 0
    return finish(_list(home, everything, as_json))


@teams.command("list", epilog=EPILOG)
@click.option("--all", "-a", "everything", is_flag=True, help="Teams that have ended, too.")
@json_option
@click.pass_obj
def list_(home: Path | None, everything: bool, as_json: bool) -> int:
    """List teams of agents, the one that changed last first."""
    from trunkline_cli.context import finish

    return finish(_list(home, everything, as_json))


@teams.command(epilog=EPILOG)
@click.argument("team")
@json_option
@click.pass_obj
def show(home: Path | None, team: str, as_json: bool) -> int:
    """Show TEAM: members, tasks, open requests and asks, the latest messages, what it has used."""
    from trunkline_cli.context import finish

    return finish(_show(home, team, as_json))


@teams.command(epilog=EPILOG)
@click.argument("team")
@click.option("--watch", "-w", is_flag=True, help="Go on, and show it again whenever it changes, until it ends.")
@json_option
@click.pass_obj
def board(home: Path | None, team: str, watch: bool, as_json: bool) -> int:
    """Show the tasks of TEAM: ready, blocked by others, in progress, completed."""
    from trunkline_cli.context import finish

    return finish(_board(home, team, watch, as_json))


@teams.command(epilog=EPILOG)
@click.argument("team")
@json_option
@click.pass_obj
def asks(home: Path | None, team: str, as_json: bool) -> int:
    """List what the lead of TEAM and all its members want decided."""
    from trunkline_cli.context import finish

    return finish(_asks(home, team, as_json))


@teams.command(epilog=EPILOG)
@click.argument("team")
@click.option("--yes", "-y", is_flag=True, help="Do not ask me.")
@click.pass_obj
def approve(home: Path | None, team: str, yes: bool) -> int:
    """Allow what the lead of TEAM and all its members ask for, shown before you say yes."""
    from trunkline_cli.context import finish
    from trunkline_cli.many import answer_many

    return finish(answer_many("allow", home, session=None, filters={"team": team}, yes=yes))


@teams.command(epilog=EPILOG)
@click.argument("team")
@click.option("--yes", "-y", is_flag=True, help="Do not ask me.")
@click.option("--message", "-m", help="What the agents are told.")
@click.pass_obj
def deny(home: Path | None, team: str, yes: bool, message: str | None) -> int:
    """Deny what the lead of TEAM and all its members ask for, shown before you say yes."""
    from trunkline_cli.context import finish
    from trunkline_cli.many import answer_many

    return finish(answer_many("deny", home, session=None, filters={"team": team}, yes=yes, message=message))


@teams.command(epilog=EPILOG)
@click.argument("team")
@click.option("--reason", "-r", help="What the lead is told.")
@click.pass_obj
def shutdown(home: Path | None, team: str, reason: str | None) -> int:
    """Ask the lead of TEAM to shut it down: a prompt that says that it is a request."""
    from trunkline_cli.context import finish

    return finish(_shutdown(home, team, reason))


async def _list(home: Path | None, everything: bool, as_json: bool) -> int:
    from trunkline_cli.context import brief, open_link
    from trunkline_cli.output import ago, ndjson, safe, table

    async with open_link(home) as link:
        found: list[TeamSummary] = []
        while True:
            page = await link.team.list(status="all" if everything else "live", limit=200, offset=len(found))
            found += page["teams"]
            if not page["has_more"] or not page["teams"]:
                break
    if as_json:
        for one in found:
            ndjson(one)
        return 0
    if not found:
        click.echo("no teams" + ("" if everything else "; see --all for those that have ended"), err=True)
        return 0
    rows = [
        [
            safe(one["team"]),
            brief(one["lead"]),
            "ended" if one["ended"] else f"{_active(one)} of {len(one['members'])} active",
            f"{one['tasks'].get('completed', 0)} of {sum(one['tasks'].values())} done",
            str(one["open_asks"] or ""),
            ago(one["updated"]),
        ]
        for one in found
    ]
    table(["team", "lead", "members", "tasks", "asks", "updated"], rows)
    return 0


def _active(one: "TeamSummary") -> int:
    return sum(status == "active" for status in one["members"].values())


async def _show(home: Path | None, team: str, as_json: bool) -> int:
    from trunkline_cli.context import open_link
    from trunkline_cli.output import ndjson
    from trunkline_cli.teamboard import lines_of

    async with open_link(home) as link:
        shown = await link.team.get(team=team)
        said = await link.team.messages(team=team, limit=5)
    if as_json:
        ndjson({**shown, "messages": said["messages"]})
        return 0
    for line in lines_of(shown, said["messages"]):
        click.echo(line)
    return 0


async def _board(home: Path | None, team: str, watch: bool, as_json: bool) -> int:
    from trunkline_cli.context import open_link
    from trunkline_cli.teamboard import show_board, watch_board

    async with open_link(home) as link:

        async def look() -> "TeamBoard":
            return await link.team.board(team=team)

        if watch:
            return await watch_board(look, as_json=as_json)
        show_board(await look(), as_json=as_json)
    return 0


async def _asks(home: Path | None, team: str, as_json: bool) -> int:
    from trunkline_cli.context import brief, decode_ask, open_link
    from trunkline_cli.output import ago, ndjson, safe, table
    from trunkline_cli.render import describe

    async with open_link(home) as link:
        answer = await link.ask.list(team=team)
    members, requests = answer.get("members", {}), answer.get("requests", [])
    if as_json:
        for value in answer["asks"]:
            ndjson({**value, "member": members.get(value["ask"])})
        return 0
    found = [decode_ask(value) for value in answer["asks"]]
    if not found and not requests:
        click.echo("nobody waits for a decision", err=True)
        return 0
    rows = [
        [
            brief(ask.ask),
            safe(members.get(ask.ask) or "lead"),
            ask.kind,
            ago(ask.time),
            describe(ask.requested)[0],
        ]
        for ask in found
    ]
    table(["ask", "member", "kind", "since", "wants"], rows)
    for one in requests:
        click.echo(
            f"{safe(one['member'])} waits for the lead: {one['kind']} {safe(one.get('reason') or '')}".rstrip(),
            err=True,
        )
    return 0


async def _shutdown(home: Path | None, team: str, reason: str | None) -> int:
    from trunkline_cli.context import open_link
    from trunkline_wire.ids import new_command_id

    async with open_link(home) as link:
        sent = await link.team.shutdown(team=team, reason=reason, id=new_command_id())
    click.echo(
        f"asked {sent['session']} to shut {sent['team'].partition('/')[2]} down; `trunkline teams board` shows what it does"
    )
    return 0
