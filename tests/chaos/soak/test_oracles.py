"""Each judge is quiet about a sound run and names each violation that is planted in it."""

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from trunkline_bus.cells import Cells
from trunkline_bus.stored import Stored
from trunkline_projector.sessions import SessionsView
from trunkline_testkit.chaos import oracles
from trunkline_testkit.chaos.census import Being, rivals
from trunkline_testkit.chaos.evidence import Evidence, Told, Transcript, Violation, around
from trunkline_testkit.chaos.faults import plan
from trunkline_testkit.chaos.points import Mark, kind_of, points
from trunkline_testkit.logs import SESSION, Log
from trunkline_wire import Data, encode, subjects
from trunkline_wire.asks import AskDecided, AskDelivered, AskOption, PermissionRequested
from trunkline_wire.blocks import TextBlock
from trunkline_wire.ids import ask_id, item_id
from trunkline_wire.session import Capabilities, SessionInitialized, SessionStatus
from trunkline_wire.turn import MessageAssistant, ToolCompleted, ToolStarted, TurnCompleted, TurnStarted
from trunkline_wire.work import CommandAccepted, CommandFinished

LIFE = "life1"
PROMPT = "cmd_" + "1" * 32
WINNER, LOSER = "cmd_" + "2" * 32, "cmd_" + "3" * 32
ASK = ask_id(SESSION, LIFE, "a1")
TURN = "tur_" + "1" * 32
ITEM, TOOL = item_id(SESSION, LIFE, "m1"), item_id(SESSION, LIFE, "t1")
SILENT = {"text"}
SAID: list[dict[str, Any]] = [
    {"type": kind} for kind in ("ready", "turn_started", "text", "message", "tool", "ask", "tool_done", "turn_done")
]


def sound_log() -> Log:
    """One life, one turn: a message, and a tool that asks, is allowed and runs."""
    log = Log()
    lines = iter(range(1, 100))

    def say(kind: str, data: Data, **fields: Any) -> None:
        native = msgspec.Raw(encode({"type": kind}))
        log.agent(data, origin=(next(lines), 1, 1), native=native, **fields)

    log.created()
    log.agent(CommandAccepted(command=PROMPT, verb="prompt", cmd_seq=1), cause=PROMPT)
    say("ready", SessionInitialized(capabilities=Capabilities(), incarnation=LIFE))
    say("turn_started", TurnStarted(number=1), turn=TURN, cause=PROMPT)
    log.agent(CommandFinished(command=PROMPT), cause=PROMPT)
    say("message", MessageAssistant(content=[TextBlock(text="hello")], block=0), turn=TURN, item=ITEM)
    say("tool", ToolStarted(name="run"), turn=TURN, item=TOOL)
    options = [AskOption(id="allow", name="Allow", kind="allow_once")]
    say(
        "ask",
        PermissionRequested(
            ask=ASK, name="run", incarnation=LIFE, kind="execute", input={}, options=options, tool=TOOL
        ),
        turn=TURN,
        item=TOOL,
    )
    decided = log.permission(AskDecided(ask=ASK, behaviour="allow", by="kim", answer=WINNER))
    log.agent(AskDelivered(ask=ASK), cause=decided.id)
    say("tool_done", ToolCompleted(status="completed"), turn=TURN, item=TOOL)
    say("turn_done", TurnCompleted(outcome="success"), turn=TURN)
    log.agent(SessionStatus(status="stopped", reason="ended"))
    return log


def stored(log: Log) -> list[Stored]:
    return [
        Stored(
            subjects.EVENTS,
            sequence,
            f"trunk.ev.1.{SESSION}.{channel}",
            event.type,
            event.id,
            None,
            encode(event),
            0,
        )
        for sequence, channel, event in log.entries
    ]


def sound() -> Evidence:
    log = sound_log()
    note: dict[str, Any] = {"incarnation": LIFE, "pid": 1, "t": 0}
    return Evidence(
        SESSION,
        stored(log),
        recording=[
            ("meta", json.dumps({"incarnation": LIFE})),
            *(("agent", json.dumps(message, sort_keys=True)) for message in SAID),
            ("exit", "{}"),
        ],
        journal=[
            note | {"kind": "prompt", "id": PROMPT, "steer": False},
            note | {"kind": "turn", "id": PROMPT},
            note | {"kind": "answer", "ask": "a1", "allow": True, "input": None, "answers": None},
        ],
        transcripts=[Transcript("phone", facts=[event.id for _, _, event in log.entries], texts=[("hel", "hello")])],
        told=[Told(WINNER, ASK, "decided"), Told(LOSER, ASK, "already_decided")],
        acked={PROMPT},
    )


def test_a_sound_run_has_no_violation() -> None:
    assert oracles.judge(sound(), SILENT) == []


def without(place: int) -> Callable[[Evidence], None]:
    def plant(evidence: Evidence) -> None:
        del evidence.stored[place]

    return plant


def log_twice(evidence: Evidence) -> None:
    evidence.stored.append(msgspec.structs.replace(evidence.stored[-1], sequence=99))


def unread(evidence: Evidence) -> None:
    evidence.stored[3] = msgspec.structs.replace(evidence.stored[3], raw=b"{")


def native_lost(evidence: Evidence) -> None:
    evidence.recording.insert(-1, ("agent", '{"type": "message", "n": 2}'))


def native_swapped(evidence: Evidence) -> None:
    evidence.recording[2], evidence.recording[4] = evidence.recording[4], evidence.recording[2]


def native_invented(evidence: Evidence) -> None:
    evidence.recording.clear()


def prompt_twice(evidence: Evidence) -> None:
    evidence.journal.insert(1, evidence.journal[0])


def effect_twice(evidence: Evidence) -> None:
    evidence.journal.append(evidence.journal[1])


def prompt_of_nobody(evidence: Evidence) -> None:
    evidence.journal[0] = evidence.journal[0] | {"id": LOSER}


def other_decision(evidence: Evidence) -> None:
    evidence.journal[2] = evidence.journal[2] | {"allow": False}


def other_input(evidence: Evidence) -> None:
    evidence.journal[2] = evidence.journal[2] | {"input": {"command": "rm"}}


def second_decision(evidence: Evidence) -> None:
    evidence.journal.append(evidence.journal[2])


def decision_of_a_dead_life(evidence: Evidence) -> None:
    evidence.journal[2] = evidence.journal[2] | {"incarnation": "life2"}


def told_wrong(evidence: Evidence) -> None:
    evidence.told[1] = Told(LOSER, ASK, "decided")


def winner_told_wrong(evidence: Evidence) -> None:
    evidence.told[0] = Told(WINNER, ASK, "already_decided")


def no_outcome(evidence: Evidence) -> None:
    evidence.acked.add(LOSER)


def fact_missed(evidence: Evidence) -> None:
    del evidence.transcripts[0].facts[4]


def fact_again(evidence: Evidence) -> None:
    evidence.transcripts[0].facts.insert(5, evidence.transcripts[0].facts[4])


def end_missed(evidence: Evidence) -> None:
    evidence.transcripts[0].facts.pop()


def other_text(evidence: Evidence) -> None:
    evidence.transcripts[0].texts.append(("hallo", "hello"))


@pytest.mark.parametrize(
    ("invariant", "plant"),
    [
        (2, without(4)),
        (2, log_twice),
        (1, unread),
        (1, native_lost),
        (1, native_swapped),
        (1, native_invented),
        (6, prompt_twice),
        (6, effect_twice),
        (6, prompt_of_nobody),
        (3, other_decision),
        (3, other_input),
        (3, second_decision),
        (3, decision_of_a_dead_life),
        (3, told_wrong),
        (3, winner_told_wrong),
        (6, no_outcome),
        (5, fact_missed),
        (5, fact_again),
        (5, end_missed),
        (5, other_text),
    ],
)
def test_a_planted_violation_is_named(invariant: int, plant: Callable[[Evidence], None]) -> None:
    evidence = sound()
    plant(evidence)
    found = oracles.judge(evidence, SILENT)
    assert invariant in {violation.invariant for violation in found}, found


def test_what_an_owner_had_not_stored_when_it_died_is_no_violation() -> None:
    evidence = sound()
    assert evidence.stored.pop().type == "session.status"
    evidence.transcripts[0].facts.pop()
    native_lost(evidence)
    assert oracles.judge(evidence, SILENT) == []


def test_after_a_gap_a_client_has_what_follows_its_snapshot() -> None:
    evidence = sound()
    phone = evidence.transcripts[0]
    phone.gaps.append("log_diverged")
    del phone.facts[:5]
    assert oracles.judge(evidence, SILENT) == []
    del phone.facts[2]
    assert [violation.invariant for violation in oracles.judge(evidence, SILENT)] == [5]


def test_a_document_is_compared_byte_for_byte_up_to_its_cursor() -> None:
    view, log = SessionsView(), stored(sound_log())
    cells = Cells(view)
    cells.begin(SESSION)
    for one in log[:-2]:
        cells.apply(one)
    live = cells.document(cells[SESSION])
    assert list(oracles.projections(SESSION, log, view, {SESSION: live})) == []
    broken = live.replace(b'"adapter":"demo"', b'"adapter":"dem0"', 1)
    assert broken != live
    assert [v.invariant for v in oracles.projections(SESSION, log, view, {SESSION: broken})] == [4]
    assert [v.invariant for v in oracles.projections(SESSION, log, view, {})] == [4]


def test_two_lives_of_a_session_at_once_are_rivals() -> None:
    started = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    one = Being(os.getpid(), started, SESSION, "a")
    other = dataclasses.replace(one, incarnation="b")
    assert rivals([one, one]) == []
    assert rivals([one, other]) == [(one, other)]
    gone = dataclasses.replace(other, started=started + 1)
    assert rivals([one, gone]) == []


def test_a_violation_is_shown_with_what_surrounds_it() -> None:
    shown = around(sound(), Violation(1, SESSION, "broken", 6), before=2, after=1)
    assert shown.splitlines()[0] == f"invariant 1, {SESSION}, at 6: broken"
    assert [line.split()[0] for line in shown.splitlines()[1:]] == ["4", "5", ">", "7"]


def test_a_plan_is_its_seed() -> None:
    weights = {"worker": 3.0, "nats": 1.0}
    faults = plan(7, 200, weights, others={"stop": ("worker",)})
    assert faults == plan(7, 200, weights, others={"stop": ("worker",)})
    assert faults != plan(8, 200, weights, others={"stop": ("worker",)})
    kills = [fault for fault in faults if fault.kind == "kill"]
    assert len(kills) == 200
    assert {fault.kind for fault in faults} == {"kill", "stop"}
    worker = sum(fault.part == "worker" for fault in kills)
    assert 120 < worker < 180, "three in four, give or take what chance does"


def test_points_stand_around_what_changes_something() -> None:
    assert kind_of(f"trunk.ev.3.{SESSION}.agent.fact") == "fact"
    assert kind_of(f"trunk.ev.3.{SESSION}.permission") == "permission"
    assert kind_of("$KV.trunk_leases.x") == "kv:trunk_leases"
    assert kind_of("$JS.API.STREAM.INFO.EVENTS") == "api"
    run = [Mark("fact", "turn.started", 1), Mark("api", "", 1), Mark("delta", "", 1), Mark("kv:trunk_leases", "", 1)]
    named = [str(point) for point in points(run)]
    assert named == [
        "before turn.started #1",
        "stored turn.started #1",
        "after turn.started #1",
        "before delta #1",
        "after delta #1",
        "before kv:trunk_leases #1",
        "stored kv:trunk_leases #1",
        "after kv:trunk_leases #1",
    ]
