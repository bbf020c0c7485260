"""Facts of sessions: calls and their results over any distance, and what members do in their lanes and sessions."""

from typing import Final

from msgspec.structs import replace

from trunkline_fold.team import mail, seen, tools
from trunkline_fold.team._json import as_obj, text
from trunkline_fold.team.ear import Ear, settle_turn, use
from trunkline_fold.team.hearing import LATE_S, LEAD, MAX_CALLS, Call, Mate
from trunkline_wire import Event, parse_time
from trunkline_wire.blocks import TextBlock, text_of
from trunkline_wire.session import SessionClosed, SessionCreated, SessionErased, SessionInitialized
from trunkline_wire.team import Member
from trunkline_wire.turn import MessageAssistant, MessageUser, ToolCompleted, ToolStarted, TurnCompleted, TurnStarted
from trunkline_wire.work import HookFired, TaskUpdated

_SHELLS: Final = frozenset({"local_bash", "command"})
"""Kinds of background tasks that are no agents."""
_TEAMMATE: Final = "in_process_teammate"


def listen(ear: Ear, event: Event) -> None:
    """What a fact of the lead's session, or of a member's own, means."""
    deriver = ear.deriver
    own = event.session == deriver.session
    if own:
        _late(ear, event.time)
    who, mate = _speaker(ear, event)
    match event.data:
        case SessionInitialized() as data if own:
            deriver.native_session = deriver.native_session or data.native_session
            # A new process: what it tells of under an old name is its own.
            deriver.ended.clear()
        case SessionCreated() as data if not own:
            _joins(ear, event.session, data)
            return
        case ToolStarted() as data:
            _started(ear, event, data, who)
        case ToolCompleted() as data:
            _completed(ear, event, data)
        case TurnCompleted() as data:
            _turn_over(ear, event, data, mate)
            return
        case SessionClosed() | SessionErased():
            _closed(ear, event.session, mate)
            return
        case TaskUpdated() as data if own:
            _task(ear, data)
        case HookFired() as data if own and data.input is not None:
            seen.hook(ear, data.hook_event, as_obj(data.input))
        case MessageUser() as data:
            to = LEAD if who is None and event.lane is None else who
            if to is not None:
                said = "".join(text_of(block.text) for block in data.content if isinstance(block, TextBlock))
                mail.read_letters(ear, said, to)
        case _:
            pass
    if mate is not None:
        _stir(ear, event, mate)


def _speaker(ear: Ear, event: Event) -> tuple[str | None, Mate | None]:
    """Whose event it is: the lead's, a member's, or (None) that of somebody without a name."""
    if event.session != ear.deriver.session:
        mate = ear.mate_of(session=event.session)
    elif event.lane is None:
        return LEAD, None
    else:
        mate = ear.mate_of(lane=event.lane)
    return (None, None) if mate is None else (mate.name, mate)


def _started(ear: Ear, event: Event, data: ToolStarted, who: str | None) -> None:
    if event.item is None or not tools.concerns(data.name):
        return
    if tools.drifted(data.name):
        ear.drift(data.name)
        return
    calls = ear.deriver.calls
    calls[event.item] = Call(
        item=event.item,
        name=data.name,
        session=event.session,
        input=data.input,
        who=who,
        lane=event.lane,
        turn=event.turn,
        time=event.time,
    )
    if len(calls) > MAX_CALLS:
        oldest = next(iter(calls))
        ear.odd(
            "calls_dropped",
            f"more than {MAX_CALLS} team calls wait for a result: the {calls.pop(oldest).name} of {oldest} is given up",
        )


def _completed(ear: Ear, event: Event, data: ToolCompleted) -> None:
    call = ear.deriver.calls.pop(event.item or "", None)
    if call is not None:
        tools.recognize(ear, call, data)


def _late(ear: Ear, now: str) -> None:
    moment = parse_time(now)
    for call in ear.deriver.calls.values():
        if call.late:
            continue
        waited = (moment - parse_time(call.time)).total_seconds()
        if waited <= LATE_S:
            break
        call.late = True
        ear.odd("late_call", f"a {call.name} has no result after {waited:.0f} s; it is still waited for")


def _turn_over(ear: Ear, event: Event, data: TurnCompleted, mate: Mate | None) -> None:
    """A turn that is over has no open calls of its main lane; what sub-agents do in the background goes on."""
    calls = ear.deriver.calls
    for call in [one for one in calls.values() if one.session == event.session and one.lane is None]:
        del calls[call.item]
    if mate is None:
        ear.settle()
        return
    if data.usage is not None and event.turn is not None:
        cost = data.usage.cost_usd if data.cost_usd is None else data.cost_usd
        settle_turn(mate, replace(data.usage, cost_usd=cost))
    mate.resting = False
    ear.status(mate, "idle" if mate.status != "shutdown" else "shutdown")


def _closed(ear: Ear, session: str, mate: Mate | None) -> None:
    """Nothing more comes from a closed session: its calls are over, who lives in its process is, and a team of such alone."""
    deriver = ear.deriver
    for call in [one for one in deriver.calls.values() if one.session == session]:
        del deriver.calls[call.item]
    if mate is not None:
        ear.status(mate, "shutdown")
    elif session == deriver.session:
        for one in list(deriver.mates.values()):
            if one.session is None:
                ear.status(one, "shutdown")
        if deriver.team is not None and all(one.status == "shutdown" for one in deriver.mates.values()):
            ear.end_team(deriver.team)


def _task(ear: Ear, data: TaskUpdated) -> None:
    """A sub-agent begins, ends, or goes on: a member where it has a name."""
    if data.kind in _SHELLS:
        return
    mate = ear.mate_of(lane=data.tool) if data.tool else ear.mate_of(agent_id=data.task)
    if mate is None:
        mate = ear.mate_of(agent_id=data.task) or _begun(ear, data)
    if mate is None:
        return
    if mate.agent_id is None:
        ear.member(Member(name=mate.name, kind=mate.kind, agent_id=data.task), "known")
    match data.status:
        case "running":
            mate.resting = False
            ear.status(mate, "active")
        case "completed" | "failed" | "stopped":
            # A sub-agent can be taken up again; a teammate's task ends with the teammate.
            ear.status(mate, "idle" if mate.kind == "subagent" else "shutdown")
        case _:
            pass


def _begun(ear: Ear, data: TaskUpdated) -> Mate | None:
    call = ear.deriver.calls.get(data.tool or "")
    if data.kind == _TEAMMATE or data.status not in ("pending", "running"):
        return None
    if call is not None and tools.spawns(call.name):
        given = as_obj(call.input)
        if (name := text(given, "name")) is not None:
            told = Member(name=name, agent_id=data.task, type=text(given, "subagent_type"), model=text(given, "model"))
            tools.subagent(ear, call, name, told)
            return ear.deriver.mates.get(name)
        return None
    if data.name is None:
        return None
    ear.open_team(ear.here)
    member = Member(name=data.name, agent_id=data.task, kind="subagent", lane=data.tool, status="active")
    return ear.member(member, "spawned")


def _stir(ear: Ear, event: Event, mate: Mate) -> None:
    """A member's own events: it rests when the one after a completed task takes up none, and works again when it works."""
    match event.data:
        case MessageAssistant() as data if data.usage is not None and event.item is not None:
            use(mate, event.item, data.usage)
        case _:
            pass
    match event.data:
        case MessageAssistant() if mate.resting:
            mate.resting = False
            ear.status(mate, "idle")
        case ToolStarted() as data if mate.resting:
            call = ear.deriver.calls.get(event.item or "")
            if call is None or not tools.claims(call):
                mate.resting = False
                ear.status(mate, "idle")
        case ToolStarted() as data if mate.status == "idle" and not tools.concerns(data.name):
            if data.name != "SendMessage":
                ear.status(mate, "active")
        case MessageUser() | TurnStarted() if mate.status == "idle":
            mate.resting = False
            ear.status(mate, "active")
        case _:
            pass


def joining(data: SessionCreated) -> tuple[str, str] | None:
    """The team and the name under which a session of its own is a member: agents are started with flags that say so."""
    command = data.options.native.get("command")
    words = [one for one in command if isinstance(one, str)] if isinstance(command, list) else []
    flags = {word: words[at + 1] for at, word in enumerate(words[:-1]) if word.startswith("--")}
    name, team = flags.get("--agent-name"), flags.get("--team-name")
    return (team, name) if team and name else None


def _joins(ear: Ear, session: str, data: SessionCreated) -> None:
    joined = joining(data)
    if joined is None:
        return
    team, name = joined
    ear.member(Member(name=name, session=session, status="active"), "seen", team)
