"""`trunkline call`: any method of the gateway, from a shell."""

import sys
from pathlib import Path
from typing import Any

import click

EPILOG = """\b
Examples:
  trunkline call session.rename session=last title=Parser
  trunkline call session.fork session=last wait=true
  trunkline call session.set_model session=last model=opus wait=true
  trunkline call ask.list status=all limit=500 | jq .asks

A VALUE that is JSON is given as it is, any other as a text. `session` may be shortened, or be `last`. With
`wait=true` a command's answer has its outcome. The gateway's /openapi.json describes all methods.
"""


class Pair(click.ParamType[tuple[str, Any]]):
    name = "NAME=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, Any]:
        import msgspec

        name, mark, text = str(value).partition("=")
        if not mark or not name:
            self.fail(f"{value!r} is not NAME=VALUE", param, ctx)
        try:
            return name, msgspec.json.decode(text)
        except msgspec.DecodeError:
            return name, text


@click.command(epilog=EPILOG)
@click.argument("method")
@click.argument("params", nargs=-1, type=Pair(), metavar="[NAME=VALUE]...")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def call(method: str, params: tuple[tuple[str, Any], ...], home: Path | None) -> int:
    """Call METHOD of the gateway and print what it answers, as JSON."""
    from trunkline_cli.context import finish

    return finish(_call(method, dict(params), home))


async def _call(method: str, params: dict[str, Any], home: Path | None) -> int:
    import msgspec

    from trunkline_cli.context import find_session, open_link

    async with open_link(home) as link:
        if isinstance(params.get("session"), str):
            params["session"] = await find_session(link, params["session"])
        answer = msgspec.json.encode(await link.call(method, **params))
    if sys.stdout.isatty():
        answer = msgspec.json.format(answer)
    click.echo(answer.decode())
    return 0
