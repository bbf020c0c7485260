"""What became of asks: as a table, as whole stories, and as files for an audit."""

import csv
import io
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import click

from trunkline_cli.context import brief, find_session, open_link
from trunkline_cli.output import ndjson, pretty, safe, short, table
from trunkline_cli.render import describe
from trunkline_cli.since import since
from trunkline_client import Link
from trunkline_wire import TrunklineError, encode
from trunkline_wire.asks import PermissionRequested, PlanProposed, QuestionAsked

Story = Mapping[str, Any]

PAGE: Final = 100
COLUMNS: Final = (
    *("asked", "ask", "session", "kind", "tool", "wants", "status", "behaviour", "by", "via", "role", "rule", "device"),
    *("ended", "took_s", "delivered", "delivered_s", "policy", "quorum", "votes", "rejected", "message", "why"),
    *("remembers", "revoked", "revoked_by"),
)
"""Of a CSV file; JSON lines hold the whole stories."""

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


async def show_history(home: Path | None, given: dict[str, Any]) -> int:
    """Print or export what the options of `asks --history` ask for."""
    wanted: dict[str, Any] = {
        "status": check_status(given["status"]),
        "since": None if given["since"] is None else since(given["since"]),
        "by": given["by"],
        "tool": given["tool"],
    }
    async with open_link(home) as link:
        if given["session"] is not None:
            wanted["session"] = await find_session(link, given["session"])
        if given["export"] is not None:
            count = await export(link, wanted, given["export"])
            click.echo(f"{count} asks written to {given['export']}", err=True)
            return 0
        found = [story async for story in stories(link, wanted, given["limit"])]
    if given["as_json"]:
        for story in found:
            ndjson(story)
    elif not found:
        click.echo("no ask fits", err=True)
    elif given["verbose"]:
        for story in found:
            show_whole(story)
    else:
        show_table(found)
    return 0


async def stories(link: Link, wanted: dict[str, Any], limit: int | None = None) -> AsyncIterator[Story]:
    """The stories of asks, the latest first."""
    cursor, count = None, 0
    while True:
        page = await link.ask.history(limit=PAGE if limit is None else min(PAGE, limit), cursor=cursor, **wanted)
        for story in page["asks"]:
            yield story
            count += 1
            if count == limit:
                return
        cursor = page["cursor"]
        if cursor is None:
            return


def wants(story: Story) -> str:
    """What was asked for, in a line."""
    import msgspec

    kinds: dict[str, Any] = {"permission": PermissionRequested, "question": QuestionAsked, "plan": PlanProposed}
    try:
        asked = msgspec.convert(story["requested"], kinds[story["kind"]])
    except (msgspec.ValidationError, KeyError):
        return ""
    return describe(asked)[0] if describe(asked) else ""


def show_table(found: list[Story]) -> None:
    rows = [
        [
            brief(story["ask"]),
            str(story["asked"])[:19],
            str(story["status"]),
            decider(story),
            "" if story.get("took_s") is None else f"{story['took_s']:.1f} s",
            short(wants(story), 80),
        ]
        for story in found
    ]
    table(["ask", "asked", "status", "by", "took", "wanted"], rows)


def decider(story: Story) -> str:
    """Who or what ended it."""
    behaviour, by = story.get("behaviour"), story.get("by")
    rule = f" ({story['rule']})" if story.get("rule") else ""
    return f"{behaviour + ' ' if behaviour else ''}{by or ''}{rule}"


def show_whole(story: Story) -> None:
    """Every step of a story, on a line of its own."""
    click.echo(f"{story['ask']}\n  of {story['session']}, {story['kind']}: {safe(wants(story))}")
    for time, text in steps(story):
        click.echo(f"  {time[:23]}  {safe(text)}")
    given = story["requested"].get("input")
    if given is not None:
        click.echo(pretty(given, indent="    "))


def steps(story: Story) -> list[tuple[str, str]]:
    """(time, what happened), in order."""
    found: list[tuple[str, str]] = [(story["asked"], "asked")]
    routed = story.get("routed")
    if routed is not None:
        needs = [
            f"rule {routed['rule']}" if routed.get("rule") else "",
            f"{routed['quorum']} people" if routed.get("quorum", 1) > 1 else "",
            f"role {routed['role']}" if routed.get("role") else "",
            "signed" if routed.get("signed") else "",
            f"until {routed['expires_at'][:19]}" if routed.get("expires_at") else "",
        ]
        found.append((routed["time"], f"routed: {', '.join(need for need in needs if need)}"))
    found += [(vote["time"], f"{vote['by']} allowed it: more people have to") for vote in story.get("votes", [])]
    for one in story.get("rejected", []):
        found.append((one["time"], f"{one.get('by')} was refused: {one['code']}: {one.get('message', '')}"))
    if story.get("ended"):
        more = [
            f"role {story['role']}" if story.get("role") else "",
            f"device {story['device']}" if story.get("device") else "",
            f"via {story['via']}" if story.get("via") else "",
            f"makes the rule {story['remembers']}" if story.get("remembers") else "",
            story.get("why") or "",
            f"after {story['took_s']} s",
        ]
        text = f"{story['status']}: {decider(story)}; {', '.join(word for word in more if word)}"
        found.append((story["ended"], f"{text}: {story['message']}" if story.get("message") else text))
    if story.get("delivered"):
        found.append((story["delivered"], f"delivered to the agent after {story.get('delivered_s')} s"))
    if story.get("revoked"):
        found.append((story["revoked"], f"{story['revoked_by']} took the rule back"))
    return sorted(found, key=_time)


def _time(step: tuple[str, str]) -> str:
    return step[0]


async def export(link: Link, wanted: dict[str, Any], target: str) -> int:
    """Write all stories to a file: CSV by its name, JSON lines otherwise; `-` is the output. Returns how many."""
    count = 0
    with click.open_file(target, "w", encoding="utf-8", atomic=target != "-") as file:
        as_csv = Path(target).suffix.lower() == ".csv"
        if as_csv:
            file.write(_line(list(COLUMNS)))
        async for story in stories(link, wanted):
            count += 1
            file.write(_line(row(story)) if as_csv else f"{encode(story).decode()}\n")
    return count


def row(story: Story) -> list[str]:
    """A story in COLUMNS. What a spreadsheet would run as a formula is quoted."""
    routed = story.get("routed") or {}
    flat: dict[str, Any] = {
        **story,
        "tool": story["requested"].get("name"),
        "wants": wants(story),
        "policy": routed.get("policy"),
        "quorum": routed.get("quorum", 1),
        "votes": " ".join(vote["by"] for vote in story.get("votes", [])),
        "rejected": " ".join(f"{one.get('by')}:{one['code']}" for one in story.get("rejected", [])),
    }
    return [_cell(flat.get(name)) for name in COLUMNS]


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _line(cells: list[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue()


def check_status(status: str | None) -> str | None:
    """Raises `bad_params` for a status that asks don't have."""
    known = ("open", "decided", "expired", "withdrawn", "lost")
    if status is not None and status not in known:
        raise TrunklineError("bad_params", f"{status!r} is no status of an ask: {', '.join(known)}")
    return status
