"""The ACP adapter over its real transport, against a fake agent that speaks the protocol."""

import datetime as dt
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.contract.acp_running import STAND_IN, STAND_IN_PROFILE, running

from trunkline_adapters.acp import session
from trunkline_adapters.acp.adapter import AcpAdapter
from trunkline_adapters.acp.launch import until_loadable
from trunkline_agentkit import BackendAdapter, Piece, Start
from trunkline_agentkit.contract import AdapterContract, Behaviour, More
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided, AskWithdrawn, PermissionRequested, QuestionAsked
from trunkline_wire.blocks import FileBlock, ImageBlock, ThinkingBlock, join_text
from trunkline_wire.session import SessionInitialized, SessionUpdated
from trunkline_wire.turn import MessageAssistant, MessageUser, ToolCompleted, ToolStarted, TurnCompleted, TurnStarted
from trunkline_wire.work import NativeMessage

RECORDINGS = Path(__file__).parents[1] / "recordings" / "acp"


class TestAcp(AdapterContract):
    adapter_name = "acp"
    prompts: ClassVar[Mapping[Behaviour | More, str]] = {
        "say": "hello there",
        "long": "long",
        "ask": "ask ls",
        "question": "question",
        "crash": "die 3",
        "recall": "recall",
    }
    said = "hello there"
    recordings = sorted(RECORDINGS.glob("*/native.jsonl"))

    def make_adapter(self) -> BackendAdapter:
        return AcpAdapter({"PATH": os.environ["PATH"], **STAND_IN_PROFILE})

    def start(
        self, adapter: BackendAdapter, tmp_path: Path, behaviour: Behaviour | More = "say", **fields: Any
    ) -> Start:
        start = super().start(adapter, tmp_path, behaviour, agent="stand-in", **fields)
        start.environment["STAND_IN_STATE"] = str(tmp_path)
        return start


# Starting


async def test_a_session_is_described_by_what_the_agent_says_of_itself(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        data = await agent.wait(SessionInitialized)
    assert data.version == "1.2.3"
    assert data.native_session.startswith("native-")
    assert (data.mode, data.model) == ("auto", "small")
    assert [one.id for one in data.modes] == ["auto", "ask"]
    assert [one.id for one in data.models] == ["small", "large"]
    able = data.capabilities
    assert (able.resume, able.fork, able.image_input, able.thinking, able.mode_switching) == (True,) * 5


async def test_an_agent_without_choices_lacks_the_capabilities(tmp_path: Path) -> None:
    async with running(tmp_path, "plain") as agent:
        able = (await agent.wait(SessionInitialized)).capabilities
        assert (able.thinking, able.mode_switching, able.model_switching) == (False,) * 3
        for attempt, capability in (
            (agent.session.set_mode("ask"), "mode_switching"),
            (agent.session.set_model("large"), "model_switching"),
            (agent.session.set_thinking("low"), "thinking"),
            (agent.session.run_command("help", "", "cmd_1"), "slash_commands"),
            (agent.session.compact(None, "cmd_1"), "compaction"),
        ):
            with pytest.raises(TrunklineError) as refused:
                await attempt
            assert (refused.value.code, refused.value.details["capability"]) == ("unsupported", capability)


async def test_options_are_set_before_the_first_prompt(tmp_path: Path) -> None:
    async with running(tmp_path, mode="ask", model="large", thinking="max") as agent:
        assert await agent.told("options") == {"mode": "ask", "model": "large", "effort": "xhigh"}
        changes = agent.all(SessionUpdated)
    assert [one.mode for one in changes if one.mode] == ["ask"]
    assert [one.model for one in changes if one.model] == ["large"]


@pytest.mark.parametrize("wrong", [{"mode": "sideways"}, {"model": "huge"}, {"thinking": "medium"}])
async def test_an_option_that_the_agent_does_not_offer_is_refused_with_what_it_does(
    tmp_path: Path, wrong: dict[str, Any]
) -> None:
    with pytest.raises(TrunklineError, match="there are") as refused:
        async with running(tmp_path, **wrong):
            pass
    assert refused.value.code == "bad_params"


async def test_an_agent_that_wants_a_login_says_which_command_to_run(tmp_path: Path) -> None:
    with pytest.raises(TrunklineError, match="run `stand-in login`") as refused:
        async with running(tmp_path, "signed_out"):
            pass
    assert refused.value.code == "agent_auth"
    assert refused.value.details["methods"] == ["login"]


async def test_a_profile_says_which_command_signs_in(tmp_path: Path) -> None:
    source = {"TRUNKLINE_PROGRAM_ACP_AUGGIE": STAND_IN}
    with pytest.raises(TrunklineError, match="run `auggie login`") as refused:
        async with running(tmp_path, "signed_out", agent="auggie", source=source):
            pass
    assert refused.value.code == "agent_auth"


async def test_an_agent_that_ends_at_once_says_why(tmp_path: Path) -> None:
    with pytest.raises(TrunklineError, match="no licence") as refused:
        async with running(tmp_path, "exit"):
            pass
    assert (refused.value.code, refused.value.details["exit_code"]) == ("agent_failed", 3)


async def test_another_version_of_the_protocol_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TrunklineError, match="version 2") as refused:
        async with running(tmp_path, "future"):
            pass
    assert refused.value.code == "agent_failed"


async def test_neither_agent_nor_command_is_an_error_that_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(TrunklineError, match=r"--agent.*--command") as refused:
        async with running(tmp_path, native={"command": []}):
            pass
    assert refused.value.code == "bad_params"
    with pytest.raises(TrunklineError, match="gemini") as refused:
        async with running(tmp_path, agent="nobody"):
            pass
    assert refused.value.code == "bad_params"


async def test_a_program_that_is_missing_says_how_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(TrunklineError, match="npm install -g @google/gemini-cli") as refused:
        async with running(tmp_path, agent="gemini", source={"PATH": str(tmp_path)}):
            pass
    assert refused.value.code == "agent_not_found"
    assert "TRUNKLINE_PROGRAM_ACP_GEMINI" in refused.value.message


async def test_a_profile_of_ones_own_is_a_file(tmp_path: Path) -> None:
    mine = tmp_path / "profiles"
    mine.mkdir()
    (mine / "mine.toml").write_text(f'title = "Mine"\ncommand = ["{STAND_IN}"]\nmode = "ask"\nvariables = ["MINE_*"]\n')
    source = {"TRUNKLINE_ACP_PROFILES": str(mine), "MINE_KEY": "key", "OTHER_KEY": "secret"}
    async with running(tmp_path, agent="mine", source=source) as agent:
        assert (await agent.told("options"))["mode"] == "ask"
        environment = await agent.told("environment")
    assert environment["MINE_KEY"] == "key"
    assert "OTHER_KEY" not in environment


async def test_a_command_gets_the_variables_that_its_session_names_and_no_other(tmp_path: Path) -> None:
    source = {"MY_TOKEN": "token", "GITHUB_TOKEN": "secret"}
    async with running(tmp_path, source=source, native={"variables": ["MY_TOKEN"]}) as agent:
        environment = await agent.told("environment")
    assert environment["MY_TOKEN"] == "token"
    assert "GITHUB_TOKEN" not in environment


async def test_unknown_options_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(TrunklineError, match="'comand'") as refused:
        async with running(tmp_path, native={"comand": []}):
            pass
    assert refused.value.code == "unsupported"


# Turns


async def test_a_prompt_that_comes_while_a_turn_runs_gets_the_next_one(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        await agent.send("ask ls", command="cmd_1")
        asked = await agent.wait(PermissionRequested)
        await agent.send("second", command="cmd_2")
        await agent.send("third", command="cmd_3")
        await agent.session.decide(asked.ask, AskDecided(ask=asked.ask, behaviour="allow", by="test"))
        await agent.wait(TurnCompleted, 3)
        assert [fact.cause for fact in agent.facts(TurnStarted)] == ["cmd_1", "cmd_2", "cmd_3"]
        said = [join_text(one.content) for one in agent.all(MessageAssistant)]
    assert said[1:] == ["second", "third"]


async def test_an_interrupt_drops_what_waits_where_it_is_told_to(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        await agent.send("long", command="cmd_1")
        await agent.wait(TurnStarted)
        await agent.send("second", command="cmd_2")
        await agent.session.interrupt(cancel_queued=True)
        ended = await agent.wait(TurnCompleted)
        assert ended.outcome == "interrupted"
        dropped = agent.all(MessageUser)
        assert [(one.command, one.delivery) for one in dropped] == [("cmd_2", "cancelled")]
        assert await agent.said("third") == "third"


async def test_an_interrupt_calls_open_asks_off(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        await agent.send("ask rm")
        asked = await agent.wait(PermissionRequested)
        assert await agent.session.pending() == {asked.ask}
        await agent.session.interrupt()
        await agent.wait(TurnCompleted)
        assert await agent.session.pending() == set()
        assert [(one.ask, one.why) for one in agent.all(AskWithdrawn)] == [(asked.ask, "interrupted")]
        assert [one.status for one in agent.all(ToolCompleted)] == ["cancelled"]
        with pytest.raises(TrunklineError) as refused:
            await agent.session.decide(asked.ask, AskDecided(ask=asked.ask, behaviour="allow", by="test"))
        assert refused.value.code == "unknown_ask"


async def test_the_models_failure_is_the_turns(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        ended = await agent.turn("fail")
        assert ended.outcome == "error"
        assert (ended.error and ended.error.code, ended.error and ended.error.message) == (
            "agent_failed",
            "the model is not there",
        )
        assert await agent.said("hello") == "hello"


async def test_a_request_that_times_out_leaves_the_turn_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline_adapters.acp.session.NATIVE_DEADLINE", 0.2)
    async with running(tmp_path) as agent:
        await agent.send("ask ls")
        asked = await agent.wait(PermissionRequested)
        with pytest.raises(TrunklineError) as refused:
            await agent.session.native("own/unanswered", {})
        assert refused.value.code == "timeout"
        await agent.session.decide(asked.ask, AskDecided(ask=asked.ask, behaviour="allow", by="test"))
        assert (await agent.wait(TurnCompleted)).outcome == "success"


async def test_content_goes_as_the_agent_takes_it(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        sent = await agent.told(
            "",
            ImageBlock(media_type="image/png", data="aGk="),
            FileBlock(path="/a b.txt"),
            FileBlock(name="n.txt", media_type="text/plain", data="text"),
        )
        assert sent[1:] == [
            {"type": "image", "mimeType": "image/png", "data": "aGk="},
            {"type": "resource_link", "uri": "file:///a%20b.txt", "name": "a b.txt"},
            {"type": "resource", "resource": {"uri": "file:///n.txt", "text": "text", "mimeType": "text/plain"}},
        ]
        with pytest.raises(TrunklineError) as refused:
            await agent.send("x", ThinkingBlock(text="y"))
        assert refused.value.code == "bad_params"


async def test_lines_and_kinds_that_nobody_knows_are_kept_as_unknown(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        assert await agent.said("banner") == "printed"
        assert await agent.said("unheard") == "said"
        unknown = [one for one in agent.all(NativeMessage) if not one.known]
    assert [(one.kind, one.reason) for one in unknown] == [
        ("?", "not_json"),
        ("session/update/a_kind_of_next_year", "unknown_update"),
        ("own/notification", "unknown_notification"),
    ]


async def test_a_request_that_nobody_serves_is_refused_and_the_turn_goes_on(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        answer = await agent.told("request craft/drainMidTurnQueue")
    assert answer["error"]["code"] == -32601


# Asks


@pytest.mark.parametrize(
    ("decision", "outcome", "status"),
    [
        ({"behaviour": "allow"}, {"outcome": "selected", "optionId": "yes"}, "completed"),
        ({"behaviour": "allow", "option": "always"}, {"outcome": "selected", "optionId": "always"}, "completed"),
        ({"behaviour": "deny"}, {"outcome": "selected", "optionId": "no"}, "rejected"),
    ],
)
async def test_a_decision_chooses_an_option(
    tmp_path: Path, decision: dict[str, Any], outcome: dict[str, str], status: str
) -> None:
    async with running(tmp_path) as agent:
        await agent.send("ask ls")
        asked = await agent.wait(PermissionRequested)
        assert [(one.id, one.kind) for one in asked.options] == [
            ("yes", "allow_once"),
            ("always", "allow_always"),
            ("no", "reject_once"),
        ]
        assert asked.input == {"command": "ls"}
        with pytest.raises(TrunklineError) as refused:
            await agent.session.decide(
                asked.ask, AskDecided(ask=asked.ask, behaviour="allow", option="maybe", by="test")
            )
        assert refused.value.code == "bad_answer"
        await agent.session.decide(asked.ask, AskDecided(ask=asked.ask, by="test", **decision))
        await agent.wait(TurnCompleted)
        assert json.loads(join_text(agent.all(MessageAssistant)[-1].content)) == outcome
        assert [one.status for one in agent.all(ToolCompleted)] == [status]
        assert [(one.title, one.input) for one in agent.all(ToolStarted)] == [("Terminal", {"command": "ls"})]


async def test_a_form_is_answered_in_the_words_of_its_schema(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        await agent.send("question")
        asked = await agent.wait(QuestionAsked)
        (question,) = asked.questions
        assert (question.id, question.text) == ("colour", "Which?")
        assert [one.label for one in question.options] == ["Red", "Blue"]
        answers = {"colour": "Blue"}
        await agent.session.decide(
            asked.ask, AskDecided(ask=asked.ask, behaviour="answered", answers=answers, by="test")
        )
        await agent.wait(TurnCompleted)
        said = json.loads(join_text(agent.all(MessageAssistant)[-1].content))
    assert said == {"action": "accept", "content": {"colour": "Blue"}}


async def test_an_ask_that_the_agent_takes_back_is_withdrawn_and_answered_as_cancelled(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        answer = await agent.told("take-back")
        asked, withdrawn = agent.all(QuestionAsked), agent.all(AskWithdrawn)
    assert answer["error"]["code"] == -32800
    assert [(one.ask, one.why) for one in withdrawn] == [(asked[0].ask, "cancelled")]


# Taking up


@pytest.mark.parametrize("behaviour", ["", "load"])
async def test_a_session_is_taken_up_and_its_history_not_written_again(tmp_path: Path, behaviour: str) -> None:
    async with running(tmp_path, behaviour) as agent:
        await agent.turn("first")
        native = agent.all(SessionInitialized)[0].native_session
    async with running(tmp_path, behaviour, resume=native) as agent:
        assert await agent.said("second") == "second"
        assert agent.all(SessionInitialized)[0].native_session == native
        assert [join_text(one.content) for one in agent.all(MessageAssistant)] == ["second"]
        assert agent.all(ToolStarted, MessageUser) == []
        assert [one for one in agent.all(NativeMessage) if not one.known] == []
    pieces = [out for one in agent.natives for out in one.out if isinstance(out, Piece) and out.text]
    assert "".join(one.text for one in pieces) == "second"


async def test_a_copy_has_an_id_of_its_own_and_tells_nothing_again(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        await agent.turn("first")
        native = agent.all(SessionInitialized)[0].native_session
    async with running(tmp_path, resume=native, fork=True) as agent:
        assert await agent.said("second") == "second"
        assert agent.all(SessionInitialized)[0].native_session not in (native, None)
        assert [join_text(one.content) for one in agent.all(MessageAssistant)] == ["second"]


async def test_a_copy_of_an_agent_that_copies_only_what_it_has_loaded(tmp_path: Path) -> None:
    (tmp_path / "loading.toml").write_text('title = "L"\ncommand = ["acp_stand_in.py"]\nload_to_fork = true\n')
    source = {"TRUNKLINE_ACP_PROFILES": str(tmp_path), "TRUNKLINE_PROGRAM_ACP_LOADING": STAND_IN}
    async with running(tmp_path, "loaded", agent="loading", source=source) as agent:
        await agent.turn("first")
        native = agent.all(SessionInitialized)[0].native_session
    async with running(tmp_path, "loaded", agent="loading", source=source, resume=native, fork=True) as agent:
        assert (await agent.said("recall")).splitlines() == ["first", "recall"]
        assert native not in {one.native_session for one in agent.all(SessionInitialized)}
        assert len(agent.all(MessageAssistant)) == 1


async def test_a_session_that_the_agent_has_lost_says_so(tmp_path: Path) -> None:
    for behaviour in ("forgetful", ""):
        with pytest.raises(TrunklineError) as refused:
            async with running(tmp_path, behaviour, resume="native-gone"):
                pass
        assert refused.value.code == "history_lost"


@pytest.mark.parametrize(
    ("since", "waited"), [("2026-11-28T10:04:59.900000Z", 0.0), ("2026-11-28T10:05:00Z", 19.5), (None, 19.5)]
)
async def test_a_history_is_loaded_when_the_minute_of_its_beginning_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, since: str | None, waited: float
) -> None:
    now = dt.datetime(2026, 11, 28, 10, 5, 40, 500_000, tzinfo=dt.UTC)
    assert until_loadable(since, now) == waited
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    (profiles / "stand-in.toml").write_text('command = ["none"]\nload_later = true\n')
    source = {**STAND_IN_PROFILE, "TRUNKLINE_ACP_PROFILES": str(profiles)}
    async with running(tmp_path, "load", agent="stand-in", source=source) as agent:
        await agent.turn("first")
        native = agent.all(SessionInitialized)[0].native_session
    asked: list[str | None] = []

    def at_once(since: str | None, _: dt.datetime) -> float:
        asked.append(since)
        return 0.0

    monkeypatch.setattr(session, "until_loadable", at_once)
    async with running(tmp_path, "load", agent="stand-in", source=source, resume=native, since=since) as agent:
        assert await agent.said("second") == "second"
    assert asked == [since]


# Death


async def test_an_agent_that_dies_before_it_says_a_word_had_begun_its_turn(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        await agent.send("vanish 3", command="cmd_1")
        (started,) = [await agent.wait(TurnStarted)]
        end = await agent.session.close()
    assert end.code == 3
    (fact,) = agent.facts(TurnStarted)
    assert (started.trigger, fact.cause) == ("prompt", "cmd_1")
    (begun,) = [native for native in agent.natives if fact in native.out]
    assert (begun.ours, begun.raw, begun.kind) == (True, b"", "session/prompt")
    assert agent.all(TurnCompleted) == []  # how it ends is for who settles the agent's end


async def test_a_turn_begins_when_its_prompt_goes_out(tmp_path: Path) -> None:
    """Not before the turn ahead of it is over, and before anything that the agent says in it."""
    async with running(tmp_path) as agent:
        await agent.send("first", command="cmd_1")
        await agent.send("second", command="cmd_2")
        await agent.wait(TurnCompleted, 2)
    told = [(type(fact.data), fact.cause) for fact in agent.facts(TurnStarted, MessageAssistant, TurnCompleted)]
    assert told == [
        (TurnStarted, "cmd_1"),
        (MessageAssistant, None),
        (TurnCompleted, None),
        (TurnStarted, "cmd_2"),
        (MessageAssistant, None),
        (TurnCompleted, None),
    ]


# Other verbs


async def test_verbs_reach_the_agent(tmp_path: Path) -> None:
    async with running(tmp_path) as agent:
        await agent.session.set_mode("ask")
        await agent.session.set_model("large")
        await agent.session.set_thinking("low")
        assert await agent.told("options") == {"mode": "ask", "model": "large", "effort": "low"}
        listed = await agent.session.native("session/list", {})
        assert listed["sessions"][0]["cwd"] == str(tmp_path / "work")
        await agent.session.run_command("help", "me", "cmd_9")
        await agent.wait(TurnCompleted, 2)
        await agent.session.compact(None, "cmd_10")
        await agent.wait(TurnCompleted, 3)
        assert [fact.cause for fact in agent.facts(TurnStarted)] == ["cmd_1", "cmd_9", "cmd_10"]
        said = [join_text(one.content) for one in agent.all(MessageAssistant)]
        assert said[1:] == ["/help me", "/compact"]
        for wrong in (agent.session.set_mode("sideways"), agent.session.run_command("sing", "", "cmd_11")):
            with pytest.raises(TrunklineError, match="there are") as refused:
                await wrong
            assert refused.value.code == "bad_params"


async def test_mcp_servers_go_in_the_protocols_words(tmp_path: Path) -> None:
    servers = {
        "db": {"command": "/bin/db", "args": ["-v"], "env": {"PASSWORD": "hunter2"}},
        "web": {"url": "https://127.0.0.1/mcp", "headers": {"A": "b"}},
    }
    async with running(tmp_path, mcp_servers=servers) as agent:
        assert await agent.said("hello") == "hello"
    wrong = {"old": {"url": "https://127.0.0.1/sse", "type": "sse"}}
    with pytest.raises(TrunklineError, match="sse") as refused:
        async with running(tmp_path, mcp_servers=wrong):
            pass
    assert (refused.value.code, refused.value.details["capability"]) == ("unsupported", "mcp")
