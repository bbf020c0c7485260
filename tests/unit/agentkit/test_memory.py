"""What an owner remembers of starts: only those that the agent itself failed count towards a crash loop."""

from trunkline_agentkit.memory import Memory
from trunkline_testkit.logs import SESSION, Log
from trunkline_wire import Event
from trunkline_wire.session import Capabilities, SessionInitialized, SessionStatus
from trunkline_wire.work import ErrorRaised

STARTING = SessionStatus(status="starting")
STOPPED = SessionStatus(status="stopped", reason="ended")


def starts(*events: Event) -> int:
    memory = Memory(SESSION)
    for event in events:
        memory.fold(event)
    return memory.starts


def test_starts_count_until_the_agent_is_ready() -> None:
    log = Log()
    twice = [log.created(), log.agent(STARTING), log.agent(STOPPED), log.agent(STARTING), log.agent(STOPPED)]
    assert starts(*twice) == 2
    assert starts(*twice, log.agent(STARTING), log.agent(SessionInitialized(capabilities=Capabilities()))) == 0


def test_a_start_over_which_the_owner_died_is_no_failure_of_the_agent() -> None:
    log = Log()
    events = [log.created()]
    for _ in range(3):
        events += [log.agent(STARTING), log.claimed(), log.agent(STOPPED)]
    assert starts(*events) == 0
    failed = [log.agent(STARTING), log.agent(STOPPED), log.claimed()]
    assert starts(*events, *failed) == 1, "the owner died later, over nothing"


def test_a_program_that_is_not_there_was_not_started() -> None:
    log = Log()
    missing = ErrorRaised(code="agent_not_found", message="no such program")
    assert starts(log.created(), log.agent(STARTING), log.agent(missing), log.claimed()) == 0
