"""What a session is begun with, and the words for modes and thinking."""

from typing import Any

import pytest

from trunkline_adapters.codex import exec_launch, launch, modes
from trunkline_adapters.codex.content import native_content
from trunkline_adapters.codex.history import turn_of
from trunkline_agentkit import AgentProcess, Start
from trunkline_wire import TrunklineError
from trunkline_wire.blocks import Block, DiffBlock, FileBlock, ImageBlock, TextBlock, ThinkingBlock
from trunkline_wire.session import SessionOptions, Thinking


async def _never(*args: Any, **fields: Any) -> AgentProcess:
    raise AssertionError(f"nothing is started here: {args}, {fields}")


def start(thread: str | None = None, *, fork: bool = False, **options: Any) -> Start:
    return Start(
        session="ses_" + "0" * 32,
        cwd="/project",
        incarnation="first",
        environment={"TMPDIR": "/tmp/session"},
        launch=_never,
        options=SessionOptions(**options),
        native_session=thread,
        fork=fork,
    )


def test_options_become_parameters_of_the_thread() -> None:
    method, params = launch.thread(
        start(
            model="m",
            mode="read-only",
            system_prompt="be good",
            append_system_prompt="and brief",
            mcp_servers={"db": {"command": "db"}},
            native={"config": {"web_search": "live"}, "dynamic_tools": [{"name": "t"}]},
        )
    )
    assert method == "thread/start"
    assert params == {
        "cwd": "/project",
        "model": "m",
        "approvalPolicy": "on-request",
        "sandbox": "read-only",
        "baseInstructions": "be good",
        "developerInstructions": "and brief",
        "config": {"web_search": "live", "mcp_servers": {"db": {"command": "db"}}},
        "dynamicTools": [{"name": "t"}],
    }


def test_a_thread_is_taken_up_or_forked_without_its_turns() -> None:
    kept = {"cwd": "/project", "threadId": "t", "excludeTurns": True}
    assert launch.thread(start("t")) == ("thread/resume", kept)
    assert launch.thread(start("t", fork=True), "turn-9") == ("thread/fork", kept | {"beforeTurnId": "turn-9"})


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        ({"approvalPolicy": "on-request", "sandbox": {"type": "workspaceWrite"}}, "auto"),
        ({"approvalPolicy": "never", "sandboxPolicy": {"type": "dangerFullAccess"}}, "full-access"),
        ({"approvalPolicy": "untrusted", "sandboxPolicy": {"type": "readOnly"}}, "untrusted/read-only"),
        ({"approvalPolicy": {"granular": {}}, "sandboxPolicy": {"type": "readOnly"}}, "granular/read-only"),
        ({"collaborationMode": {"mode": "plan"}}, "plan"),
        ({}, None),
    ],
)
def test_policies_are_named_as_a_mode(settings: dict[str, Any], mode: str | None) -> None:
    assert modes.mode_of(settings) == mode


def test_a_pair_of_policies_that_has_a_name_goes_by_it() -> None:
    names = [modes.name_of(mode) for mode in ("on-request/workspace-write", "auto", "untrusted/read-only", "plan")]
    assert names == ["auto", "auto", "untrusted/read-only", "plan"]


def test_leaving_the_plan_mode_takes_its_instructions_away() -> None:
    changed = modes.settings("auto", current="plan", model="m", effort="low")
    own = {"model": "m", "reasoning_effort": "low", "developer_instructions": None}
    assert changed["collaborationMode"] == {"mode": "default", "settings": own}
    assert "collaborationMode" not in modes.settings("auto", current="read-only", model="m", effort=None)


def test_what_the_sandbox_allows_besides_is_kept_by_a_change_of_mode() -> None:
    """`thread/settings/update` takes nothing of it from config.toml: seen with 0.171.0, where the network was shut off."""
    config = {"sandbox_workspace_write": {"network_access": True, "writable_roots": ["/a"], "exclude_slash_tmp": None}}
    own = {
        "sandbox_workspace_write": {"writable_roots": ["/b"]},
        "sandbox_workspace_write.exclude_tmpdir_env_var": True,
    }
    workspace = modes.configured_workspace(config, own)
    assert workspace == {"networkAccess": True, "writableRoots": ["/b"], "excludeTmpdirEnvVar": True}
    changed = modes.settings("auto", current="read-only", model="m", effort=None, workspace=workspace)
    assert changed["sandboxPolicy"] == workspace | {"type": "workspaceWrite"}
    changed = modes.settings("read-only", current="auto", model="m", effort=None, workspace=workspace)
    assert changed["sandboxPolicy"] == {"type": "readOnly"}


@pytest.mark.parametrize(
    ("level", "offered", "word"),
    [
        ("max", ["low", "high", "xhigh"], "xhigh"),
        ("max", ["low", "ultra"], "ultra"),
        ("off", ["minimal", "low"], "minimal"),
        ("off", [], "none"),
        ("medium", ["low", "high"], "low"),
    ],
)
def test_thinking_in_the_models_words(level: Thinking, offered: list[str], word: str) -> None:
    assert launch.effort(level, offered) == word


@pytest.mark.parametrize("mode", ["sideways", "untrusted/", "never/nowhere"])
def test_an_unknown_mode_names_those_there_are(mode: str) -> None:
    with pytest.raises(TrunklineError, match="full-access") as error:
        launch.check(SessionOptions(mode=mode))
    assert error.value.code == "bad_params"


def test_arguments_of_a_run() -> None:
    argv = exec_launch.arguments(start(model="m", mode="full-access", output_schema={"type": "object"}), "thread-1")
    assert argv == [
        "exec",
        "resume",
        "thread-1",
        "--json",
        "--skip-git-repo-check",
        "--model",
        "m",
        "--config",
        'sandbox_mode="danger-full-access"',
        "--output-schema",
        "/tmp/session/output-schema.json",
        "-",
    ]


@pytest.mark.parametrize(
    ("block", "native"),
    [
        (TextBlock(text="hi"), {"type": "text", "text": "hi", "text_elements": []}),
        (
            ImageBlock(media_type="image/png", data="QUJD"),
            {"type": "image", "url": "data:image/png;base64,QUJD"},
        ),
        (ImageBlock(media_type="image/png", url="https://x/y.png"), {"type": "image", "url": "https://x/y.png"}),
        (FileBlock(path="/a/b.png", media_type="image/png"), {"type": "localImage", "path": "/a/b.png"}),
        (FileBlock(path="/a/b.py"), {"type": "mention", "name": "b.py", "path": "/a/b.py"}),
        (DiffBlock(path="a", unified="+x"), {"type": "text", "text": "```diff\n+x\n```", "text_elements": []}),
    ],
)
def test_a_prompts_blocks_as_input(block: Block, native: dict[str, Any]) -> None:
    assert native_content([block]) == [native]


@pytest.mark.parametrize("block", [ThinkingBlock(text="x"), FileBlock(media_type="application/pdf", data="x")])
def test_what_can_not_be_sent_is_refused(block: Block) -> None:
    with pytest.raises(TrunklineError) as error:
        native_content([block])
    assert error.value.code == "bad_params"


async def test_a_thread_is_copied_up_to_a_prompt_and_no_other_item() -> None:
    async def request(method: str, params: Any) -> dict[str, Any]:
        assert method == "thread/turns/list"
        if "cursor" in params:
            return {"data": [{"id": "t1", "items": [{"type": "userMessage", "clientId": "cmd_1"}]}]}
        return {"data": [{"id": "t2", "items": [{"type": "userMessage", "clientId": "cmd_2"}]}], "nextCursor": "next"}

    assert [await turn_of(request, "thread", wanted) for wanted in ("cmd_1", "cmd_2", "t1")] == ["t1", "t2", "t1"]
    for wanted, code in (("cmd_3", "bad_params"), ("itm_" + "0" * 32, "unsupported")):
        with pytest.raises(TrunklineError) as error:
            await turn_of(request, "thread", wanted)
        assert error.value.code == code


def test_the_terminal_takes_the_thread_up_with_what_was_chosen_and_without_a_daemon() -> None:
    assert launch.terminal_arguments(start("t")) == ["resume", "--no-daemon", "t"]
    words = launch.terminal_arguments(
        start("t", model='a"b', mode="untrusted", thinking="high", native={"model_provider": "mine"})
    )
    assert words == [
        "resume",
        "--no-daemon",
        *("--config", 'model="a\\"b"'),
        *("--config", 'model_provider="mine"'),
        *("--config", 'model_reasoning_effort="high"'),
        *("--config", 'approval_policy="untrusted"'),
        *("--config", 'sandbox_mode="workspace-write"'),
        "t",
    ]
    assert launch.terminal_arguments(start("t", mode="plan")) == ["resume", "--no-daemon", "t"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"native": {"config": {"web_search": "live"}}}, "'config'"),
        ({"native": {"dynamic_tools": [{"name": "t"}]}}, "'dynamic_tools'"),
        ({"mcp_servers": {"db": {"command": "db", "env": {"KEY": "secret"}}}}, "'mcp_servers'"),
        ({"native": {"server": "unix:///s"}}, "`attach`"),
    ],
)
def test_what_the_terminal_can_t_be_given_is_said(options: dict[str, Any], named: str) -> None:
    with pytest.raises(TrunklineError) as raised:
        launch.terminal_arguments(start("t", **options))
    assert (raised.value.code, raised.value.details["capability"]) == ("unsupported", "terminal")
    assert named in raised.value.message
    assert "secret" not in raised.value.message
