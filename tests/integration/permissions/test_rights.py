"""Who may answer, what is remembered, and what costs and replicas change: over a real log."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from pathlib import Path
from typing import Any

import pytest
from tests.integration.permissions.stage import OPTIONS, Stage, rejections

from trunkline_bus.connection import Bus
from trunkline_permissions.app import permissions
from trunkline_permissions.settings import PermissionsSettings
from trunkline_testkit import eventually
from trunkline_testkit.forbidden import TRUST_NOBODY
from trunkline_testkit.nats import NatsServer
from trunkline_wire import Source
from trunkline_wire.asks import AskDecided, AskExpired, AskOption, AskRevoked, AskRouted
from trunkline_wire.work import UsageUpdated

ALWAYS = [*OPTIONS, AskOption(id="always", name="Always", kind="allow_always")]


def source(actor: str, role: str) -> Source:
    return Source(actor=actor, via="web", role=role)


async def test_an_answer_of_too_low_a_role_is_refused_and_leaves_the_ask_open(
    bus: Bus, settings: PermissionsSettings
) -> None:
    settings.policy_path.write_text('[[rule]]\nname = "r"\naction = "ask"\nrole = "owner"\n')
    async with permissions(bus, settings), await Stage.open(bus) as stage:
        ask = await stage.ask(1)
        low = await stage.answer(ask, "allow", source=source("ann", "approver"))
        routed, refused = await stage.until_said(2)
        assert isinstance(routed.data, AskRouted)
        assert (routed.data.rule, routed.data.role) == ("r", "owner")
        assert rejections([refused]) == {low: "forbidden"}
        assert (await stage.state()).asks[ask].status == "open"
        high = await stage.answer(ask, "allow", source=source("olga", "owner"))
        decision = (await stage.ended(ask)).asks[ask].decision
        assert decision is not None
        assert decision.answer == high


async def test_an_unsigned_answer_is_refused_where_the_policy_wants_a_signature(
    bus: Bus, settings: PermissionsSettings
) -> None:
    settings.policy_path.write_text('[[rule]]\nname = "r"\naction = "ask"\nsigned = true\n')
    async with permissions(bus, settings), await Stage.open(bus) as stage:
        ask = await stage.ask(1)
        unsigned = await stage.answer(ask, "allow")
        assert rejections(await stage.until_said(2)) == {unsigned: "signature_required"}
        assert (await stage.state()).asks[ask].status == "open"


async def test_what_is_allowed_for_good_is_allowed_again_until_it_is_taken_back(
    bus: Bus, settings: PermissionsSettings
) -> None:
    async with permissions(bus, settings), await Stage.open(bus) as stage:
        about: dict[str, Any] = {"command": "git log", "options": ALWAYS, "suggestions": ["git log *"]}
        first, waiting = await stage.ask(1, **about), await stage.ask(2, **about)
        await stage.answer(first, "allow", option="always")
        decided, allowed = await stage.until_said(2)
        assert isinstance(decided.data, AskDecided)
        assert decided.data.remembers is not None
        rule = decided.data.remembers.rule
        assert isinstance(allowed.data, AskDecided)
        assert (allowed.data.ask, allowed.data.by, allowed.data.rule) == (waiting, "policy", rule)
        assert allowed.data.option == "once"
        other = await stage.ask(3, command="git log; rm x", options=ALWAYS)
        third = await stage.ask(4, **about)
        decision = (await stage.ended(third)).asks[third].decision
        assert decision is not None
        assert decision.rule == rule
        assert (await stage.state()).asks[other].status == "open"

        revoked = await stage.answer(first, "deny", "bob", revoke=True)
        again = await stage.answer(first, "deny", "bob", revoke=True)
        for _ in range(2):
            await stage.answer(first, "deny", "bob", revoke=True, id=revoked)  # a repetition adds nothing
        last = (await stage.until_said(5))[3:]
        assert isinstance(last[0].data, AskRevoked)
        assert (last[0].data.rule, last[0].data.by, last[0].cause) == (rule, "bob", revoked)
        assert rejections(last) == {again: "unknown_rule"}
        fifth = await stage.ask(5, **about)
        await stage.answer(fifth, "deny")
        decision = (await stage.ended(fifth)).asks[fifth].decision
        assert decision is not None
        assert decision.by == "ann"
        assert len(await stage.said()) == 6


async def test_a_rule_about_costs_follows_the_session(bus: Bus, settings: PermissionsSettings) -> None:
    settings.policy_path.write_text(
        '[[rule]]\nname = "cheap"\naction = "allow"\ncost_at_most = 1.0\n'
        '[[rule]]\nname = "dear"\naction = "deny"\ncost_at_least = 1.0\n'
    )
    async with permissions(bus, settings) as (decider, _), await Stage.open(bus) as stage:
        for number, (cost, rule) in enumerate([(0.5, "cheap"), (1.5, "dear")], 1):
            stage.writer.append(UsageUpdated(total_cost_usd=cost))
            await stage.writer.flush()
            await eventually(
                lambda cost=cost: stage.session in decider.desks and decider.desks[stage.session].spending.usd == cost
            )
            ask = await stage.ask(number)
            decision = (await stage.ended(ask)).asks[ask].decision
            assert decision is not None
            assert decision.rule == rule


@pytest.mark.parametrize("replicas", [1, 2])
async def test_an_expiry_comes_once_though_a_replica_dies_before_it(
    bus: Bus, fresh_nats: NatsServer, settings: PermissionsSettings, home: Path, replicas: int
) -> None:
    settings.policy_path.write_text('[[rule]]\nname = "short"\naction = "ask"\nexpires_after = 0.6\n')
    assert home == settings.home
    environment = {
        "PATH": os.defpath,
        "TRUNKLINE_HOME": str(home),
        "TRUNKLINE_NATS_URL": fresh_nats.url,
        **TRUST_NOBODY,
    }

    async def start() -> Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "trunkline_permissions", env=environment, stderr=DEVNULL
        )

    processes = [await start() for _ in range(replicas)]
    try:
        async with await Stage.open(bus) as stage:
            ask = await stage.ask(1)
            await stage.until_said(1, timeout=60)  # routed: from here on the expiry is in the log
            processes[0].send_signal(signal.SIGKILL)
            await processes[0].wait()
            processes[0] = await start()
            state = await stage.ended(ask, timeout=60)
            assert state.asks[ask].status == "expired"
            late = await stage.answer(ask, "allow")
            events = await stage.until_said(3, timeout=60)
            assert [type(event.data) for event in events[:2]] == [AskRouted, AskExpired]
            assert rejections(events) == {late: "expired"}
    finally:
        for process in processes:
            process.terminate()
            await process.wait()
