"""`trunkline extension`: programs that live on the public interface, and what they may."""

from pathlib import Path
from typing import Any, Final

import click

EPILOG: Final = """\b
Examples:
  trunkline extension add mybot --command             let a program in that prompts sessions
  trunkline extension add audit --subscribe events    one that hears everything and can do nothing
  trunkline extension list                            who is let in, and who answers
  trunkline extension remove mybot

An extension `mybot` is a NATS service named `ext-mybot` with endpoints `trunk.ext.mybot.<method>`; each becomes the method
`ext.mybot.<method>` of the gateway, for the role that the endpoint's metadata `role` names (owner without it).
"""

home_option = click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")


@click.group(epilog=EPILOG)
@home_option
@click.pass_context
def extension(ctx: click.Context, home: Path | None) -> None:
    """Let extensions in, list them, put them out."""
    ctx.obj = home


@extension.command(epilog=EPILOG)
@click.argument("name")
@click.option("--subscribe", type=click.Choice(["events"]), help="Hear all events and deltas, and read histories.")
@click.option("--emit", is_flag=True, help="Write `ext.NAME.*` events into histories.")
@click.option("--command", is_flag=True, help="Start, prompt and interrupt sessions (role participant).")
@click.option("--answer", is_flag=True, help="Decide asks, and make links that do (role approver).")
@click.pass_obj
def add(home: Path | None, name: str, subscribe: str | None, *, emit: bool, command: bool, answer: bool) -> int:
    """Make the NATS user of an extension with these rights and no others, and print what the program has to be given."""
    from trunkline_bus import guests
    from trunkline_cli.discovery import home_directory, running_state
    from trunkline_wire import TrunklineError

    rights = [
        right
        for right, wanted in (
            ("events", bool(subscribe)),
            ("emit", emit),
            ("viewer", bool(subscribe) or command or answer),
            ("participant", command or answer),
            ("approver", answer),
        )
        if wanted
    ]
    directory = home_directory(home)
    seed = guests.add(directory / "nats", name, rights)
    try:
        url = running_state(directory).nats
    except TrunklineError:
        url = "(shown by `trunkline daemon status` once it runs)"
    click.echo(
        f"{name} may: {', '.join(rights) or 'answer calls'}; a running instance lets it in within seconds", err=True
    )
    for key, value in (
        ("NATS_URL", url),
        ("NATS_NKEY_SEED_FILE", str(seed.absolute())),
        ("NATS_INBOX_PREFIX", f"_INBOX_ext-{name}"),
        ("SERVICE_NAME", f"ext-{name}"),
    ):
        click.echo(f"{key}={value}")
    return 0


@extension.command()
@click.argument("name")
@click.pass_obj
def remove(home: Path | None, name: str) -> int:
    """Put an extension out: its connections end, its key is forgotten."""
    from trunkline_bus import guests
    from trunkline_cli.discovery import home_directory
    from trunkline_wire import TrunklineError

    if not guests.remove(home_directory(home) / "nats", name):
        raise TrunklineError("unknown_extension", f"there is no extension {name!r}: see `trunkline extension list`")
    click.echo(f"removed {name}")
    return 0


@extension.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def list_(home: Path | None, *, as_json: bool) -> int:
    """List who is let in, and who answers."""
    from trunkline_cli.context import finish

    return finish(_list(home, as_json=as_json))


async def _list(home: Path | None, *, as_json: bool) -> int:
    from trunkline_bus import guests
    from trunkline_cli.context import open_link
    from trunkline_cli.discovery import home_directory
    from trunkline_cli.output import ndjson, table

    async with open_link(home) as link:
        answering: dict[str, Any] = {one["name"]: one for one in (await link.extension.list())["extensions"]}
    rights = guests.rights(home_directory(home) / "nats")
    if as_json:
        for name in sorted({*rights, *answering}):
            ndjson({"name": name, "rights": rights.get(name, []), "answers": answering.get(name)})
        return 0
    table(
        ["name", "rights", "version", "methods", "requests", "errors"],
        [_row(name, rights.get(name, ()), answering.get(name)) for name in sorted({*rights, *answering})],
    )
    return 0


def _row(name: str, rights: tuple[str, ...], answers: dict[str, Any] | None) -> list[str]:
    if answers is None:
        return [name, " ".join(rights), "does not answer", "", "", ""]
    counted = answers["statistics"]
    return [
        name,
        " ".join(rights),
        answers["version"],
        " ".join(method["name"].rpartition(".")[2] for method in answers["methods"]),
        str(sum(one["num_requests"] for one in counted)),
        str(sum(one["num_errors"] for one in counted)),
    ]
