"""`trunkline hooks`: our hooks in agents' own settings."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from trunkline_agentkit.hooks import HasHooks, HookEndpoint

EPILOG: Final = """\b
Examples:
  trunkline hooks install claude                          into ~/.claude/settings.json
  trunkline hooks install claude --file .claude/settings.local.json
  trunkline hooks status claude
  trunkline hooks uninstall claude

An agent calls its hooks when something happens in it: a member of its team goes idle, a task is done, it wants a
permission. Trunkline takes note and never decides; an agent that can't reach it goes on. What a session of Trunkline's
calls stands in its log, what others call in the stream of what is seen on this host.
"""

ANSWERS_WITHIN_S: Final = 2.0

agent_argument = click.argument("agent")
file_option = click.option("--file", type=click.Path(path_type=Path), help="Another settings file than the user's own.")
home_option = click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")


@click.group(epilog=EPILOG)
def hooks() -> None:
    """Let agents that run here tell Trunkline what happens in them."""


@hooks.command(epilog=EPILOG)
@agent_argument
@file_option
@home_option
def install(agent: str, file: Path | None, home: Path | None) -> int:
    """Put our hooks into an agent's settings. What is there stays; done again, nothing changes."""
    from trunkline_agentkit.hooks import ensure_endpoint, read_settings, write_settings
    from trunkline_cli.discovery import home_directory

    adapter = _adapter(agent)
    path = file or adapter.hook_settings()
    before = read_settings(path)
    endpoint = ensure_endpoint(home_directory(home))
    after = adapter.with_hooks(before, endpoint)
    if after == before:
        click.echo(f"{path}: unchanged")
    else:
        write_settings(path, after)
        click.echo(f"{path}: {len(adapter.hooks_in(after))} hooks installed, for sessions that begin from now on")
    _warn(adapter, after, endpoint)
    return 0


@hooks.command(epilog=EPILOG)
@agent_argument
@file_option
@home_option
def uninstall(agent: str, file: Path | None, home: Path | None) -> int:
    """Take our hooks out of an agent's settings again, and nothing else."""
    from trunkline_agentkit.hooks import read_settings, write_settings

    del home
    adapter = _adapter(agent)
    path = file or adapter.hook_settings()
    before = read_settings(path)
    after = adapter.without_hooks(before)
    if after == before:
        click.echo(f"{path}: there are none of ours")
    else:
        write_settings(path, after)
        click.echo(f"{path}: our hooks are gone")
    return 0


@hooks.command(epilog=EPILOG)
@agent_argument
@file_option
@home_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def status(agent: str, file: Path | None, home: Path | None, as_json: bool) -> int:
    """Say which of our hooks are installed, whether they are called, and whether anybody listens. Exit code 1 if not all is well."""
    from trunkline_agentkit.hooks import read_endpoint, read_settings
    from trunkline_cli.discovery import home_directory
    from trunkline_cli.output import ndjson

    adapter = _adapter(agent)
    path = file or adapter.hook_settings()
    settings = read_settings(path)
    endpoint = read_endpoint(home_directory(home))
    events = adapter.hooks_in(settings)
    current = endpoint is not None and adapter.with_hooks(settings, endpoint) == settings
    hindrances = adapter.hook_hindrances(settings, endpoint) if endpoint is not None else []
    if events and not current:
        hindrances.append("the hooks are not those of this state directory: `trunkline hooks install` renews them")
    heard = endpoint is not None and _listens(endpoint, agent)
    if as_json:
        found = {"file": str(path), "events": events, "current": current, "heard": heard, "hindrances": hindrances}
        ndjson(found)
    else:
        click.echo(f"{path}: {', '.join(events) if events else 'no hooks of ours'}")
        click.echo("a receiver listens" if heard else "no receiver listens: is `trunkline up` running?")
        for hindrance in hindrances:
            click.echo(hindrance, err=True)
    return 0 if events and heard and not hindrances else 1


def _adapter(agent: str) -> "HasHooks":
    from trunkline_agentkit.hooks import HasHooks
    from trunkline_agentkit.registry import load
    from trunkline_wire import TrunklineError

    adapter = load(agent)
    if not isinstance(adapter, HasHooks):
        raise TrunklineError("unsupported", f"{adapter.manifest.title} has no hooks that Trunkline could be told by")
    return adapter


def _warn(adapter: "HasHooks", settings: dict[str, Any], endpoint: "HookEndpoint") -> None:
    for hindrance in adapter.hook_hindrances(settings, endpoint):
        click.echo(hindrance, err=True)


def _listens(endpoint: "HookEndpoint", agent: str) -> bool:
    """Whether a receiver of this state directory answers: it knows the secret, and refuses what is no call."""
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=ANSWERS_WITHIN_S)
    try:
        headers = {"Authorization": f"Bearer {endpoint.secret}"}
        connection.request("POST", endpoint.path(agent), body=b"{}", headers=headers)
        return connection.getresponse().status == 400
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
