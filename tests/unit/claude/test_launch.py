"""How the CLI is started: nothing secret in its arguments, everything it needs in its environment."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from trunkline_adapters.claude import launch
from trunkline_adapters.claude.adapter import CAPABILITIES, ClaudeAdapter
from trunkline_adapters.claude.session import prompt_uuid
from trunkline_agentkit import AgentProcess, Start, local_start
from trunkline_wire import TrunklineError
from trunkline_wire.session import SessionOptions

SECRET = "hunter2-hunter2"


async def no_launch(*_: Any, **__: Any) -> AgentProcess:
    raise AssertionError("nothing is started here")


def start(tmp_path: Path, options: SessionOptions | None = None, **fields: Any) -> Start:
    return Start(
        session="ses_" + "1" * 32,
        cwd="/",
        incarnation="i",
        environment={"PATH": "/bin", "TMPDIR": str(tmp_path)},
        launch=no_launch,
        options=options or SessionOptions(),
        **fields,
    )


def test_a_plain_start(tmp_path: Path) -> None:
    assert launch.arguments(start(tmp_path)) == [
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
        "--include-partial-messages",
        "--permission-prompt-tool",
        "stdio",
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"model": "opus"}, ["--model", "opus"]),
        ({"mode": "default"}, []),
        ({"mode": "plan"}, ["--permission-mode", "plan"]),
        ({"budget_usd": 0.5}, ["--max-budget-usd", "0.5"]),
        ({"max_turns": 3}, ["--max-turns", "3"]),
        ({"allowed_tools": ["Bash(git log:*)", "Read"]}, ["--allowedTools", "Bash(git log:*)", "Read"]),
        ({"disallowed_tools": ["WebFetch"]}, ["--disallowedTools", "WebFetch"]),
        ({"resume_native": "abc"}, ["--resume", "abc"]),
        ({"native": {"hook_events": True}}, ["--include-hook-events"]),
        ({"native": {"add_dirs": ["/a", "/b"]}}, ["--add-dir", "/a", "/b"]),
        ({"native": {"setting_sources": []}}, ["--setting-sources", ""]),
    ],
)
def test_options_become_arguments(tmp_path: Path, options: dict[str, Any], expected: list[str]) -> None:
    plain = len(launch.arguments(start(tmp_path)))
    assert launch.arguments(start(tmp_path, SessionOptions(**options)))[plain:] == expected


def test_resume_and_fork(tmp_path: Path) -> None:
    assert launch.arguments(start(tmp_path, native_session="abc"))[-2:] == ["--resume", "abc"]
    assert launch.arguments(start(tmp_path, native_session="abc", fork=True))[-3:] == [
        "--resume",
        "abc",
        "--fork-session",
    ]


def test_what_may_hold_secrets_stays_out_of_the_arguments(tmp_path: Path) -> None:
    options = SessionOptions(
        mcp_servers={"db": {"command": "db", "env": {"PASSWORD": SECRET}}},
        system_prompt=SECRET,
        append_system_prompt=SECRET,
        agents={"a": {"description": SECRET, "prompt": SECRET}},
        output_schema={"description": SECRET},
        native={"settings": {"env": {"TOKEN": SECRET}}},
    )
    begin = start(tmp_path, options)
    files = launch.write_files(begin)
    assert not any(SECRET in argument for argument in [*launch.arguments(begin), *files, *map(str, files.values())])
    assert files == {"--mcp-config": tmp_path / "mcp.json", "--settings": tmp_path / "settings.json"}
    assert json.loads((tmp_path / "mcp.json").read_text()) == {"mcpServers": options.mcp_servers}
    for name in ("mcp.json", "settings.json"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    launch.remove_files(files.values())
    assert list(tmp_path.iterdir()) == []
    request = launch.initialize(begin)
    assert request["systemPrompt"] == [SECRET]
    assert request["appendSystemPrompt"] == SECRET
    assert request["jsonSchema"] == {"description": SECRET}
    assert request["agents"] == options.agents


def test_the_environment_is_the_given_one_and_what_the_agent_needs(tmp_path: Path) -> None:
    assert launch.environment(start(tmp_path)) == {
        "PATH": "/bin",
        "TMPDIR": str(tmp_path),
        "CLAUDE_CODE_TMPDIR": str(tmp_path),
        "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_BUG_COMMAND": "1",
    }


def test_the_manifest_lets_through_what_it_names_and_nothing_else(tmp_path: Path) -> None:
    source = {
        "PATH": "/bin",
        "HOME": str(tmp_path),
        "ANTHROPIC_API_KEY": "k",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:1",
        "CLAUDE_CODE_OAUTH_TOKEN": "o",
        "CLAUDE_CONFIG_DIR": "/c",
        "https_proxy": "http://127.0.0.1:2",
        "AWS_REGION": "eu",
        "GITHUB_TOKEN": SECRET,
        "CLAUDECODE": "1",
        "TRUNKLINE_NATS_SEED": SECRET,
    }
    begin = local_start(ClaudeAdapter(source), tmp_path, source=source)
    given = {name: value for name, value in begin.environment.items() if name in source}
    assert given == {name: source[name] for name in source if source[name] not in (SECRET, "1")}


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        (SessionOptions(native={"nonsense": 1}), "unsupported", "nonsense"),
        (SessionOptions(mode="sideways"), "bad_params", "sideways"),
        (SessionOptions(hold="tmux"), "unsupported", "hold"),
    ],
)
async def test_what_cannot_be_honoured_is_refused_by_name(
    tmp_path: Path, options: SessionOptions, code: str, named: str
) -> None:
    with pytest.raises(TrunklineError, match=named) as error:
        await ClaudeAdapter({"PATH": "/bin"}).create(start(tmp_path, options))
    assert error.value.code == code


def test_every_option_that_the_adapter_claims_exists() -> None:
    assert set(CAPABILITIES.options) <= set(SessionOptions.__struct_fields__)


def test_thinking_levels_are_budgets() -> None:
    levels = {level: launch.thinking(level)["max_thinking_tokens"] for level in ("off", "low", "medium", "high", "max")}
    assert levels == {"off": 0, "low": 4_000, "medium": 8_000, "high": 16_000, "max": 32_000}


def test_a_prompts_uuid_depends_on_its_command_alone() -> None:
    assert prompt_uuid("cmd_1") == prompt_uuid("cmd_1") != prompt_uuid("cmd_2")


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_an_install_without_scripts_still_has_its_binary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("platform.system", lambda: "Linux")
    package = Path("node_modules/@anthropic-ai/claude-code-linux-x64/claude")
    for where in (tmp_path / "prefix" / "lib" / package, tmp_path / "project" / package):
        program(where)
    (tmp_path / "prefix" / "bin").mkdir()
    (tmp_path / "project" / "node_modules" / ".bin").mkdir()
    for directory, found in (("prefix/bin", "prefix/lib"), ("project/node_modules/.bin", "project")):
        assert ClaudeAdapter({"PATH": str(tmp_path / directory)}).program() == str(tmp_path / found / package)


def test_a_missing_program_says_how_to_get_it() -> None:
    with pytest.raises(TrunklineError, match=r"npm install -g @anthropic-ai/claude-code@2\.1\.332") as error:
        ClaudeAdapter({"PATH": "/nonexistent"}).program()
    assert error.value.code == "agent_not_found"
    with pytest.raises(TrunklineError, match="TRUNKLINE_PROGRAM_CLAUDE") as error:
        ClaudeAdapter({"PATH": "/nonexistent", "TRUNKLINE_PROGRAM_CLAUDE": "/no/claude"}).program()
    assert error.value.code == "agent_not_found"


async def test_the_program_tells_its_version(tmp_path: Path) -> None:
    path = program(tmp_path / "claude", "#!/bin/sh\necho '2.1.332 (Claude Code)'\n")
    found = await ClaudeAdapter({"TRUNKLINE_PROGRAM_CLAUDE": str(path), "PATH": "/bin"}).probe()
    assert (found.path, found.version) == (str(path), "2.1.332")
