"""`trunkline translate`: what an adapter makes of a recording."""

from pathlib import Path

import click

EPILOG = """\b
Examples:
  trunkline translate --adapter claude ~/.trunkline/host/sessions/ses_…/native.jsonl
  trunkline translate --adapter codex native.jsonl | jq -c '[.type, .data]'
  trunkline translate --adapter claude native.jsonl --strict > /dev/null   is every message understood?

A recording is NDJSON of {"from": "agent"|"host", "t": seconds, "msg": …}; workers write one for each session.
The events are the same at every run. Exit code 1, with the line's number, when the translator failed on a message or a
line could not be read; with --strict also for messages of unknown types, which otherwise are only noted.
"""


@click.command(epilog=EPILOG)
@click.option("--adapter", required=True, help="Whose recording it is; `trunkline agents` lists them.")
@click.option("--speaker", default="agent", show_default=True, help="Who is translated, where several are recorded.")
@click.option("--deltas", is_flag=True, help="Streaming pieces, too.")
@click.option("--strict", is_flag=True, help="Unknown types are an error.")
@click.argument("recording", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def translate(adapter: str, speaker: str, deltas: bool, strict: bool, recording: Path) -> int:
    """Translate RECORDING with an adapter's translator; prints the events as NDJSON."""
    from trunkline_agentkit.registry import load
    from trunkline_agentkit.replay import Replay
    from trunkline_cli.output import ndjson
    from trunkline_wire import TrunklineError

    try:
        replay = Replay(load(adapter), recording, agent=speaker, deltas=deltas)
    except ValueError as error:
        raise TrunklineError("bad_params", f"{str(recording)!r} is no recording: {error}") from error
    for event in replay:
        ndjson(event)
    failed = False
    for problem in replay.problems:
        unknown = problem.what == "untranslated" and problem.reason == "unknown_type"
        failed = failed or strict or not unknown
        reason = f" ({problem.reason})" if problem.reason else ""
        click.echo(f"{recording}:{problem.line}: {problem.what}: {problem.kind}{reason}", err=True)
    return 1 if failed else 0
