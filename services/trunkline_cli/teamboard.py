"""A team's board for the terminal: columns of tasks, redrawn in place, or lines where there is no terminal."""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from trunkline_cli.output import ndjson, safe, short

if TYPE_CHECKING:
    from rich.table import Table

LOOK_S: Final = 0.5
"""Seconds between two looks at a board that is watched."""
COLUMNS: Final = {"ready": "ready", "blocked": "blocked", "in_progress": "in progress", "completed": "completed"}
Look = Callable[[], Awaitable[Mapping[str, Any]]]


def show_board(board: Mapping[str, Any], *, as_json: bool = False) -> None:
    """Once: a table on a terminal, lines anywhere else."""
    if as_json:
        ndjson(board)
    elif sys.stdout.isatty():
        from rich.console import Console

        Console().print(drawn(board))
    else:
        for line in board_lines(board):
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


async def watch_board(look: Look, *, as_json: bool = False) -> int:
    """Show the board whenever it has changed, until the team has ended. Returns the process's exit code."""
    if as_json or not sys.stdout.isatty():
        async for board in changes(look):
            show_board(board, as_json=as_json)
        return 0
    from rich.live import Live

    with Live(auto_refresh=False) as live:
        async for board in changes(look):
            live.update(drawn(board), refresh=True)
    return 0


async def changes(look: Look) -> AsyncIterator[Mapping[str, Any]]:
    """The board as it is, and after each change; ends with the team."""
    before: Mapping[str, Any] | None = None
    while True:
        board = await look()
        if board != before:
            yield board
            before = board
        if board["ended"] is not None:
            return
        await asyncio.sleep(LOOK_S)


def board_lines(board: Mapping[str, Any]) -> Iterator[str]:
    """A line a task, its parts separated by tabs: column, id, owner, subject, what it waits for."""
    for name in COLUMNS:
        for entry in board["columns"][name]:
            task = entry["task"]
            waits = ",".join(entry["waits_for"])
            yield "\t".join((name, task["id"], task.get("owner") or "", _subject(task), waits))


def drawn(board: Mapping[str, Any]) -> "Table":
    """The board as a table of columns, with the members below."""
    from rich.table import Table
    from rich.text import Text

    members = ", ".join(f"{name} {status}" for name, status in board["members"].items())
    state = "ended" if board["ended"] else members or "nobody yet"
    asks = f"; {board['open_asks']} asks open" if board["open_asks"] else ""
    table = Table(title=Text(safe(board["team"])), caption=Text(safe(f"{state}{asks}")), expand=True)
    cells: list[Text] = []
    for name, head in COLUMNS.items():
        entries = board["columns"][name]
        table.add_column(f"{head} ({len(entries)})", ratio=1, overflow="fold")
        cells.append(Text("\n").join(Text(_card(entry)) for entry in entries))
    table.add_row(*cells)
    return table


def _card(entry: Mapping[str, Any]) -> str:
    task = entry["task"]
    owner = f" @{safe(task['owner'])}" if task.get("owner") else ""
    waits = f" (waits for {', '.join(entry['waits_for'])})" if entry["waits_for"] else ""
    return safe(f"#{task['id']} {_subject(task)}") + owner + safe(waits)


def _subject(task: Mapping[str, Any]) -> str:
    return safe(short(task.get("subject") or "", 60))


def lines_of(team: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What `show` says of a team."""
    state = f"ended {team['ended']}" if team["ended"] else "live"
    yield f"{safe(team['team'])}  {state}, led by {team['lead']}"
    if team["description"]:
        yield f"  {safe(short(team['description']))}"
    yield "members"
    for member in team["members"]:
        used = member.get("usage") or {}
        tokens = used.get("input", 0) + used.get("output", 0)
        about = " ".join(part for part in (member.get("type"), member.get("model")) if part)
        yield f"  {safe(member['name'])}  {member['status']}  {safe(about)}  {tokens} tokens".rstrip()
    yield "tasks"
    for task in team["tasks"]:
        owner = f"  {safe(task['owner'])}" if task.get("owner") else ""
        waits = f"  waits for {', '.join(task['blocked_by'])}" if task.get("blocked_by") else ""
        yield f"  #{safe(task['id'])}  {task['status']}{owner}  {_subject(task)}{safe(waits)}"
    for name, entries in (("open requests", team["requests"]), ("asks", team["asks"])):
        if entries:
            yield name
            for one in entries:
                who = one.get("member") or team["asking"].get(one.get("ask")) or "lead"
                yield f"  {one.get('request') or one['ask']}  {safe(who)}  {one['kind']}"
    if messages:
        yield "messages"
        for one in messages:
            yield f"  {safe(one['from'])} to {safe(one.get('to') or 'all')}: {safe(short(one.get('content') or ''))}"
    usage = team["usage"]
    cost = f", ${usage['cost_usd']:.2f}" if usage.get("cost_usd") else ""
    yield f"used by the members: {usage.get('input', 0)} tokens in, {usage.get('output', 0)} out{cost}"
