"""The next thing to append, from a desk, answers and a clock. Moments are written out: asked at 10:00:00."""

import datetime as dt
from typing import Any

import pytest
from msgspec.structs import replace

from trunkline_fold.asks import AskRecord
from trunkline_fold.policy import Ruling
from trunkline_permissions.answers import Given
from trunkline_permissions.desk import Desk, decode_desk, encode_desk, fold_desk
from trunkline_permissions.plan import Judge, Step, next_expiry, next_step
from trunkline_wire import Answer, Data, make_event, timestamp
from trunkline_wire.asks import (
    AskDecided,
    AskExpired,
    AskOption,
    AskRouted,
    AskWithdrawn,
    PermissionRequested,
    SessionRule,
)
from trunkline_wire.blocks import TextBlock
from trunkline_wire.session import SessionClaimed, SessionCreated, SessionErased
from trunkline_wire.subjects import Channel
from trunkline_wire.turn import MessageAssistant
from trunkline_wire.work import UsageUpdated

SESSION, ASK = "ses_" + "0" * 32, "ask_" + "0" * 32
BEGIN = dt.datetime(2026, 11, 27, 10, 0, 0, tzinfo=dt.UTC)
CREATED = SessionCreated(adapter="demo", cwd="/src", host="h", workspace="ws")
ASKED = PermissionRequested(
    ask=ASK, name="Bash", incarnation="one", options=[AskOption(id="y", name="Yes", kind="allow_once")]
)


def at(seconds: float) -> dt.datetime:
    return BEGIN + dt.timedelta(seconds=seconds)


def desk(*data: Data, src: tuple[str, int, int] | None = None) -> Desk:
    """A desk after events at sequences 1, 2, 3 …, stored at 10:00:00."""
    found = Desk(session=SESSION)
    for sequence, one in enumerate(data, 1):
        channel: Channel | None = "permission" if one.TYPE.startswith(("ask.", "answer.")) else None
        event = make_event(one, session=SESSION, time=timestamp(BEGIN), src=src if channel else None)
        found = fold_desk(found, event, sequence, channel, BEGIN)
    return found


def routed(seconds: float) -> AskRouted:
    return AskRouted(ask=ASK, policy="p", rule="r", expires_at=timestamp(at(seconds)), on_expiry="deny")


def answer(seconds: float, sequence: int = 7) -> Given:
    given = Answer(id="cmd_1", session=SESSION, ask=ASK, behaviour="allow", time=timestamp(BEGIN))
    return Given(answer=given, sequence=sequence, time_ns=int(at(seconds).timestamp() * 1e9), user="ann")


def says(**ruling: Any) -> Judge:
    def judge(_: Desk, record: AskRecord) -> Ruling:
        assert record.ask == ASK
        fields: dict[str, Any] = {"action": "ask", "policy_version": "v", **ruling}
        return Ruling(**fields)

    return judge


def step(found: Desk, *given: Given, now: float = 1, judge: Judge = says()) -> Step | None:  # noqa: B008 - it is pure
    return next_step(found, given, at(now), judge, set())


def test_a_ruling_is_a_decision_with_the_agents_own_option() -> None:
    found = step(desk(CREATED, ASKED), judge=says(action="allow", rule="r"))
    assert found is not None
    assert found.data == AskDecided(ask=ASK, behaviour="allow", by="policy", rule="r", option="y")
    assert found.src == ("EVENTS", 2, 0)


def test_a_default_that_denies_is_named_default() -> None:
    found = step(desk(CREATED, ASKED), judge=says(action="deny"))
    assert found is not None
    assert found.data == AskDecided(ask=ASK, behaviour="deny", by="policy", rule="default")


def test_an_expiry_counts_from_when_the_server_stored_the_ask() -> None:
    found = step(desk(CREATED, ASKED), judge=says(rule="r", expires_after=90.0, on_expiry="allow"))
    assert found is not None
    assert found.data == AskRouted(
        ask=ASK, policy="v", rule="r", expires_at="2026-11-27T10:01:30.000000Z", on_expiry="allow"
    )


def test_an_ask_left_to_people_is_left_alone_and_judged_once() -> None:
    ruled: set[str] = set()
    assert next_step(desk(CREATED, ASKED), [], at(1), says(rule="r"), ruled) is None
    assert ruled == {ASK}


def test_it_expires_when_its_time_has_come_and_not_before() -> None:
    waiting = desk(CREATED, ASKED, routed(60))
    assert next_expiry(waiting) == at(60)
    assert step(waiting, now=59.9) is None
    found = step(waiting, now=60)
    assert found is not None
    assert (found.data, found.src) == (AskExpired(ask=ASK, behaviour="deny"), ("EVENTS", 2, 1))


def test_an_answer_given_in_time_counts_however_late_it_is_seen() -> None:
    waiting = desk(CREATED, ASKED, routed(60))
    in_time, too_late = step(waiting, answer(59), now=300), step(waiting, answer(60), now=300)
    assert in_time is not None
    assert isinstance(in_time.data, AskDecided)
    assert (in_time.src, in_time.cause) == (("COMMANDS", 7, 0), "cmd_1")
    assert too_late is not None
    assert isinstance(too_late.data, AskExpired)


def test_an_answer_behind_the_high_water_mark_is_done_already() -> None:
    decided = AskDecided(ask=ASK, behaviour="deny", by="bob", answer="cmd_0")
    marked = desk(CREATED, ASKED, decided, src=("COMMANDS", 8, 0))
    assert step(marked, answer(1, sequence=8)) is None
    later = step(marked, answer(1, sequence=9))
    assert later is not None
    assert later.data.TYPE == "answer.rejected"


def test_an_answer_that_was_decided_behind_a_withdrawal_is_not_answered_twice() -> None:
    decided = AskDecided(ask=ASK, behaviour="allow", by="ann", answer="cmd_1")
    late = desk(CREATED, ASKED, AskWithdrawn(ask=ASK, why="cancelled"), decided, src=("COMMANDS", 7, 0))
    assert late.asks.asks[ASK].status == "withdrawn"
    assert step(late, answer(2, sequence=9)) is None


def test_nothing_is_written_for_a_session_that_is_unknown_or_erased() -> None:
    assert step(desk(), answer(1)) is None
    assert step(desk(CREATED, ASKED, SessionErased(by="op")), answer(1)) is None


def test_a_desk_that_was_stored_folds_on_like_the_original() -> None:
    made = desk(CREATED, ASKED, routed(60))
    kept = decode_desk(encode_desk(made))
    assert kept == made
    assert kept.arrived == {ASK: "2026-11-27T10:00:00.000000Z"}


def plainly(**ruling: Any) -> Judge:
    """A judge that says the same of every ask."""
    fields: dict[str, Any] = {"action": "ask", "policy_version": "v", **ruling}

    def judge(_: Desk, __: AskRecord) -> Ruling:
        return Ruling(**fields)

    return judge


RULE = SessionRule(rule="session-0", tool="Bash")
SECOND = "ask_" + "1" * 32
REMEMBERED = (CREATED, ASKED, AskDecided(ask=ASK, behaviour="allow", by="ann", remembers=RULE))


def test_what_was_allowed_for_good_is_allowed_again_in_the_rules_name() -> None:
    found = step(desk(*REMEMBERED, replace(ASKED, ask=SECOND)), judge=plainly())
    assert found is not None
    assert found.data == AskDecided(ask=SECOND, behaviour="allow", by="policy", rule="session-0", option="y")
    assert found.src == ("EVENTS", 4, 2)


@pytest.mark.parametrize(
    "ruling", [{"quorum": 2}, {"role": "owner"}, {"signed": True}, {"action": "deny"}, {"action": "deny", "rule": "r"}]
)
def test_a_rule_of_the_session_does_not_outrank_the_policy(ruling: dict[str, Any]) -> None:
    found = step(desk(*REMEMBERED, replace(ASKED, ask=SECOND)), judge=plainly(**ruling))
    assert found is not None
    assert isinstance(found.data, AskRouted) or (isinstance(found.data, AskDecided) and found.data.behaviour == "deny")


def test_a_rule_that_comes_later_allows_what_already_waits() -> None:
    waiting = replace(ASKED, ask=SECOND)
    before = desk(CREATED, ASKED, waiting)
    ruled: set[str] = set()
    plain = plainly()
    assert next_step(before, [], at(1), plain, ruled) is None
    assert ruled == {ASK, SECOND}
    after = desk(CREATED, ASKED, waiting, REMEMBERED[2])
    found = next_step(after, [], at(1), plain, ruled)
    assert found is not None
    assert found.data == AskDecided(ask=SECOND, behaviour="allow", by="policy", rule="session-0", option="y")
    # also one that waits for its expiry, but none that waits for two people
    for quorum, allowed in ((1, True), (2, False)):
        routed = AskRouted(ask=SECOND, policy="p", expires_at=timestamp(at(60)), quorum=quorum)
        found = next_step(desk(CREATED, ASKED, waiting, routed, REMEMBERED[2]), [], at(1), plain, {SECOND})
        assert (found is not None) is allowed


def test_what_needs_a_role_or_a_signature_is_routed() -> None:
    found = step(desk(CREATED, ASKED), judge=says(rule="r", role="owner", signed=True))
    assert found is not None
    assert found.data == AskRouted(ask=ASK, policy="v", rule="r", role="owner", signed=True)


def test_a_message_that_costs_nothing_leaves_the_desk_as_it_is() -> None:
    before = desk(CREATED, ASKED)
    said = make_event(MessageAssistant(content=[TextBlock(text="x")]), session=SESSION, time=timestamp(BEGIN))
    assert fold_desk(before, said, 3, None, BEGIN) is before


def test_the_desk_knows_what_the_session_cost_and_where_it_is() -> None:
    found = desk(CREATED, UsageUpdated(total_cost_usd=1.25), SessionClaimed(worker="w", host="h2"))
    assert (found.spending.usd, found.host) == (1.25, "h2")
    assert decode_desk(encode_desk(found)) == found


def test_an_ask_is_judged_by_what_the_session_had_cost_when_it_came() -> None:
    later = "ask_" + "1" * 32
    costs = [UsageUpdated(total_cost_usd=cost) for cost in (0.5, 2.0)]
    found = desk(CREATED, ASKED, costs[0], replace(ASKED, ask=later), costs[1])
    assert found.costs == {later: 0.5}  # of the first nothing was known yet
    found = decode_desk(encode_desk(found))
    again = fold_desk(
        found, make_event(AskWithdrawn(ask=later, why="cancelled"), session=SESSION, time=""), 6, None, BEGIN
    )
    assert again.costs == {}
