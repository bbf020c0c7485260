"""The command line's root: which commands there are, loaded only when one is used, and how errors end the process.

Exit codes: 0 done; 1 an error, as one line `error: <code>: <message>` on the error output; 2 wrong usage; 130 Ctrl-C.
"""

import importlib
import sys
from collections.abc import Sequence
from typing import Any, Final

import click

EXIT_ERROR: Final = 1
EXIT_USAGE: Final = 2
EXIT_INTERRUPTED: Final = 130

SECTIONS: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "Start": {
        "up": ("up:up", "Start Trunkline on this machine: nats-server, services, gateway."),
        "daemon": ("daemon:daemon", "Run Trunkline in the background: start, stop, status, logs, install."),
        "agents": ("agents:agents", "List the agents that are installed here."),
        "doctor": ("doctor:doctor", "Check this machine and say what to do."),
    },
    "Sessions": {
        "run": ("run:run", "Start a session with an agent and talk to it."),
        "attach": ("attach:attach", "Watch and steer a session, from any terminal."),
        "terminal": ("terminal:terminal", "Sit down at the terminal of a session, live."),
        "acp": ("acp:acp", "Be an agent for editors: Zed, JetBrains, Neovim (Agent Client Protocol)."),
        "ls": ("ls:ls", "List sessions."),
        "send": ("send:send", "Send a prompt to a session."),
        "interrupt": ("control:interrupt", "Interrupt a session's turn."),
        "hand-over": ("hand_over:hand_over", "Go on in the agent's own terminal, or take the session back."),
        "close": ("control:close", "Close a session; its agent ends, its log stays."),
        "resume": ("control:resume", "Open a closed session again."),
        "teams": ("teams:teams", "Teams of agents: members, boards, asks, and asking a lead to end one."),
        "overview": ("overview:overview", "Show everything at a glance: sessions, asks, spend, lag, workers."),
    },
    "Decisions": {
        "asks": ("asks:asks", "List what agents want decided."),
        "approve": ("asks:approve", "Allow what an agent asks for."),
        "deny": ("asks:deny", "Deny what an agent asks for."),
        "answer": ("asks:answer", "Answer an agent's questions."),
        "policy": ("policy:policy", "Show, check and try the rules that decide asks."),
    },
    "The log": {
        "events": ("events:events", "Print the events of a session, or of all."),
        "replay": ("replay:replay", "Show a session's state as of any moment."),
        "verify": ("verify:verify", "Check the log's invariants."),
        "blob": ("blob:blob", "Print a large value that stands in an event as a reference."),
        "import": ("history:import_history", "Import sessions that agents ran without Trunkline."),
        "hooks": ("hooks:hooks", "Hear of what agents do that run without Trunkline."),
        "translate": ("translate:translate", "Translate a recording of an agent into events."),
        "call": ("call:call", "Call any method of the gateway."),
    },
    "Access, from here and anywhere": {
        "sign-in": ("token:sign_in", "Print a link that signs a browser in."),
        "token": ("token:token", "Make, list and revoke tokens."),
        "devices": ("devices:devices", "List, rename and revoke what people signed in with or paired."),
        "extension": ("extension:extension", "Let extensions in, list them, put them out."),
        "pair": ("pair:pair", "Let a device come from anywhere, or be one, by a link and a code."),
        "hosts": ("hosts:hosts", "List and forget the hosts that this device is paired with."),
        "relay": (
            "relay:relay",
            "Serve the relay by which devices anywhere reach hosts, or see how this host is connected to one.",
        ),
    },
    "Operation": {
        "topology": ("topology:topology", "Plan, create and update the streams on a NATS server."),
        "leaf": ("leaf:leaf", "Mirror this log's events at a hub, by a connection outwards."),
        "backup": ("backup:backup", "Copy the log's truth into a directory."),
        "restore": ("backup:restore", "Put a backup into an empty NATS server."),
        "retention": ("retention:retention", "Write sessions closed long ago to files, and erase them."),
        "erase": ("erase:erase", "Erase the content of a session for good."),
        "auth": ("auth:auth", "Make the NATS users of the services, for a server of your own."),
    },
}
"""Commands as the overview has them: name -> (module and function below `trunkline_cli.commands`, one line)."""

COMMANDS: Final = {name: command for section in SECTIONS.values() for name, command in section.items()}

EXAMPLES: Final = """\b
Examples:
  trunkline up                           start everything here
  trunkline run claude "Fix the tests"   a session with Claude Code
  trunkline ls                           what runs
  trunkline attach last                  watch and steer the newest session
  trunkline asks                         what waits for a decision
  trunkline approve ask_0f3a             allow it

Session and ask ids may be shortened to a unique beginning; `last` is the newest session.
"""

LOCAL: Final = frozenset(
    {"up", "daemon", "agents", "hooks", "import", "translate", "topology", "backup", "restore", "retention", "erase"}
    | {"auth", "doctor", "replay", "verify", "pair", "hosts", "relay"}
)
"""Commands about this machine, its log or its files: none of them goes to a host elsewhere."""


class LazyGroup(click.Group):
    """Imports a command's module when the command is used, so that `--help` and completion stay quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: Any = getattr(importlib.import_module(f"trunkline_cli.commands.{module}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name, line) for name, (_, line) in section.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            hints = self._near(ctx, name)
            hint = f"did you mean {' or '.join(map(repr, hints))}?" if hints else "see `trunkline --help`"
            raise click.UsageError(f"there is no command {name!r}: {hint}", ctx)
        return super().resolve_command(ctx, args)

    def _near(self, ctx: click.Context, name: str) -> list[str]:
        """Commands of about this name, or groups that have one of it."""
        import difflib

        near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.75)
        if near:
            return near
        groups = ((group, self.get_command(ctx, group)) for group in COMMANDS)
        return [f"{group} {name}" for group, one in groups if isinstance(one, click.Group) and name in one.commands]


def _version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from importlib import metadata

        click.echo(f"trunkline {metadata.version('trunkline')}")
        ctx.exit()


@click.group(
    cls=LazyGroup,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Print the version."
)
@click.option(
    "--host",
    metavar="NAME",
    envvar="TRUNKLINE_HOST",
    help="Go to this paired host (`trunkline hosts`), from any network.",
)
@click.pass_context
def cli(ctx: click.Context, host: str | None) -> None:
    """Trunkline puts every coding agent on one line: watch, steer and approve their sessions from anywhere."""
    if host and ctx.invoked_subcommand in LOCAL:
        raise click.UsageError(
            f"`{ctx.invoked_subcommand}` is about this machine: leave --host (TRUNKLINE_HOST) out", ctx
        )


def run(argv: Sequence[str]) -> int:
    """Run one command line; returns the exit code and never raises but for a bug."""
    try:
        result = cli.main(args=list(argv), prog_name="trunkline", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "")
        return EXIT_USAGE
    except click.UsageError as error:
        error.show()
        return EXIT_USAGE
    except click.ClickException as error:
        error.show()
        return EXIT_ERROR
    except (KeyboardInterrupt, click.Abort):
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return _reader_gone()
    except Exception as error:  # noqa: BLE001 - whatever has no code is raised again
        return _failed(error)
    return result if isinstance(result, int) else 0


def _failed(error: Exception) -> int:
    from trunkline_wire import TrunklineError

    if not isinstance(error, TrunklineError):
        raise error
    sys.stderr.write(f"error: {error}\n")
    return EXIT_ERROR


def _reader_gone() -> int:
    """Whoever read the output is gone (`… | head`): end quietly, also at interpreter shutdown."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
