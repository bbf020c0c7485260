"""Answers and policies become exactly one end, whoever is quicker."""

import asyncio
import time
from pathlib import Path

import nats.errors
import pytest
from tests.integration.permissions.stage import OPTIONS, Stage, rejections

from trunkline_bus import direct
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.reader import read
from trunkline_permissions.app import permissions
from trunkline_permissions.decider import Decider
from trunkline_permissions.policy_file import PolicyFile, record_policy
from trunkline_permissions.settings import PermissionsSettings
from trunkline_testkit import eventually
from trunkline_testkit.nats import NatsServer
from trunkline_testkit.proxy import Action, NatsProxy, Passing
from trunkline_wire import decode_json, subjects
from trunkline_wire.asks import AskDecided, AskExpired, AskRouted, AskVoted
from trunkline_wire.ids import new_command_id, new_session_id

ALLOW_LS = '[[rule]]\nname = "lists"\naction = "allow"\ncommand = "ls"\n'
EXPIRES = '[[rule]]\nname = "short"\naction = "ask"\nexpires_after = {seconds}\non_expiry = "deny"\n'


async def test_an_answer_becomes_the_decision_with_its_author_and_source(
    bus: Bus, settings: PermissionsSettings
) -> None:
    async with permissions(bus, settings), await Stage.open(bus) as stage:
        ask = await stage.ask(1, options=OPTIONS)
        answer = await stage.answer(ask, "allow", option="once", updated_input={"command": "ls -l"})
        (event,) = await stage.until_said(1)
        assert isinstance(event.data, AskDecided)
        decided = event.data
        assert (decided.ask, decided.behaviour, decided.by, decided.answer) == (ask, "allow", "ann", answer)
        assert (decided.option, decided.updated_input) == ("once", {"command": "ls -l"})
        # the first message of COMMANDS is the answer
        assert event.src == (subjects.COMMANDS, 1, 0)
        assert event.cause == answer


async def test_of_two_answers_one_wins_and_the_other_is_told(bus: Bus, settings: PermissionsSettings) -> None:
    async with permissions(bus, settings), await Stage.open(bus) as stage:
        ask = await stage.ask(1)
        first = await stage.answer(ask, "allow", "ann")
        second = await stage.answer(ask, "deny", "bob")
        decided, rejected = await stage.until_said(2)
        assert isinstance(decided.data, AskDecided)
        assert (decided.data.by, decided.data.answer) == ("ann", first)
        assert rejections([rejected]) == {second: "already_decided"}


async def test_a_repeated_answer_has_its_first_outcome_and_adds_nothing(
    bus: Bus, settings: PermissionsSettings
) -> None:
    async with permissions(bus, settings), await Stage.open(bus) as stage:
        one, two = await stage.ask(1), await stage.ask(2)
        winner = await stage.answer(one, "allow")
        loser = await stage.answer(one, "deny", "bob")
        for id_, behaviour in ((winner, "allow"), (loser, "deny")):
            await stage.answer(one, behaviour, id=id_)
        last = await stage.answer(two, "allow")
        events = await stage.until_said(3)
        assert [e.cause for e in events] == [winner, loser, last]


async def test_a_bad_answer_is_refused_with_its_reason_and_leaves_the_ask_open(
    bus: Bus, settings: PermissionsSettings
) -> None:
    async with permissions(bus, settings), await Stage.open(bus) as stage:
        ask = await stage.ask(1, options=OPTIONS)
        unknown_option = await stage.answer(ask, "allow", option="twice")
        contrary = await stage.answer(ask, "allow", option="never")
        no_object = await stage.answer(ask, "allow", updated_input="ls")
        unknown = await stage.answer(stage.id_of(99), "allow")
        assert rejections(await stage.until_said(4)) == {
            unknown_option: "bad_answer",
            contrary: "bad_answer",
            no_object: "bad_answer",
            unknown: "unknown_ask",
        }
        assert (await stage.state()).asks[ask].status == "open"
        await stage.answer(ask, "deny", option="never", message="no")
        state = await stage.ended(ask)
        decision = state.asks[ask].decision
        assert decision is not None
        assert (decision.behaviour, decision.message) == ("deny", "no")


async def test_an_answer_to_a_withdrawn_ask_is_told_so(bus: Bus, settings: PermissionsSettings) -> None:
    async with permissions(bus, settings), await Stage.open(bus) as stage:
        ask = await stage.ask(1)
        await stage.withdraw(ask)
        late = await stage.answer(ask, "allow")
        assert rejections(await stage.until_said(1)) == {late: "withdrawn"}


async def test_an_answer_for_a_session_that_is_not_there_writes_nothing(
    bus: Bus, settings: PermissionsSettings
) -> None:
    async with permissions(bus, settings), await Stage.open(bus) as stage:
        nobody = Stage(bus, stage.writer)
        nobody.session = new_session_id()
        await nobody.answer(nobody.id_of(1), "allow")
        ask = await stage.ask(1)
        await stage.answer(ask, "allow")
        await stage.until_said(1)
        assert await nobody.said() == []


async def test_the_policy_allows_within_a_tenth_of_a_second_and_names_its_rule(
    bus: Bus, settings: PermissionsSettings
) -> None:
    settings.policy_path.write_text(ALLOW_LS)
    async with permissions(bus, settings) as (decider, _), await Stage.open(bus) as stage:
        await decider.ready.wait()
        begin = time.monotonic()
        ask = await stage.ask(1, options=OPTIONS)
        await eventually(lambda: _status(decider, stage, ask) == "decided", interval=0.001)
        assert time.monotonic() - begin < 0.1
        (event,) = await stage.said()
        assert isinstance(event.data, AskDecided)
        assert (event.data.behaviour, event.data.by, event.data.rule, event.data.option) == (
            "allow",
            "policy",
            "lists",
            "once",
        )


async def test_the_default_policy_keeps_agents_off_the_state_directory(bus: Bus, settings: PermissionsSettings) -> None:
    async with permissions(bus, settings), await Stage.open(bus) as stage:
        ask = await stage.ask(1, command=f"cat {settings.home}/token")
        state = await stage.ended(ask)
        decision = state.asks[ask].decision
        assert decision is not None
        assert (decision.behaviour, decision.by, decision.rule) == ("deny", "policy", "trunkline-state")


async def test_a_policy_that_can_not_be_recorded_at_once_is_recorded_later_and_decides_meanwhile(
    bus: Bus, settings: PermissionsSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writing connection refuses at once while it is down (`pending_size=-1`): here, the first two times."""
    refusals = [nats.errors.OutboundBufferLimitError(), nats.errors.OutboundBufferLimitError()]

    async def record(bus: Bus, source: PolicyFile) -> None:
        if refusals:
            raise refusals.pop()
        await record_policy(bus, source)

    monkeypatch.setattr("trunkline_permissions.app.record_policy", record)
    settings.policy_path.write_text(ALLOW_LS)
    async with permissions(bus, settings) as (_, policy), await Stage.open(bus) as stage:
        ask = await stage.ask(1)
        assert (await stage.ended(ask)).asks[ask].decision is not None
        await eventually(lambda: _recorded(bus, policy.policy.version), ignore=(nats.errors.Error,))
    assert refusals == []


async def _recorded(bus: Bus, version: str) -> bool:
    stored = await bus.js_read.get_last_msg(subjects.SYSTEM, subjects.system("policy"))
    return decode_json(stored.data or b"{}")["details"]["version"] == version


async def test_a_changed_policy_decides_what_is_still_open(bus: Bus, settings: PermissionsSettings) -> None:
    async with permissions(bus, settings) as (decider, policy), await Stage.open(bus) as stage:
        ask = await stage.ask(1)
        await eventually(lambda: stage.session in decider.desks and decider.open_asks == 1)
        settings.policy_path.write_text("[[rule]\n")
        await eventually(lambda: policy.problem is not None)
        settings.policy_path.write_text(ALLOW_LS)
        state = await stage.ended(ask)
        assert state.asks[ask].decision is not None
        assert policy.problem is None

        async def recorded() -> bool:
            stored = await bus.js_read.get_last_msg(subjects.SYSTEM, "trunk.sys.policy")
            return decode_json(stored.data or b"{}")["details"] == {
                "version": policy.policy.version,
                "text": ALLOW_LS,
                "path": str(settings.policy_path),
                "state_dir": str(settings.home),
                "user_home": str(Path.home()),
            }

        await eventually(recorded)


async def test_an_ask_expires_by_its_rule_and_late_answers_are_told(bus: Bus, settings: PermissionsSettings) -> None:
    settings.policy_path.write_text(EXPIRES.format(seconds=0.3))
    async with permissions(bus, settings), await Stage.open(bus) as stage:
        ask = await stage.ask(1)
        routed, expired = await stage.until_said(2)
        assert isinstance(routed.data, AskRouted)
        assert (routed.data.rule, routed.data.on_expiry, routed.data.quorum) == ("short", "deny", 1)
        assert isinstance(expired.data, AskExpired)
        assert (expired.data.ask, expired.data.behaviour) == (ask, "deny")
        late = await stage.answer(ask, "allow")
        assert rejections(await stage.until_said(3)) == {late: "expired"}


async def test_an_expiry_survives_a_restart_and_what_was_answered_in_time_counts(
    bus: Bus, settings: PermissionsSettings
) -> None:
    settings.policy_path.write_text(EXPIRES.format(seconds=1.5))
    async with await Stage.open(bus) as stage:
        async with permissions(bus, settings):
            forgotten, answered, late = [await stage.ask(number) for number in (1, 2, 3)]
            await stage.until_said(3)
        # nobody decides now: one answer comes in time, one when the asks have expired
        await stage.answer(answered, "allow")
        await asyncio.sleep(1.6)  # the expiry itself is what passes here
        too_late = await stage.answer(late, "allow")
        async with permissions(bus, settings):
            state = await stage.ended(forgotten, answered, late)
            events = await stage.until_said(7)
        statuses = {ask: state.asks[ask].status for ask in (forgotten, answered, late)}
        assert statuses == {forgotten: "expired", answered: "decided", late: "expired"}
        assert rejections(events) == {too_late: "expired"}


async def test_a_quorum_needs_different_people_and_one_denial_ends_it(bus: Bus, settings: PermissionsSettings) -> None:
    settings.policy_path.write_text('[[rule]]\nname = "two"\naction = "ask"\nquorum = 2\n')
    async with permissions(bus, settings), await Stage.open(bus) as stage:
        one, two = await stage.ask(1), await stage.ask(2)
        await stage.until_said(2)
        await stage.answer(one, "allow", "ann")
        again = await stage.answer(one, "allow", "ann")
        await stage.answer(one, "allow", "bob")
        await stage.answer(two, "allow", "ann")
        await stage.answer(two, "deny", "bob")
        events = (await stage.until_said(7))[2:]
        kinds = [(type(e.data).__name__, getattr(e.data, "by", None)) for e in events]
        assert kinds == [
            ("AskVoted", "ann"),
            ("AnswerRejected", None),
            ("AskDecided", "bob"),
            ("AskVoted", "ann"),
            ("AskDecided", "bob"),
        ]
        assert rejections(events) == {again: "already_voted"}
        votes = [e.data for e in events if isinstance(e.data, AskVoted)]
        assert {vote.ask for vote in votes} == {one, two}


async def test_an_actor_named_by_another_user_than_the_gateway_does_not_count(
    bus: Bus, settings: PermissionsSettings
) -> None:
    async with permissions(bus, settings), await Stage.open(bus) as stage:
        ask = await stage.ask(1)
        body = (
            f'{{"id":"{new_command_id()}","session":"{stage.session}","ask":"{ask}","behaviour":"allow",'
            '"time":"2026-11-27T00:00:00Z","source":{"actor":"owner"}}'
        )
        await bus.js_cmd.publish(subjects.answer(stage.session, "mallory"), body.encode())
        (event,) = await stage.until_said(1)
        assert isinstance(event.data, AskDecided)
        assert event.data.by == "mallory"


async def test_the_projection_holds_the_fold_and_a_restart_begins_there(
    bus: Bus, settings: PermissionsSettings, home: Path
) -> None:
    from trunkline_permissions.remembered import remember

    assert home == settings.home
    async with await Stage.open(bus) as stage:
        async with permissions(bus, settings):
            ask = await stage.ask(1)
            await stage.answer(ask, "allow")
            await stage.ended(ask)
            expected = await stage.state()

            async def stored() -> bool:
                desks = (await remember(bus)).desks
                return stage.session in desks and desks[stage.session].asks == expected

            await eventually(stored)
        async with permissions(bus, settings) as (decider, _):
            await decider.ready.wait()
            assert decider.desks[stage.session].asks == expected


async def test_an_expiry_that_lies_ahead_at_a_restart_comes(bus: Bus, settings: PermissionsSettings) -> None:
    """The ask is known from the projection alone: no event of it is read again, nothing but the time goes on."""
    from trunkline_permissions.remembered import remember

    settings.policy_path.write_text('[[rule]]\nname = "short"\naction = "ask"\nexpires_after = 3\n')
    async with await Stage.open(bus) as stage:
        async with permissions(bus, settings):
            ask = await stage.ask(1)
            await stage.until_said(1)
            routed = await stage.state()

            async def stored() -> bool:
                desk = (await remember(bus)).desks.get(stage.session)
                return desk is not None and desk.asks == routed

            await eventually(stored)
        async with permissions(bus, settings) as (decider, _):
            await decider.ready.wait()
            assert _status(decider, stage, ask) == "open"
            assert (await stage.ended(ask)).asks[ask].status == "expired"


def _status(decider: Decider, stage: Stage, ask: str) -> str | None:
    desk = decider.desks.get(stage.session)
    record = desk.record(ask) if desk else None
    return record.status if record else None


async def test_a_session_that_can_not_be_read_anew_stops_nobody_else(
    bus: Bus, fresh_nats: NatsServer, settings: PermissionsSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service's Readers miss an ask, the service looks for it itself, and it is poison."""
    monkeypatch.setattr("trunkline_permissions.decider.STALE_S", 0.2)
    poison, missed = b'{"data":', list[str]()

    def miss(message: Passing) -> Action | None:
        if message.payload != poison or len(missed) == 2:
            return None
        missed.append(message.subject)
        return "drop"

    async with (
        NatsProxy(fresh_nats.url) as proxy,
        Bus.open(BusSettings(url=proxy.url)) as its,
        permissions(its, settings) as (decider, _),
        await Stage.open(bus) as sick,
    ):
        await decider.ready.wait()
        await eventually(lambda: sick.session in decider.desks)
        proxy.on_deliver = miss
        about = {subjects.HEADER_ID: "x", subjects.HEADER_TYPE: "permission.requested"}
        await bus.js.publish(subjects.event(sick.session, "agent.ask"), poison, headers=about)
        await sick.answer(sick.id_of(1), "allow")
        await eventually(lambda: _letters(bus))
        async with await Stage.open(bus) as well:
            ask = await well.ask(1)
            await well.answer(ask, "allow")
            await well.ended(ask)
        assert await direct.last(bus, subjects.EVENTS, subjects.event(sick.session, "permission")) is None
    assert len(missed) == 2


async def _letters(bus: Bus) -> int:
    return len(await read(bus, subjects.DEADLETTER, [subjects.dead_letter("permissions")]))
