"""The part of the contract about what an agent asks: permissions and questions."""

from pathlib import Path
from typing import Literal, cast

import pytest

from trunkline_agentkit.contract.base import ContractBase
from trunkline_agentkit.contract.talk import data_of
from trunkline_agentkit.protocol import PermissionHandler
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided, AskWithdrawn, PermissionRequested, PlanProposed, QuestionAsked
from trunkline_wire.blocks import text_of
from trunkline_wire.turn import ToolCompleted, ToolStarted, TurnCompleted


class AskContract(ContractBase):
    @pytest.mark.parametrize("behaviour", ["allow", "deny"])
    async def test_a_decision_reaches_the_agent(self, tmp_path: Path, behaviour: Literal["allow", "deny"]) -> None:
        self.unless_exempt("ask")
        async with self.session(tmp_path, behaviour="ask") as talk:
            await talk.prompt(self.prompts["ask"])
            await talk.until(PermissionRequested)
            ask = data_of(talk.facts, PermissionRequested)[0]
            assert ask.incarnation == talk.start.incarnation
            assert not self.in_directory(tmp_path, self.evidence)
            message = "No, thank you." if behaviour == "deny" else None
            await talk.decide(ask.ask, behaviour, message=message)
            await talk.until(TurnCompleted)
            if "tool" not in self.exempt:
                (tool,) = [
                    fact for fact in talk.facts if fact.item == ask.tool and isinstance(fact.data, ToolCompleted)
                ]
                status = cast("ToolCompleted", tool.data).status
                assert status == ("completed" if behaviour == "allow" else "rejected")
                assert data_of(talk.facts, ToolStarted)
            if self.evidence is not None:
                assert self.in_directory(tmp_path, self.evidence) == (behaviour == "allow")
            with pytest.raises(TrunklineError) as refused:
                await talk.decide(ask.ask, "deny")
            assert refused.value.code == "unknown_ask"

    async def test_a_tool_runs_with_the_input_that_a_decision_gave_it(self, tmp_path: Path) -> None:
        self.unless_exempt("ask", "change")
        async with self.session(tmp_path, behaviour="ask") as talk:
            await talk.prompt(self.prompts["ask"])
            await talk.until(PermissionRequested)
            ask = data_of(talk.facts, PermissionRequested)[0]
            await talk.decide(ask.ask, "allow", updated_input=dict(self.changed_input))
            await talk.until(TurnCompleted)
            if self.evidence is not None:
                assert self.in_directory(tmp_path, self.changed_evidence)
                assert not self.in_directory(tmp_path, self.evidence)

    async def test_an_answer_reaches_the_agent(self, tmp_path: Path) -> None:
        self.unless_exempt("question")
        async with self.session(tmp_path, behaviour="question") as talk:
            await talk.prompt(self.prompts["question"])
            await talk.until(QuestionAsked)
            ask = data_of(talk.facts, QuestionAsked)[0]
            question = ask.questions[0]
            answer = question.options[0].label if question.options else "yes"
            assert isinstance(talk.session, PermissionHandler)
            decision = AskDecided(ask=ask.ask, behaviour="answered", by="test", answers={question.id: answer})
            await talk.session.decide(ask.ask, decision)
            await talk.until(TurnCompleted)
            assert data_of(talk.facts, TurnCompleted)[0].outcome == "success"
            assert data_of(talk.facts, AskWithdrawn) == []

    async def test_an_approved_plan_goes_on(self, tmp_path: Path) -> None:
        self.unless_exempt("plan")
        async with self.session(tmp_path, behaviour="plan") as talk:
            await talk.prompt(self.prompts["plan"])
            while not data_of(out := await talk.until(PlanProposed, PermissionRequested), PlanProposed):
                # Some write their plan into a file first.
                await talk.decide(data_of(out, PermissionRequested)[0].ask, "allow")
            ask = data_of(talk.facts, PlanProposed)[0]
            assert self.plan is None or self.plan in text_of(ask.plan)
            await talk.decide(ask.ask, "allow")
            assert (await talk.end_of_turn()).outcome == "success"
            assert data_of(talk.facts, AskWithdrawn) == []

    async def test_an_interrupt_withdraws_what_was_asked(self, tmp_path: Path) -> None:
        self.unless_exempt("ask", "interrupt")
        async with self.session(tmp_path, behaviour="ask") as talk:
            await talk.prompt(self.prompts["ask"])
            await talk.until(PermissionRequested)
            ask = data_of(talk.facts, PermissionRequested)[0]
            await talk.interrupt()
            await talk.until(TurnCompleted)
            assert data_of(talk.facts, TurnCompleted)[0].outcome == "interrupted"
            assert [withdrawn.ask for withdrawn in data_of(talk.facts, AskWithdrawn)] == [ask.ask]
            ended = [fact.data for fact in talk.facts if fact.item == ask.tool and isinstance(fact.data, ToolCompleted)]
            assert [tool.status for tool in ended] == ([] if "tool" in self.exempt else ["cancelled"])
            assert not self.in_directory(tmp_path, self.evidence)
            with pytest.raises(TrunklineError) as refused:
                await talk.decide(ask.ask, "allow")
            assert refused.value.code == "unknown_ask"
