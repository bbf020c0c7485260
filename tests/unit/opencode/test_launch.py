"""How a server is reached and a session begun, and decisions and choices in OpenCode's words."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.unit.opencode.recorded import new_translator

from trunkline_adapters.opencode import launch, replies
from trunkline_adapters.opencode.choices import Choices
from trunkline_adapters.opencode.content import COMMAND, block_of, native_parts
from trunkline_adapters.opencode.errors import error_info, refusal
from trunkline_adapters.opencode.profiles import PROFILES
from trunkline_adapters.opencode.state import Ask
from trunkline_adapters.opencode.translate_session import learned
from trunkline_agentkit import AgentProcess, HttpResponse, Start
from trunkline_wire import TrunklineError
from trunkline_wire.asks import AskDecided
from trunkline_wire.blocks import Block, FileBlock, ImageBlock, TextBlock
from trunkline_wire.session import SessionOptions, Thinking

KIMONO = {"id": "kimono", "providerID": "silk", "variants": {"low": {}, "high": {}, "max": {}}}
CATALOGUE = {
    "providers": [
        {"id": "silk", "name": "Silk", "models": {"kimono": KIMONO, "obi": {"id": "obi"}}},
        {"id": "wool", "name": "Wool", "models": {"obi": {"id": "obi"}}},
    ],
    "default": {"silk": "kimono", "wool": "obi"},
}
AGENTS = [
    {"name": "build", "mode": "primary"},
    {"name": "explore", "mode": "subagent"},
    {"name": "plan", "mode": "all"},
]


async def _never(*args: Any, **fields: Any) -> AgentProcess:
    raise AssertionError(f"nothing is started here: {args}, {fields}")


def _start(**options: Any) -> Start:
    return Start(
        session="ses_" + "0" * 32,
        cwd="/project",
        incarnation="first",
        environment={"TMPDIR": "/tmp/session", "OPENCODE_SERVER_PASSWORD": "of a user"},
        launch=_never,
        options=SessionOptions(**options),
    )


def test_the_password_is_in_the_servers_environment_under_its_profiles_name() -> None:
    found = launch.environment(
        _start(), PROFILES.get("kilo", {}), "s3cret", {"KILO_X": "1", "OPENCODE_X": "2", "OTHER": "3"}
    )
    assert found == {
        "TMPDIR": "/tmp/session",
        "OPENCODE_SERVER_PASSWORD": "of a user",
        "KILO_X": "1",
        "KILO_DISABLE_AUTOUPDATE": "1",
        "KILO_SERVER_PASSWORD": "s3cret",
        "KILO_SERVER_USERNAME": "kilo",
    }
    assert (
        launch.environment(_start(), PROFILES.get("opencode", {}), "s3cret", {})["OPENCODE_SERVER_PASSWORD"] == "s3cret"
    )


@pytest.mark.parametrize(
    ("url", "secret", "fits"),
    [
        ("http://127.0.0.1:4096", True, True),
        ("http://localhost:4096", True, True),
        ("http://[::1]:4096", True, True),
        ("https://agents.example", True, True),
        ("http://agents.example", False, True),
        ("http://agents.example", True, False),
        ("http://10.0.0.1:4096", True, False),
        ("http://me:word@127.0.0.1", False, False),
        ("http://127.0.0.1?auth_token=x", False, False),
        ("ws://127.0.0.1", False, False),
        ("http://[::1", False, False),
        ("4096", False, False),
    ],
)
def test_an_address_is_one_that_keeps_a_secret(url: str, secret: bool, fits: bool) -> None:
    if fits:
        launch.check_address(url, secret=secret)
        return
    with pytest.raises(TrunklineError) as refused:
        launch.check_address(url, secret=secret)
    assert refused.value.code == "bad_params"
    assert "word" not in refused.value.message.split("password")[0]


def test_a_password_file_holds_one_password(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("s3cret\n")
    assert launch.read_password(str(file)) == "s3cret"
    for content in ("", "\n", "one\ntwo\n"):
        file.write_text(content)
        with pytest.raises(TrunklineError, match="must hold one password") as refused:
            launch.read_password(str(file))
        assert refused.value.code == "bad_settings"
    with pytest.raises(TrunklineError, match="create it"):
        launch.read_password(str(tmp_path / "nowhere"))


def test_native_options_are_known_and_of_their_type() -> None:
    launch.check(SessionOptions(native={"server": "http://127.0.0.1", "attempts": 2}))
    with pytest.raises(TrunklineError) as refused:
        launch.check(SessionOptions(native={"colour": "red"}))
    assert (refused.value.code, refused.value.details["options"]) == ("unsupported", ["colour"])
    for wrong in ({"server": 1}, {"attempts": True}, {"attempts": "2"}):
        with pytest.raises(TrunklineError, match=r"must be of type") as refused:
            launch.check(SessionOptions(native=dict(wrong)))
        assert refused.value.code == "bad_params"


def test_what_a_session_is_begun_with() -> None:
    assert launch.session_body(_start()) == {}
    assert launch.session_body(_start(disallowed_tools=["bash"])) == {
        "permission": [{"permission": "bash", "pattern": "*", "action": "deny"}]
    }
    options = SessionOptions(append_system_prompt="be brief", output_schema={"type": "object"})
    assert launch.prompt_body(options, [{"type": "text", "text": "hi"}]) == {
        "parts": [{"type": "text", "text": "hi"}],
        "system": "be brief",
        "format": {"type": "json_schema", "schema": {"type": "object"}},
    }


@pytest.mark.parametrize(
    ("given", "config"),
    [
        (
            {"command": "db", "args": ["--ro", 1], "env": {"N": 1}},
            {"type": "local", "command": ["db", "--ro", "1"], "environment": {"N": "1"}},
        ),
        ({"command": ["db", "--ro"]}, {"type": "local", "command": ["db", "--ro"], "environment": {}}),
        (
            {"url": "https://db.example", "headers": {"A": "b"}},
            {"type": "remote", "url": "https://db.example", "headers": {"A": "b"}},
        ),
    ],
)
def test_mcp_servers(given: Any, config: Any) -> None:
    assert launch.mcp_body("db", given) == {"name": "db", "config": config}


def test_an_mcp_server_without_an_address_is_refused() -> None:
    with pytest.raises(TrunklineError, match="neither a command nor a URL") as refused:
        launch.mcp_body("db", {"args": ["x"]})
    assert refused.value.code == "bad_params"


def test_what_shows_keys_is_shown_without_them() -> None:
    body = {
        "provider": {"silk": {"options": {"apiKey": "k1", "baseURL": "http://x", "headers": {"Authorization": "k2"}}}},
        "mcp": {"db": {"environment": {"DB_PASSWORD": "k3", "TOKEN": "k4", "LIMIT": "5"}}},
        "limit": {"tokens": "7"},
        "keys": ["k5"],
    }
    shown = launch.shown("GET /config", body)
    assert str(shown).count("[redacted]") == 5
    assert "k1" not in str(shown)
    assert shown["provider"]["silk"]["options"]["baseURL"] == "http://x"
    assert shown["limit"] == {"tokens": "7"}
    assert launch.shown("GET /session", body) is body


def _choices() -> Choices:
    translator = new_translator()
    for request, body in (("GET /config/providers", CATALOGUE), ("GET /agent", AGENTS)):
        assert learned(translator.state, request, body)
    return Choices(translator, PROFILES.get("opencode", {}))


def test_models_are_named_with_their_provider_or_alone_where_one_has_them() -> None:
    choices = _choices()
    choices.choose_model("kimono")
    assert choices.of_prompt() == {"agent": "build", "model": {"providerID": "silk", "modelID": "kimono"}}
    choices.choose_model("wool/obi")
    assert choices.of_prompt()["model"] == {"providerID": "wool", "modelID": "obi"}
    for wrong in ("obi", "silk/linen", ""):
        with pytest.raises(TrunklineError, match="silk/kimono") as refused:
            choices.choose_model(wrong)
        assert refused.value.code == "bad_params"
    assert choices.model == "wool/obi"


def test_agents_are_modes_but_for_sub_agents() -> None:
    choices = _choices()
    choices.choose_mode("plan")
    assert choices.of_prompt()["agent"] == "plan"
    with pytest.raises(TrunklineError, match="there are: build, plan"):
        choices.choose_mode("explore")


@pytest.mark.parametrize(("level", "word"), [("low", "low"), ("high", "high"), ("max", "max"), ("off", "low")])
def test_levels_of_thinking_are_the_models_variants(level: Thinking, word: str) -> None:
    choices = _choices()
    choices.choose_model("silk/kimono")
    choices.choose_thinking(level)
    assert choices.of_prompt()["variant"] == word


def test_a_model_without_a_level_says_which_it_has() -> None:
    choices = _choices()
    choices.choose_model("silk/kimono")
    with pytest.raises(TrunklineError, match="it has: high, low, max"):
        choices.choose_thinking("medium")
    choices.choose_model("silk/obi")
    with pytest.raises(TrunklineError, match="it has none"):
        choices.choose_thinking("low")


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (TextBlock(text="hi"), {"type": "text", "text": "hi", "metadata": {COMMAND: "cmd_1"}}),
        (
            ImageBlock(media_type="image/png", data="aGk="),
            {"type": "file", "mime": "image/png", "url": "data:image/png;base64,aGk="},
        ),
        (
            ImageBlock(media_type="image/png", url="https://x/y.png"),
            {"type": "file", "mime": "image/png", "url": "https://x/y.png"},
        ),
        (
            FileBlock(path="/a/b.py", media_type=None),
            {"type": "file", "mime": "text/x-python", "url": "file:///a/b.py", "filename": "/a/b.py"},
        ),
        (
            FileBlock(name="a.pdf", media_type="application/pdf", data="aGk="),
            {"type": "file", "mime": "application/pdf", "url": "data:application/pdf;base64,aGk=", "filename": "a.pdf"},
        ),
    ],
)
def test_what_is_sent_comes_back_as_it_was(block: Block, part: Any) -> None:
    assert native_parts([block], "cmd_1") == [part]
    if not isinstance(block, FileBlock) or block.data is not None:
        assert block_of(part) == block


def _question(*names: str) -> Ask:
    request = {"questions": [{"question": name} for name in names]}
    return Ask(ask="ask_1", key="que_1", kind="question", session="s", request=request)


def test_a_question_is_answered_in_the_order_that_it_was_asked_in() -> None:
    decided = AskDecided(ask="ask_1", by="me", behaviour="answered", answers={"B": ["x", "y"], "A": "z"})
    assert replies.answer(_question("A", "B", "C"), decided) == (
        "/question/que_1/reply",
        {"answers": [["z"], ["x", "y"], []]},
    )
    denied = AskDecided(ask="ask_1", by="me", behaviour="deny")
    assert replies.answer(_question("A"), denied) == ("/question/que_1/reject", None)
    with pytest.raises(TrunklineError) as refused:
        replies.answer(_question("A"), AskDecided(ask="ask_1", by="me", behaviour="allow"))
    assert refused.value.code == "bad_answer"


@pytest.mark.parametrize(
    ("status", "body", "request_line", "code"),
    [
        (401, "", "GET /session", "agent_auth"),
        (404, {"_tag": "PermissionNotFoundError"}, "POST /permission/p/reply", "unknown_ask"),
        (404, {"name": "NotFoundError", "data": {"message": "no"}}, "GET /session/s", "history_lost"),
        (404, {}, "GET /nothing", "bad_params"),
        (400, {"name": "BadRequest", "data": {"message": "no"}}, "POST /session", "bad_params"),
        (409, {}, "DELETE /session/s/message/m", "stale_target"),
        (500, "<html>", "GET /session", "agent_failed"),
    ],
)
def test_refusals_have_codes(status: int, body: Any, request_line: str, code: str) -> None:
    assert refusal(request_line, HttpResponse(status=status, body=body)).code == code


def test_errors_of_messages_say_what_to_do() -> None:
    auth = error_info(
        {"name": "ProviderAuthError", "data": {"message": "no key.", "providerID": "silk"}}, "kilo auth login"
    )
    assert (auth.code, auth.message) == ("agent_auth", "no key (sign in with `kilo auth login`)")
    full = error_info({"name": "ContextOverflowError", "data": {"message": "too long"}})
    assert (full.code, "compact it" in full.message) == ("agent_failed", True)
    assert error_info({}).message == "OpenCode reports an error without a reason"


def test_the_terminal_takes_the_session_up_with_the_model_and_the_agent_that_were_chosen() -> None:
    taken_up = msgspec.structs.replace(_start(model="silk/kimono", mode="plan"), native_session="ses_1")
    words = ["--session", "ses_1", "--model", "silk/kimono", "--agent", "plan"]
    assert launch.terminal_arguments(taken_up, PROFILES.get("kilo", {})) == words


@pytest.mark.parametrize(
    ("options", "named"),
    [({"native": {"server": "http://127.0.0.1:1"}}, "`attach`"), ({"mcp_servers": {"db": {}}}, "MCP servers")],
)
def test_what_the_terminal_can_t_be_given_is_said(options: dict[str, Any], named: str) -> None:
    with pytest.raises(TrunklineError, match=named) as raised:
        launch.terminal_arguments(_start(**options), PROFILES.get("opencode", {}))
    assert (raised.value.code, raised.value.details["capability"]) == ("unsupported", "terminal")


def test_a_program_without_a_known_terminal_has_none() -> None:
    unknown = msgspec.structs.replace(PROFILES.get("opencode", {}), terminal="")
    with pytest.raises(TrunklineError, match="no terminal"):
        launch.terminal_arguments(_start(), unknown)
