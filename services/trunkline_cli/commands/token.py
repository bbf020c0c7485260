"""`trunkline token` and `trunkline sign-in`: who may come in, and as what."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from trunkline_client.results import Token

CREATE_EPILOG = """\b
Examples:
  trunkline token create --actor ci --role viewer --lasts 30d
  trunkline token create --actor bob --role participant --session last
  trunkline token create --actor amy --role approver --workspace ~/src/app --label phone
"""

EPILOG = """\b
Examples:
  trunkline token                                     the path of the file with the owner's token
  trunkline token create --actor ci --role viewer --lasts 30d
  trunkline token create --actor bob --role participant --session last
  trunkline token list
  trunkline token revoke 0f3a9c
  curl -H "Authorization: Bearer $(cat "$(trunkline token)")" -H "Content-Type: application/json" \\
    -d '{}' http://127.0.0.1:30086/api/v1/session.list

Roles nest: viewer (sees), participant (prompts, interrupts), approver (decides), owner (everything).
On this machine commands need no token: they use the unix socket.
"""

SIGN_IN_EPILOG = """\b
Examples:
  trunkline sign-in                                   a link for yourself, as owner
  trunkline sign-in --actor bob --role approver       a link to send to Bob
  trunkline sign-in --url https://box.example.org     as others reach this gateway

The link works once, within five minutes. The browser keeps a cookie that scripts can't read; `trunkline token list`
shows what is signed in, `trunkline token revoke` ends it.
"""

ROLES: Final = ("viewer", "participant", "approver", "owner")
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


class Duration(click.ParamType[float]):
    """`90s`, `15m`, `12h`, `30d`, `2w`: seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", str(value))
        if found is None:
            self.fail(f"{value!r} is no duration: use 90s, 15m, 12h, 30d or 2w", param, ctx)
        return float(found[1]) * _UNITS[found[2]]


home_option = click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
scope_options = (
    click.option("--session", "sessions", multiple=True, help="Limit it to this session (may be repeated)."),
    click.option("--workspace", "workspaces", multiple=True, help="Limit it to this workspace, by id or directory."),
)


def limited(command: Any) -> Any:
    for option in scope_options:
        command = option(command)
    return command


@click.group(invoke_without_command=True, epilog=EPILOG)
@home_option
@click.pass_context
def token(ctx: click.Context, home: Path | None) -> int:
    """Make, list and revoke tokens; alone: print the path of the file with the owner's token. It is never printed itself."""
    from trunkline_cli.discovery import home_directory
    from trunkline_wire import TrunklineError

    ctx.obj = home
    if ctx.invoked_subcommand is not None:
        return 0
    path = home_directory(home) / "token"
    if not path.exists():
        raise TrunklineError("not_running", f"there is no token at {str(path)!r} yet: `trunkline up` makes it")
    click.echo(str(path))
    return 0


@token.command(epilog=CREATE_EPILOG)
@click.option("--actor", required=True, help="Who it is for: a name that shows up with everything they do.")
@click.option("--role", type=click.Choice(ROLES), required=True, help="What they may do.")
@click.option("--lasts", type=Duration(), help="How long it is valid (12h, 30d); for ever without it.")
@click.option("--label", default="", help="A note to know it by.")
@limited
@click.pass_obj
def create(
    home: Path | None,
    actor: str,
    role: str,
    lasts: float | None,
    label: str,
    sessions: tuple[str, ...],
    workspaces: tuple[str, ...],
) -> int:
    """Make a token. It is printed once, alone, on the standard output; the log knows only its hash."""
    from trunkline_cli.context import finish

    return finish(_create(home, sessions, workspaces, actor=actor, role=role, lasts=lasts, label=label))


async def _create(home: Path | None, sessions: tuple[str, ...], workspaces: tuple[str, ...], **params: Any) -> int:
    from trunkline_cli.context import open_link

    async with open_link(home) as link:
        made = await link.token.create(**params, **await _scope(link, sessions, workspaces))
    click.echo(f"token {made['id'][:12]} for {made['actor']} ({made['role']}); it is shown only now:", err=True)
    click.echo(made["token"])
    return 0


@token.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def list_(home: Path | None, as_json: bool) -> int:
    """List the tokens that are valid: id, actor, role, how it came to be, age, end, what it is limited to, note."""
    from trunkline_cli.context import finish

    return finish(_list(home, as_json))


def _limits(token: "Token") -> list[str]:
    scope = token.get("scope", {})
    return [*scope.get("sessions", []), *scope.get("workspaces", [])]


async def _list(home: Path | None, as_json: bool) -> int:
    from trunkline_cli.context import open_link
    from trunkline_cli.output import ago, ndjson, table

    async with open_link(home) as link:
        tokens = (await link.token.list(limit=500))["tokens"]
    if as_json:
        for one in tokens:
            ndjson(one)
        return 0
    head = ["id", "actor", "role", "by", "made", "ends", "limited to", "note"]
    table(
        head,
        [
            [
                one["id"][:12],
                one["actor"],
                one["role"],
                one.get("via", "created"),
                ago(one["created"]),
                _ends(one.get("expires")),
                " ".join(name[:16] for name in _limits(one)),
                one.get("label", ""),
            ]
            for one in tokens
        ],
    )
    return 0


@token.command()
@click.argument("id")
@click.pass_obj
def revoke(home: Path | None, id: str) -> int:
    """Revoke a token, by the beginning of its id: every connection that was opened with it ends at once."""
    from trunkline_cli.context import finish

    return finish(_revoke(home, id))


async def _revoke(home: Path | None, reference: str) -> int:
    from trunkline_cli.context import open_link
    from trunkline_wire import TrunklineError

    async with open_link(home) as link:
        tokens = (await link.token.list(limit=500))["tokens"]
        found = [one["id"] for one in tokens if one["id"].startswith(reference)]
        if len(found) != 1:
            raise TrunklineError(
                "bad_id", f"{len(found)} tokens begin with {reference!r}: `trunkline token list` shows them"
            )
        await link.token.revoke(id=found[0])
    click.echo(f"revoked {found[0][:12]}")
    return 0


@click.command("sign-in", epilog=SIGN_IN_EPILOG)
@click.option("--actor", help="Who it is for; the user of this machine without it.")
@click.option("--role", type=click.Choice(ROLES), default="owner", show_default=True, help="What they may do.")
@click.option("--lasts", type=Duration(), help="How long the browser stays signed in; 30d without it.")
@click.option("--url", help="The gateway's address as the browser reaches it; the local one without it.")
@limited
@home_option
def sign_in(
    actor: str | None,
    role: str,
    lasts: float | None,
    url: str | None,
    sessions: tuple[str, ...],
    workspaces: tuple[str, ...],
    home: Path | None,
) -> int:
    """Print a link that signs a browser in, once."""
    from trunkline_cli.context import finish

    return finish(_sign_in(home, sessions, workspaces, url, actor=actor, role=role, lasts=lasts))


async def _sign_in(
    home: Path | None, sessions: tuple[str, ...], workspaces: tuple[str, ...], url: str | None, **params: Any
) -> int:
    from trunkline_cli.context import open_link
    from trunkline_cli.discovery import gateway_url, home_directory

    async with open_link(home) as link:
        params["actor"] = params["actor"] or (await link.server())["actor"]
        made = await link.sign_in.link(**params, **await _scope(link, sessions, workspaces))
    base = url or gateway_url(home_directory(home))
    click.echo(f"for {params['actor']} ({params['role']}), once, within five minutes:", err=True)
    click.echo(f"{base.rstrip('/')}{made['path']}")
    return 0


async def _scope(link: Any, sessions: tuple[str, ...], workspaces: tuple[str, ...]) -> dict[str, Any]:
    from trunkline_cli.context import find_session

    # The host whose directories are meant where none is named.
    host = (await link.agent.list(limit=1))["host"] if workspaces else ""
    return {
        "sessions": [await find_session(link, one) for one in sessions],
        "workspaces": [_workspace(host, one) for one in workspaces],
    }


def _workspace(host: str, given: str) -> str:
    """A workspace's id, from the id or the directory."""
    from trunkline_wire.ids import is_id, workspace_id

    return given if is_id(given, "ws") else workspace_id(host, str(Path(given).expanduser().resolve()))


def _ends(expires: float | None) -> str:
    import datetime as dt

    return "" if expires is None else dt.datetime.fromtimestamp(expires).astimezone().strftime("%Y-%m-%d %H:%M")
