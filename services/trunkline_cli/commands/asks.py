"""`trunkline asks`, `approve`, `deny`, `answer`: decisions for agents that wait."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunkline_cli.context import Ask

ASKS_EPILOG = """\b
Examples:
  trunkline asks                    everything that waits, of all sessions
  trunkline asks --session last -v  with the whole input
  trunkline asks --json | jq .requested.input
  trunkline asks --history --since 7d          what became of all asks of a week
  trunkline asks --history --by ann --status decided -v
  trunkline asks --history --since 30d --export audit.csv    or audit.jsonl, with every step
  trunkline asks rules last         what was allowed for good in a session
  trunkline asks revoke last session-0f3a2b    take it back
"""
RULES_EPILOG = """\b
Examples:
  trunkline asks rules last
  trunkline asks rules 0f3a --json
"""
REVOKE_EPILOG = """\b
Examples:
  trunkline asks revoke last session-0f3a2b    by the beginning of the rule's name
"""
APPROVE_EPILOG = """\b
Examples:
  trunkline approve ask_0f3a2b            by the beginning of the ask's id
  trunkline approve                       the only open ask
  trunkline approve --session last        the only one of a session
  trunkline approve 0f3a --option always  one of the options that `asks -v` lists, by id, number or name
  trunkline approve 0f3a --input '{"command": "ls"}'   with a changed input
  trunkline approve --all --session last            all that waits in a session, shown before you say yes
  trunkline approve --all --command "pytest*" --yes all that this pattern covers, as a policy would read it
"""
DENY_EPILOG = """\b
Examples:
  trunkline deny 0f3a
  trunkline deny 0f3a --message "Not on main: make a branch"
  trunkline deny --session last --interrupt    and end the turn
  trunkline deny --all --command "rm *"        every command that does this, shown before you say yes
"""
ANSWER_EPILOG = """\b
Examples:
  trunkline answer 0f3a                         asks you each question
  trunkline answer 0f3a -a "Which colour?=red"  by the question's id or text
  trunkline answer 0f3a -a 1=2 -a 2=1,3         by number: question 1 gets option 2, question 2 options 1 and 3
  trunkline answer 0f3a --json '{"Which colour?": "red"}'
"""


@click.group(invoke_without_command=True, epilog=ASKS_EPILOG)
@click.option("--session", help="Only of this session.")
@click.option("--verbose", "-v", is_flag=True, help="With input, options and questions; of history with every step.")
@click.option("--json", "as_json", is_flag=True, help="One ask a line.")
@click.option("--history", is_flag=True, help="All asks and what became of them, the latest first.")
@click.option("--since", help="Of history: asked since then, such as 7d, 12h, or a time.")
@click.option("--status", help="Of history: open, decided, expired, withdrawn or lost.")
@click.option("--by", help="Of history: decided by this person, rule, `policy` or `agent`.")
@click.option("--tool", help="Of history: this tool.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="Of history: how many.")
@click.option("--export", metavar="FILE", help="Write all of the history to a file: CSV by its name, else JSON lines.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
@click.pass_context
def asks(ctx: click.Context, home: Path | None, **given: Any) -> int:
    """List what agents want decided, oldest first; or all that ever was asked."""
    from trunkline_cli.context import finish

    ctx.obj = home
    if ctx.invoked_subcommand is not None:
        return 0
    if given["history"] or given["export"] is not None:
        from trunkline_cli.audit import show_history

        return finish(show_history(home, given))
    return finish(_asks(given["session"], given["verbose"], given["as_json"], home))


@asks.command(epilog=RULES_EPILOG)
@click.argument("session")
@click.option("--json", "as_json", is_flag=True, help="One rule a line.")
@click.pass_obj
def rules(home: Path | None, session: str, as_json: bool) -> int:
    """List what was allowed for good in SESSION: it is not asked about there until it is revoked."""
    from trunkline_cli.context import finish
    from trunkline_cli.lasting import list_rules

    return finish(list_rules(session, as_json, home))


@asks.command(epilog=REVOKE_EPILOG)
@click.argument("session")
@click.argument("rule")
@click.pass_obj
def revoke(home: Path | None, session: str, rule: str) -> int:
    """Take RULE of SESSION back: what it allowed is asked about again."""
    from trunkline_cli.context import finish
    from trunkline_cli.lasting import revoke_rule

    return finish(revoke_rule(session, rule, home))


def _many(command: Any) -> Any:
    """The options that choose many asks at once."""
    for option in (
        click.option("--yes", "-y", is_flag=True, help="With --all: do not ask me."),
        click.option("--command", "pattern", help="With --all: only commands that match this glob."),
        click.option("--tool", help="With --all: only tools that match this glob."),
        click.option("--workspace", help="With --all: only of this workspace."),
        click.option(
            "--all", "every", is_flag=True, help="All that wait, or those that --session and the filters name."
        ),
    ):
        command = option(command)
    return command


@click.command(epilog=APPROVE_EPILOG)
@click.argument("ask", required=False)
@click.option("--session", help="The only open ask of this session.")
@click.option("--option", help="One of the ask's options: id, number or name.")
@click.option("--input", "changed", metavar="JSON", help="Allow with this input instead.")
@_many
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def approve(ask: str | None, session: str | None, home: Path | None, **given: Any) -> int:
    """Allow ASK (its id or the beginning; the only open one without it), or many at once."""
    from trunkline_cli.context import finish

    if _means_many(ask, given):
        if given["option"] is not None or given["changed"] is not None:
            raise click.UsageError("--option and --input are for one ask")
        return finish(_decide_many("allow", session, home, given))
    return finish(_decide(ask, session, home, lambda found: _approval(found, given["option"], given["changed"])))


@click.command(epilog=DENY_EPILOG)
@click.argument("ask", required=False)
@click.option("--session", help="The only open ask of this session.")
@click.option("--message", "-m", help="What the agent is told.")
@click.option("--interrupt", is_flag=True, help="End the agent's turn, too.")
@_many
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def deny(ask: str | None, session: str | None, home: Path | None, **given: Any) -> int:
    """Deny ASK (its id or the beginning; the only open one without it), or many at once."""
    from trunkline_cli.context import finish
    from trunkline_cli.dialog import deny as denial

    message, interrupt = given["message"], given["interrupt"]
    if _means_many(ask, given):
        if interrupt:
            raise click.UsageError("--interrupt is for one ask")
        return finish(_decide_many("deny", session, home, given, message))
    return finish(_decide(ask, session, home, lambda found: denial(found.requested, message, interrupt=interrupt)))


def _means_many(ask: str | None, given: dict[str, Any]) -> bool:
    filtered = [name for name in ("yes", "pattern", "tool", "workspace") if given[name]]
    if given["every"] and ask is not None:
        raise click.UsageError("name an ASK, or take --all")
    if filtered and not given["every"]:
        raise click.UsageError(f"--{filtered[0].replace('pattern', 'command')} is for many asks: add --all")
    return bool(given["every"])


@click.command(epilog=ANSWER_EPILOG)
@click.argument("ask", required=False)
@click.option("--session", help="The only open ask of this session.")
@click.option("--answer", "-a", "answers", multiple=True, metavar="QUESTION=ANSWER", help="May be repeated.")
@click.option("--json", "as_json", metavar="JSON", help="All answers at once, keyed by the questions' ids.")
@click.option("--home", type=click.Path(path_type=Path), help="State directory of the instance.")
def answer(
    ask: str | None, session: str | None, answers: tuple[str, ...], as_json: str | None, home: Path | None
) -> int:
    """Answer the questions of ASK (its id or the beginning; the only open one without it)."""
    from trunkline_cli.context import finish

    return finish(_decide(ask, session, home, lambda found: _answers(found, answers, as_json)))


async def _decide_many(
    behaviour: "Literal['allow', 'deny']",
    session: str | None,
    home: Path | None,
    given: dict[str, Any],
    message: str | None = None,
) -> int:
    from trunkline_cli.many import answer_many

    filters = {"tool": given["tool"], "workspace": given["workspace"], "command": given["pattern"]}
    return await answer_many(behaviour, home, session=session, filters=filters, yes=given["yes"], message=message)


async def _asks(session: str | None, verbose: bool, as_json: bool, home: Path | None) -> int:
    from trunkline_cli.context import brief, find_session, list_asks, open_link
    from trunkline_cli.output import ago, ndjson, table
    from trunkline_cli.render import describe

    async with open_link(home) as link:
        found = await list_asks(link, None if session is None else await find_session(link, session))
    if as_json:
        for ask in found:
            ndjson(ask)
        return 0
    if not found:
        click.echo("nothing waits for a decision", err=True)
        return 0
    if verbose:
        for ask in found:
            _show(ask)
        return 0
    table(
        ["ask", "session", "kind", "since", "wants"],
        [[brief(ask.ask), brief(ask.session), ask.kind, ago(ask.time), describe(ask.requested)[0]] for ask in found],
    )
    return 0


def _show(ask: "Ask") -> None:
    from trunkline_cli.dialog import Dialog
    from trunkline_cli.output import pretty
    from trunkline_cli.render import describe
    from trunkline_wire.asks import PermissionRequested, QuestionAsked

    click.echo(f"{ask.ask}\n  of {ask.session}, {ask.kind}, since {ask.time}")
    if ask.routed is not None and ask.routed.expires_at:
        click.echo(f"  {ask.routed.on_expiry} at {ask.routed.expires_at} by rule {ask.routed.rule}")
    if ask.routed is not None and (ask.routed.quorum > 1 or ask.routed.role or ask.routed.signed):
        needs = [
            f"{ask.routed.quorum} people, {len(ask.votes)} so far" if ask.routed.quorum > 1 else "",
            f"the role {ask.routed.role}" if ask.routed.role else "",
            "a signature" if ask.routed.signed else "",
        ]
        click.echo(f"  rule {ask.routed.rule} wants {', '.join(need for need in needs if need)}")
    if isinstance(ask.requested, QuestionAsked):
        for number, question in enumerate(ask.requested.questions, 1):
            click.echo(f"  {number}. {question.text}")
            for place, option in enumerate(question.options, 1):
                click.echo(f"     {place}  {option.label}  {option.description or ''}".rstrip())
    else:
        for line in describe(ask.requested):
            click.echo(f"  {line}")
        for line in Dialog(ask.requested).text:
            click.echo(f"     {line}")
    if isinstance(ask.requested, PermissionRequested) and ask.requested.input is not None:
        click.echo(pretty(ask.requested.input, indent="  "))


async def _decide(
    reference: str | None, session: str | None, home: Path | None, decision: "Callable[[Ask], dict[str, Any]]"
) -> int:
    from trunkline_cli.context import decide, find_ask, find_session, open_link

    async with open_link(home) as link:
        ask = await find_ask(link, reference, None if session is None else await find_session(link, session))
        params: dict[str, Any] = decision(ask)
        result = await decide(link, ask.ask, ask.session, params)
    if result["outcome"] == "voted":
        click.echo(f"{result.get('votes')} of {result.get('quorum')} allow it: {ask.ask} of {ask.session}")
        return 0
    made = result.get("decision")
    click.echo(f"{made['behaviour'] if made else params['behaviour']}: {ask.ask} of {ask.session}")
    return 0


def _approval(ask: "Ask", option: str | None, changed: str | None) -> dict[str, Any]:
    from trunkline_cli.dialog import allow
    from trunkline_cli.output import parse_json
    from trunkline_fold.answering import choose
    from trunkline_wire import TrunklineError
    from trunkline_wire.asks import QuestionAsked

    if isinstance(ask.requested, QuestionAsked):
        raise TrunklineError("bad_answer", f"{ask.ask} asks questions: use `trunkline answer`")
    params = allow(ask.requested)
    if option is not None:
        options = ask.requested.options
        found = next(
            (
                one
                for number, one in enumerate(options, 1)
                if option in (one.id, str(number)) or option.casefold() == one.name.casefold()
            ),
            None,
        )
        if found is None:
            known = ", ".join(f"{one.id} ({one.name})" for one in options) or "none"
            raise TrunklineError("bad_answer", f"{option!r} is no option of {ask.ask}; there are: {known}")
        params = choose(found)
    if changed is not None:
        value = parse_json(changed)
        if not isinstance(value, dict):
            raise TrunklineError("bad_answer", '--input must be a JSON object, such as \'{"command": "ls"}\'')
        params["updated_input"] = value
    return params


def _answers(ask: "Ask", answers: tuple[str, ...], as_json: str | None) -> dict[str, Any]:
    from trunkline_cli.dialog import parse_choice
    from trunkline_cli.output import parse_json
    from trunkline_wire import TrunklineError
    from trunkline_wire.asks import QuestionAsked

    if not isinstance(ask.requested, QuestionAsked):
        raise TrunklineError("bad_answer", f"{ask.ask} wants a permission: use `trunkline approve` or `deny`")
    if as_json is not None:
        value = parse_json(as_json)
        if not isinstance(value, dict):
            raise TrunklineError("bad_answer", "--json must be an object keyed by the questions' ids")
        return {"behaviour": "answered", "answers": value}
    found: dict[str, Any] = {}
    for text in answers:
        key, equals, line = text.rpartition("=")
        question = next(
            (
                one
                for number, one in enumerate(ask.requested.questions, 1)
                if key in (one.id, one.text, one.header, str(number))
            ),
            None,
        )
        if not equals or question is None:
            raise TrunklineError("bad_answer", f"{text!r} names no question of {ask.ask}; see `trunkline asks -v`")
        found[question.id] = parse_choice(question, line)
    if not answers:
        found = _interview(ask)
    return {"behaviour": "answered", "answers": found}


def _interview(ask: "Ask") -> dict[str, Any]:
    from trunkline_cli.dialog import Dialog
    from trunkline_wire import TrunklineError

    if not sys.stdin.isatty():
        raise TrunklineError("bad_answer", "there is no terminal to ask you at: use -a QUESTION=ANSWER")
    dialog = Dialog(ask.requested)
    while True:
        try:
            done = dialog.reply(click.prompt(dialog.prompt, prompt_suffix=""))
        except TrunklineError as error:
            click.echo(str(error), err=True)
            continue
        if done is not None:
            return done.get("answers", {})
