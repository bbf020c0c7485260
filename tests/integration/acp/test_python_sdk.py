"""The official Python SDK's client drives the running product: alone, beside other editors and beside browsers."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import acp
import pytest
from acp.exceptions import RequestError
from tests.integration.acp.editor import Editor, deny, editor
from tests.integration.supervisor.running import Up

from trunkline_testkit.product import Client

ACP = [sys.executable, "-m", "trunkline_cli", "acp"]
DEMO = [*ACP, "--agent", "demo"]


async def begin(one: Editor, project: Path) -> str:
    return (await one.connection.new_session(cwd=str(project), mcp_servers=[])).session_id


async def test_a_conversation(up: Up, tmp_path: Path) -> None:
    async with editor(DEMO, up.environment) as one:
        session = await begin(one, tmp_path)
        assert session.startswith("ses_")
        ended = await one.prompt(session, "slow 30")
        assert (ended.stop_reason, ended.usage.input_tokens, ended.usage.output_tokens) == ("end_turn", 10, 7)
        pieces = one.of("agent_message_chunk", session)
        assert len(pieces) >= 3
        assert "".join(one.content.text for one in pieces) == " ".join(f"word{n}" for n in range(30))
        assert len({piece.message_id for piece in pieces}) == 1

        await one.prompt(session, "ask ls")
        (call,) = one.of("tool_call")
        assert (call.title, call.kind, call.raw_input) == ("run: ls", "execute", {"command": "ls"})
        ((asked, _),) = one.asked
        assert asked.tool_call_id == call.tool_call_id
        last = one.of("tool_call_update")[-1]
        assert (last.status, last.content[0].content.text) == ("completed", "```console\nran: ls\n```")

        one.choose = deny
        await one.prompt(session, "ask rm")
        assert one.of("tool_call_update")[-1].status == "failed"

        one.form_content = {"Go on?": "yes"}
        await one.prompt(session, "question Go on?")
        assert one.said().endswith('You answered: {"Go on?": "yes"}')
        assert one.of("user_message_chunk") == []  # its own prompts the editor shows by itself


async def test_an_editor_without_forms_answers_a_question_by_a_choice(up: Up, tmp_path: Path) -> None:
    async with editor(DEMO, up.environment, forms=False) as one:
        session = await begin(one, tmp_path)
        await one.prompt(session, "question Go on?")
        ((call, options),) = one.asked
        assert (call.title, [option.name for option in options]) == ("Go on?", ["yes", "no", "Don't answer"])
        assert one.said() == 'You answered: {"Go on?": "yes"}'


async def test_modes_and_models(up: Up, tmp_path: Path) -> None:
    async with editor([*DEMO, "--mode", "free"], up.environment) as one:
        session = await begin(one, tmp_path)
        await one.prompt(session, "ask ls")
        assert one.asked == []
        options = {option.id: option for option in one.of("config_option_update")[-1].config_options}
        assert {name: option.category for name, option in options.items()} == {"mode": "mode", "model": "model"}
        assert options["mode"].current_value == "free"

        changed = await one.connection.set_config_option(session_id=session, config_id="model", value="demo-large")
        assert [option.current_value for option in changed.config_options] == ["free", "demo-large"]
        await one.connection.set_session_mode(session_id=session, mode_id="ask")
        await one.until(lambda: [u.current_mode_id for u in one.of("current_mode_update")][-1:] == ["ask"])
        await one.prompt(session, "ask ls")
        assert len(one.asked) == 1
        # The next session can be set before its agent has started.
        new = await one.connection.new_session(cwd=str(tmp_path), mcp_servers=[])
        assert [option.id for option in new.config_options] == ["mode", "model"]
        changed = await one.connection.set_config_option(
            session_id=new.session_id, config_id="model", value="demo-large"
        )
        assert changed.config_options[1].current_value == "demo-large"
        await one.prompt(new.session_id, "say hello")
        told = one.of("config_option_update", new.session_id)[-1].config_options
        assert [option.current_value for option in told] == ["free", "demo-large"]
        with pytest.raises(RequestError) as refused:
            await one.connection.set_config_option(session_id=session, config_id="colour", value="red")
        assert refused.value.code == -32602


async def test_a_turn_that_fails_is_an_error_and_the_session_goes_on(up: Up, tmp_path: Path) -> None:
    async with editor(DEMO, up.environment) as one:
        session = await begin(one, tmp_path)
        with pytest.raises(RequestError, match="out of paper"):
            await one.prompt(session, "fail out of paper")
        assert (await one.prompt(session, "say hello")).stop_reason == "end_turn"
        with pytest.raises(RequestError) as refused:
            await one.prompt("ses_" + "0" * 32, "say hello")
        assert refused.value.code == -32002
        with pytest.raises(RequestError) as refused:
            await one.connection.new_session(cwd="/does/not/exist", mcp_servers=[])
        assert (refused.value.code, (refused.value.data or {})["code"]) == (-32602, "bad_directory")


async def test_cancel_ends_the_turn_also_while_it_asks(up: Up, tmp_path: Path) -> None:
    async with editor(DEMO, up.environment, None) as one:
        session = await begin(one, tmp_path)
        running = asyncio.create_task(one.prompt(session, "slow 2000"))
        await one.until(lambda: bool(one.said()))
        await one.connection.cancel(session_id=session)
        assert (await running).stop_reason == "cancelled"

        asking = asyncio.create_task(one.prompt(session, "ask ls"))
        await one.until(lambda: bool(one.asked))
        await one.connection.cancel(session_id=session)
        assert (await asking).stop_reason == "cancelled"
        assert one.of("tool_call_update")[-1].status == "failed"
        one.release.set()  # its late answer
        assert (await one.prompt(session, "say on")).stop_reason == "end_turn"


async def test_a_dialog_that_the_editor_calls_off_ends_the_turn(up: Up, tmp_path: Path) -> None:
    async with editor(DEMO, up.environment, lambda _: None) as one:
        session = await begin(one, tmp_path)
        assert (await one.prompt(session, "ask ls")).stop_reason == "cancelled"


async def test_what_is_decided_in_a_browser_ends_the_editors_dialog(up: Up, browser: Client, tmp_path: Path) -> None:
    async with editor(DEMO, up.environment, None) as one:
        session = await begin(one, tmp_path)
        asking = asyncio.create_task(one.prompt(session, "ask ls; say done"))
        await one.until(lambda: bool(one.asked))
        (ask,) = (await browser.call("ask.list", session=session))["asks"]
        await browser.call("ask.answer", ask=ask["ask"], behaviour="allow")
        assert (await asking).stop_reason == "end_turn"
        assert one.said().endswith("done")
        one.release.set()  # the editor's late answer, to a question that has its end
        assert (await one.prompt(session, "say on")).stop_reason == "end_turn"
        decided = (await browser.call("ask.list", session=session, status="decided"))["asks"]
        assert [one["ask"] for one in decided] == [ask["ask"]]


async def test_several_editors_and_a_browser_on_one_session(up: Up, browser: Client, tmp_path: Path) -> None:
    async with editor(DEMO, up.environment) as first:
        session = await begin(first, tmp_path)
        await first.prompt(session, "say one")
        async with editor([*ACP, "--session", session], up.environment) as second:
            assert await begin(second, tmp_path) == session
            await second.until(lambda: second.said() == "one")
            assert [u.content.text for u in second.of("user_message_chunk")] == ["say one"]

            await second.prompt(session, "say two")
            await first.until(lambda: first.said() == "onetwo")
            assert [u.content.text for u in first.of("user_message_chunk")] == ["say two"]

            await browser.call("session.prompt", session=session, text="say three")
            for each in (first, second):
                await each.until(lambda each=each: each.said() == "onetwothree")
                assert [u.content.text for u in each.of("user_message_chunk")][-1] == "say three"
            with pytest.raises(RequestError) as refused:
                await second.connection.load_session(cwd=str(tmp_path), session_id="ses_" + "0" * 32, mcp_servers=[])
            assert refused.value.code == -32002


async def test_a_session_is_listed_loaded_resumed_and_let_go(up: Up, browser: Client, tmp_path: Path) -> None:
    async with editor(DEMO, up.environment) as one:
        session = await begin(one, tmp_path)
        await one.prompt(session, "say hello; ask ls")
    # The editor is gone, the session goes on.
    await browser.call("session.prompt", session=session, text="ask rm")
    await eventually_asked(browser, session)

    async with editor(ACP, up.environment, None) as again:
        listed = (await again.connection.list_sessions(cwd=str(tmp_path))).sessions
        assert [(info.cwd, info.title) for info in listed if info.session_id == session] == [
            (str(tmp_path), "say hello; ask ls")
        ]
        assert (await again.connection.list_sessions(cwd="/elsewhere")).sessions == []

        loaded = await again.connection.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
        # All that is past was told before the answer, in order.
        assert [update.session_update for _, update in again.updates[:5]] == [
            "user_message_chunk",
            "agent_message_chunk",
            "tool_call",
            "tool_call_update",
            "user_message_chunk",
        ]
        assert again.said() == "hello"
        assert loaded.modes.current_mode_id == "ask"
        assert [option.id for option in loaded.config_options] == ["mode", "model"]
        # What is open is asked, and what had its end is not.
        await again.until(lambda: bool(again.asked))
        assert [call.title for call, _ in again.asked] == ["run: rm"]
        again.release.set()
        await again.until(lambda: again.of("tool_call_update")[-1].status == "completed")

        told = len(again.updates)
        resumed = await again.connection.resume_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
        assert resumed.modes.current_mode_id == "ask"
        await again.prompt(session, "say more")
        assert [u.content.text for _, u in again.updates[told:] if u.session_update == "agent_message_chunk"] == [
            "more"
        ]
        assert [u for _, u in again.updates[told:] if u.session_update == "user_message_chunk"] == []

        await again.connection.close_session(session_id=session)
        with pytest.raises(RequestError):
            await again.prompt(session, "say again")
    state = (await browser.call("session.get", session=session))["state"]
    assert state["closed"] is None

    await browser.call("session.close", session=session, wait=True)
    async with editor(ACP, up.environment) as last:
        await last.connection.load_session(cwd=str(tmp_path), session_id=session, mcp_servers=[])
        assert last.said() == "hellomore"
        assert (await last.prompt(session, "history")).stop_reason == "end_turn"  # a prompt opens it again
        assert last.said() == "hellomoreprompts:4"


async def eventually_asked(browser: Client, session: str) -> None:
    async with asyncio.timeout(30):
        while not (await browser.call("ask.list", session=session))["asks"]:  # noqa: ASYNC110  # the gateway says it
            await asyncio.sleep(0.05)


async def test_nothing_is_lost_or_doubled_over_a_restart_of_the_gateway(up: Up, tmp_path: Path) -> None:
    async with editor(DEMO, up.environment, None) as one:
        session = await begin(one, tmp_path)
        running = asyncio.create_task(one.prompt(session, "slow 60; ask ls; slow 5"))
        await one.until(lambda: len(one.said().split()) > 5)
        os.kill(up.state["children"]["gateway"]["pid"], signal.SIGKILL)
        await one.until(lambda: bool(one.asked))
        os.kill(up.state["children"]["gateway"]["pid"], signal.SIGKILL)
        one.release.set()
        assert (await running).stop_reason == "end_turn"
        assert one.said() == "".join(" ".join(f"word{n}" for n in range(count)) for count in (60, 5))
        assert len(one.asked) == 1
        assert [u.session_update for _, u in one.updates].count("tool_call") == 1
        assert one.of("user_message_chunk") == []


async def test_images_and_resources_reach_the_session(up: Up, browser: Client, tmp_path: Path) -> None:
    async with editor(DEMO, up.environment) as one:
        session = await begin(one, tmp_path)
        await browser.subscribe(session, start="start")
        blocks: list[Any] = [
            acp.text_block("say seen"),
            acp.image_block("aGk=", "image/png"),
            acp.resource_link_block("a.py", "file:///work/a.py"),
        ]
        await one.connection.prompt(session_id=session, prompt=blocks)
        said = await browser.wait("message.user")
        assert said["data"]["content"] == [
            {"type": "text", "text": "say seen"},
            {"type": "image", "media_type": "image/png", "data": "aGk="},
            {"type": "resource", "uri": "file:///work/a.py", "name": "a.py"},
        ]


async def test_where_nothing_runs_it_says_so(up: Up) -> None:
    environment = up.environment | {"TRUNKLINE_HOME": str(up.home / "none")}
    process = await asyncio.create_subprocess_exec(
        *ACP,
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, out) == (1, b"")
    assert b"not_running" in err
    assert b"trunkline up" in err


async def test_only_the_protocol_goes_to_the_standard_output(up: Up) -> None:
    process = await asyncio.create_subprocess_exec(
        *DEMO, "--log-level", "debug", env=up.environment, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await asyncio.wait_for(process.communicate(b"what?\n"), 30)
    assert process.returncode == 0
    assert [line[:20] for line in out.splitlines()] == [b'{"error":{"code":-32']
    assert b"not_understood" in err


async def test_two_editors_at_once_bring_it_up(up: Up, tmp_path: Path) -> None:
    environment = up.environment | {"TRUNKLINE_HOME": str(up.home / "second")}
    flags = ["--up", "--agent", "demo"]
    async with (
        editor([*ACP, *flags], environment) as first,
        editor([*ACP, *flags], environment) as second,
    ):
        try:
            for each in (first, second):
                session = await begin(each, tmp_path)
                assert (await each.prompt(session, "say hello")).stop_reason == "end_turn"
            listed = (await first.connection.list_sessions()).sessions
            assert len(listed) == 2
        finally:
            process = await asyncio.create_subprocess_exec(*ACP[:-1], "daemon", "stop", env=environment)
            await process.wait()
