"""`trunkline policy`: what is allowed without asking, what never is, and who has to be asked about the rest."""

import sys
from pathlib import Path
from typing import Any

import click

EPILOG = """\b
Examples:
  trunkline policy show                       what is in force, rule by rule
  trunkline policy check policy.toml          is the file right? what is wrong, by line and rule
  trunkline policy test --tool Bash --command "rm -rf /"
  trunkline policy test --since 7d --policy new.toml    what a new file would have decided otherwise
  trunkline policy history                    the versions, with when each came into force

\b
A policy is a file, ~/.trunkline/policy.toml, which is read again when it changes:
  default = "ask"              # where no rule matches: ask, allow or deny
  [[rule]]
  name = "tests"
  action = "allow"             # allow, deny, ask, or ask-two: two different people have to allow it
  command = "pytest*"          # globs; further keys: adapter workspace cwd tool kind path mcp_server
  cost_at_most = 5.0           # cost_at_least; hours, weekdays, zone
  [[rule]]
  name = "what can't be undone"
  action = "ask-two"
  danger = ["destroys", "publishes"]   # privileged network downloads installs secrets obscured
  role = "owner"               # the lowest role that may answer
  expires_after = 600          # seconds; on_expiry = "deny"; signed = true

The first rule whose keys all match wins. Rules that allow are read narrowly, rules that deny or ask widely.
"""
SHOW_EPILOG = """\b
Examples:
  trunkline policy show           the rules in the order in which they are tried
  trunkline policy show --text    the file's text, as it is in force
  trunkline policy show --json
"""
CHECK_EPILOG = """\b
Examples:
  trunkline policy check ~/.trunkline/policy.toml
  trunkline policy check new.toml && cp new.toml ~/.trunkline/policy.toml
"""
TEST_EPILOG = """\b
Examples:
  trunkline policy test --command "git push --force"      a described ask: tool Bash if none is named
  trunkline policy test --tool Edit --kind edit --path ~/.ssh/config --cwd ~/src/app
  trunkline policy test --command make --cost 7.5 --at 2026-11-28T23:00:00Z
  trunkline policy test ask_0f3a2b                        an ask of the log, as it was
  trunkline policy test --session last                    all asks of a session
  trunkline policy test --since 7d --policy new.toml      what a file that is not in force would change
  trunkline policy test --since 7d --policy new.toml --changed

Nothing is decided by a test. For each rule before the one that wins it says which key did not match, and what stood there.
"""
HISTORY_EPILOG = """\b
Examples:
  trunkline policy history           the latest twenty versions
  trunkline policy history --diff    with what each changed
"""
_home = click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
_json = click.option("--json", "as_json", is_flag=True, help="As the gateway says it.")


@click.group(epilog=EPILOG)
def policy() -> None:
    """Show, check and try the rules that decide asks."""


@policy.command(epilog=SHOW_EPILOG)
@click.option("--text", is_flag=True, help="The text alone.")
@_json
@_home
def show(text: bool, as_json: bool, home: Path | None) -> int:
    """Show the policy in force: its version, where it comes from, and its rules."""
    from trunkline_cli.context import finish

    return finish(_show(text, as_json, home))


@policy.command(epilog=CHECK_EPILOG)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_home
def check(file: Path, home: Path | None) -> int:
    """Check FILE without using it. The exit code is 1 if something is wrong with it."""
    from trunkline_cli.policies import read_policy
    from trunkline_wire import TrunklineError

    try:
        parsed = read_policy(file, home)
    except TrunklineError as error:
        line = error.details.get("line")
        where = f"{file}:{line}" if line is not None else str(file)
        click.echo(f"{where}: {error.message.removeprefix(f'line {line}: ')}", err=True)
        return 1
    own = [rule for rule in parsed.rules if rule.origin != "built in"]
    click.echo(f"{file}: {len(own)} rules, default {parsed.default}; version {parsed.version[:12]}")
    return 0


@policy.command(epilog=TEST_EPILOG)
@click.argument("ask", required=False)
@click.option("--session", help="All asks of this session.")
@click.option("--since", help="All asks since then: 7d, 12h, or a time.")
@click.option("--tool", help="A described ask: the tool's name.")
@click.option("--kind", help="The tool's kind: execute, edit, read …")
@click.option("--command", help="The command line.")
@click.option("--path", "paths", multiple=True, help="A path that the input names; may be repeated.")
@click.option("--input", "given", metavar="JSON", help="The tool's whole input.")
@click.option("--adapter", default="", help="The session's adapter.")
@click.option("--cwd", help="The session's directory; here without it.")
@click.option("--cost", type=float, help="What the session has cost so far, USD.")
@click.option("--at", help="The moment, for rules with hours.")
@click.option(
    "--policy", "file", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Try this file, too."
)
@click.option("--changed", is_flag=True, help="Only what the other file would change.")
@_json
@_home
def test(**given: Any) -> int:
    """Say which rule would win, and why those before it would not: for ASK, many asks of the log, or a described one."""
    from trunkline_cli.context import finish

    chosen = [given["ask"], given["session"], given["since"]]
    if not any(chosen) and not any(given[key] for key in ("tool", "kind", "command", "paths", "given")):
        raise click.UsageError('say what to try: an ASK, --session, --since, or a described one such as --command "ls"')
    return finish(_test(given))


@policy.command(epilog=HISTORY_EPILOG)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 200), help="How many versions.")
@click.option("--diff", is_flag=True, help="With what each changed.")
@_json
@_home
def history(limit: int, diff: bool, as_json: bool, home: Path | None) -> int:
    """List the versions that were in force, the latest first."""
    from trunkline_cli.context import finish

    return finish(_history(limit, diff, as_json, home))


async def _show(text: bool, as_json: bool, home: Path | None) -> int:
    from trunkline_cli.context import open_link
    from trunkline_cli.output import ndjson
    from trunkline_cli.policies import rule_lines

    async with open_link(home) as link:
        found = await link.policy.get()
    if as_json:
        ndjson(found)
    elif text:
        sys.stdout.write(found["text"])
    else:
        since = f"in force since {found['recorded']}" if found["recorded"] else "the default: no file was read yet"
        click.echo(f"version {found['version'][:12]}, {since}\nfrom {found['path'] or 'no file'}")
        for number, rule in enumerate(found["rules"], 1):
            for line in rule_lines(number, rule):
                click.echo(line)
        click.echo(f"where none matches: {found['default']}")
    return 0


async def _test(given: dict[str, Any]) -> int:
    from trunkline_cli.context import find_ask, find_session, open_link
    from trunkline_cli.output import ndjson
    from trunkline_cli.policies import described, show_result, summary
    from trunkline_cli.since import since

    async with open_link(given["home"]) as link:
        params: dict[str, Any] = {}
        if given["file"] is not None:
            params["policy"] = given["file"].read_text(encoding="utf-8")
        if given["ask"] is not None:
            params["ask"] = (await find_ask(link, given["ask"])).ask
        elif given["session"] is not None:
            params["session"] = await find_session(link, given["session"])
        if given["since"] is not None:
            params["since"] = since(given["since"])
        if not params.keys() & {"ask", "session", "since"}:
            params["described"] = described(given)
        found = await link.policy.test(within=120.0, **params)
    shown = [one for one in found["results"] if not given["changed"] or one.get("changed")]
    if as_json := given["as_json"]:
        ndjson({**found, "results": shown})
    for result in () if as_json else shown:
        show_result(result, brief=len(shown) > 1)
    if not as_json and (len(found["results"]) != 1 or "described" not in params):
        click.echo(summary(found))
    return 0


async def _history(limit: int, diff: bool, as_json: bool, home: Path | None) -> int:
    from trunkline_cli.context import open_link
    from trunkline_cli.output import ndjson
    from trunkline_cli.policies import difference

    async with open_link(home) as link:
        versions = (await link.policy.history(limit=min(200, limit + 1)))["versions"]
    for number, version in enumerate(versions[:limit]):
        if as_json:
            ndjson(version)
            continue
        rules = version["error"] or f"{version['rules']} rules"
        click.echo(f"{(version['recorded'] or '')[:19]}  {version['version'][:12]}  {rules}  {version['path'] or ''}")
        if diff:
            before = versions[number + 1]["text"] if number + 1 < len(versions) else ""
            for line in difference(before, version["text"]):
                click.echo(f"  {line}")
    return 0
