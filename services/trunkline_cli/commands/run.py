"""`trunkline run`: a new session, and the conversation with it."""

import shlex
import sys
from pathlib import Path
from typing import Any

import click

EPILOG = """\b
Examples:
  trunkline run claude                         talk to Claude Code in this directory
  trunkline run claude "Fix the failing test"  with a first prompt, and stay
  trunkline run claude "Summarise README.md" < /dev/null > summary.txt
                                               without a terminal: ends with the turn, the text alone in the file
  git diff | trunkline run claude              the prompt from a pipe
  trunkline run claude "Refactor" --detach     print the session's id and leave it running
  trunkline run claude "Migrate" --hold detached
                                               the turn goes on whatever is restarted; close or stop --all ends it
  trunkline run demo --json "hello"            every event as a line of JSON
  trunkline run acp --command "my-agent --acp" any program that speaks the Agent Client Protocol
  trunkline run acp --agent gemini             an agent by one adapter and no other

Leaving (Ctrl-D) ends nothing: `trunkline attach last` comes back. Exit code: 0 when the turn succeeded, 1 when not,
130 after Ctrl-C. `trunkline agents` lists the agents that are installed, and how each is spoken with.
"""


@click.command(epilog=EPILOG)
@click.argument("name", metavar="AGENT")
@click.argument("prompt", required=False)
@click.option("--cwd", type=click.Path(path_type=Path), help="The agent's directory (default: this one).")
@click.option("--host", help="Which host, by its id (default: the gateway's own, else one that can run AGENT).")
@click.option("--model", help="The model, as the agent calls it.")
@click.option("--mode", help="The permission mode, as the agent calls it.")
@click.option("--thinking", type=click.Choice(["off", "low", "medium", "high", "max"]), help="How much to think.")
@click.option("--title", help="A name for lists.")
@click.option("--agent", help="Which agent; AGENT then names the adapter that shall run it.")
@click.option("--command", help="The program to run, as one shell word list; AGENT then names the adapter.")
@click.option("--system-prompt", help="Instructions to add to the agent's own.")
@click.option("--max-turns", type=click.IntRange(1), help="Stop the agent after this many steps.")
@click.option("--budget", type=click.FloatRange(0, min_open=True), help="Stop the agent at this cost in USD.")
@click.option(
    "--hold",
    type=click.Choice(["auto", "child", "detached", "tmux"]),
    help="What becomes of the agent when its worker dies or stops. child: it ends too, and the next prompt resumes it (the "
    "default: auto is child). detached: it goes on, its turn and its open questions with it, for a day at most. tmux: a "
    "terminal program goes on in a tmux of its own.",
)
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE", help="Any other session option; VALUE may be JSON."
)
@click.option("--detach", "-d", is_flag=True, help="Print the session's id and leave it running.")
@click.option("--wait", "-w", is_flag=True, help="End with the first turn, also on a terminal.")
@click.option("--json", "as_json", is_flag=True, help="Print the session's events as NDJSON; ends with the turn.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def run(name: str, prompt: str | None, cwd: Path | None, home: Path | None, **given: Any) -> int:
    """Start a session of AGENT and talk to it, or have it do PROMPT.

    An agent is spoken with in the best way that is installed here: its own protocol, else the Agent Client Protocol.

    On a terminal you stay: type prompts, answer what the agent asks with y, n or a number, Ctrl-C interrupts its turn,
    Ctrl-D leaves it running. Without a terminal it ends with PROMPT's turn.
    """
    from trunkline_cli.context import finish

    if prompt is None and not sys.stdin.isatty():
        prompt = sys.stdin.read().strip() or None
    if prompt is None and given["as_json"] and not given["detach"]:
        raise click.UsageError("--json needs a PROMPT, as an argument or from a pipe")
    return finish(_run(name, prompt, (cwd or Path.cwd()).expanduser().resolve(), home, given))


async def _run(name: str, prompt: str | None, cwd: Path, home: Path | None, given: dict[str, Any]) -> int:
    from trunkline_cli.context import open_link
    from trunkline_cli.conversation import Conversation, View
    from trunkline_cli.output import DIM, Screen
    from trunkline_wire.ids import new_command_id, new_session_id

    session = new_session_id()
    as_json, detach = given["as_json"], given["detach"]
    keyboard = sys.stdin.isatty() and sys.stdout.isatty() and not (as_json or detach or given["wait"])
    screen = Screen(apart=as_json)
    async with open_link(home) as link:
        by_adapter = given["agent"] is not None or given["command"] is not None
        created = await link.session.create(
            session=session,
            adapter=name if by_adapter else None,
            agent=given["agent"] if by_adapter else name,
            cwd=str(cwd),
            host=given["host"],
            title=given["title"],
            options=session_options(given),
        )
        if notice := created.get("notice"):
            screen.line(notice, DIM)
        if detach or (prompt is None and not keyboard):
            if prompt is not None:
                await link.session.prompt(session=session, text=prompt, id=new_command_id())
            click.echo(session)
            return 0
        screen.line(f"{session}  {name}  {cwd}", DIM)
        if keyboard and prompt is None:
            screen.line("/help says what to type; Ctrl-D leaves, the session goes on", DIM)
        view = View(keyboard=keyboard, prompt=prompt, wait=not keyboard, as_json=as_json, start="start")
        return await Conversation(link, session, screen, view).run()


def session_options(given: dict[str, Any]) -> dict[str, Any]:
    """The options of `session.create` from the flags. Raises click.UsageError for an `--option` of a wrong form."""
    options: dict[str, Any] = {
        name: given[flag]
        for name, flag in {
            "model": "model",
            "mode": "mode",
            "thinking": "thinking",
            "append_system_prompt": "system_prompt",
            "max_turns": "max_turns",
            "budget_usd": "budget",
            "hold": "hold",
        }.items()
        if given[flag] is not None
    }
    if given["command"]:
        options["native"] = {"command": shlex.split(given["command"])}
    for text in given["options"]:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--option {text!r} is not of the form NAME=VALUE")
        options[name] = parse_value(value)
    return options


def parse_value(text: str) -> Any:
    """The JSON value that a text is; the text itself where it is none."""
    from trunkline_cli.output import parse_json

    return parse_json(text, default=text)
