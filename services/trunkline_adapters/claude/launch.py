"""How the CLI is started: arguments, environment and the `initialize` request. Pure but for the two files it may need.

What may hold a secret (MCP servers, settings, prompts) is in files that only the user can read, or goes over stdin:
arguments are visible to everyone on the machine.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from trunkline_adapters.claude.native import BYPASS_MODE, MODES, THINKING_BUDGETS
from trunkline_agentkit import Start
from trunkline_wire import TrunklineError, encode
from trunkline_wire.session import SessionOptions

_BASE: Final = (
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool",
    "stdio",
)
NATIVE_OPTIONS: Final = frozenset(
    {
        "add_dirs",
        "fallback_model",
        "forward_subagent_text",
        "hook_events",
        "prompt_suggestions",
        "setting_sources",
        "settings",
        "strict_mcp_config",
        "transport",
    }
)
"""Names in `options.native`: lists of paths (`add_dirs`), a model, switches, names of setting sources, a settings object, and
one of TRANSPORTS."""

TRANSPORTS: Final = ("stdio", "sdk-url")


def arguments(start: Start) -> list[str]:
    """The CLI's arguments. Raises TrunklineError `unsupported` for native options that this adapter does not know."""
    options = start.options
    argv = [*_BASE, *_common(start)]
    if options.budget_usd is not None:
        argv += ["--max-budget-usd", f"{options.budget_usd:g}"]
    if options.max_turns is not None:
        argv += ["--max-turns", str(options.max_turns)]
    if options.native.get("hook_events"):
        argv.append("--include-hook-events")
    return argv


def terminal_arguments(start: Start) -> list[str]:
    """The arguments with which the CLI takes up the session in its own terminal.

    What only its protocol or `-p` takes has no place there: system prompts, agents, schema, budget and the number of turns.
    """
    # Its terminal has another mode than its protocol where none is said.
    mode = [] if start.options.mode not in (None, "default") else ["--permission-mode", "default"]
    return [*_common(start), *mode]


def _common(start: Start) -> list[str]:
    options = start.options
    argv: list[str] = []
    if (native := start.native_session or options.resume_native) is not None:
        argv += ["--resume", native]
        if start.fork:
            argv.append("--fork-session")
    if options.model is not None:
        argv += ["--model", options.model]
    if options.mode not in (None, "default"):
        argv += ["--permission-mode", options.mode]
    if options.allowed_tools:
        argv += ["--allowedTools", *options.allowed_tools]
    if options.disallowed_tools:
        argv += ["--disallowedTools", *options.disallowed_tools]
    return argv + _native_arguments(options.native)


def _native_arguments(native: dict[str, Any]) -> list[str]:
    argv: list[str] = []
    if directories := native.get("add_dirs"):
        argv += ["--add-dir", *map(str, directories)]
    if model := native.get("fallback_model"):
        argv += ["--fallback-model", str(model)]
    if native.get("strict_mcp_config"):
        argv.append("--strict-mcp-config")
    if (sources := native.get("setting_sources")) is not None:
        argv += ["--setting-sources", ",".join(map(str, sources))]
    return argv


def check(options: SessionOptions) -> None:
    """Raises TrunklineError `unsupported` or `bad_params` naming what can't be honoured."""
    unknown = sorted(set(options.native) - NATIVE_OPTIONS)
    if unknown:
        raise TrunklineError(
            "unsupported",
            f"native options {', '.join(map(repr, unknown))} are unknown; there are: {', '.join(sorted(NATIVE_OPTIONS))}",
            capability="options",
            options=unknown,
        )
    if options.native.get("transport", TRANSPORTS[0]) not in TRANSPORTS:
        raise TrunklineError("bad_params", f"native option 'transport' is one of: {', '.join(TRANSPORTS)}")
    if options.mode is not None and options.mode not in {*MODES, BYPASS_MODE}:
        raise TrunklineError(
            "bad_params", f"mode {options.mode!r} is unknown; there are: {', '.join([*MODES, BYPASS_MODE])}"
        )


def write_files(start: Start) -> dict[str, Path]:
    """Writes what the CLI takes as files, by the argument that names each. Blocking.

    The files lie in the session's own temporary directory, which only the user can enter; who starts the CLI removes them.
    """
    directory = Path(start.environment["TMPDIR"])
    files: dict[str, Path] = {}
    if start.options.mcp_servers:
        files["--mcp-config"] = _write(directory / "mcp.json", {"mcpServers": start.options.mcp_servers})
    if settings := start.options.native.get("settings"):
        files["--settings"] = _write(directory / "settings.json", settings)
    return files


def remove_files(files: Iterable[Path]) -> None:
    for path in files:
        path.unlink(missing_ok=True)


def _write(path: Path, value: Any) -> Path:
    path.touch(mode=0o600, exist_ok=True)
    path.chmod(0o600)
    path.write_bytes(encode(value))
    return path


def environment(start: Start) -> dict[str, str]:
    """The Start's environment and what the CLI needs: nothing of it outside the session's directories, no updates of itself."""
    own = {
        "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING": "1",
        "CLAUDE_CODE_TMPDIR": start.environment.get("TMPDIR", ""),
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_BUG_COMMAND": "1",
    }
    return {name: value for name, value in own.items() if value} | start.environment


def initialize(start: Start, *, old: bool = False) -> dict[str, Any]:
    """The `initialize` request: prompts, agents and schema go here, not into the arguments. `old`: for 2.1.101 and before."""
    options = start.options
    request: dict[str, Any] = {
        "subtype": "initialize",
        "forwardSubagentText": bool(options.native.get("forward_subagent_text", True)),
    }
    if options.system_prompt is not None:
        request["systemPrompt"] = options.system_prompt if old else [options.system_prompt]
    if options.append_system_prompt is not None:
        request["appendSystemPrompt"] = options.append_system_prompt
    if options.agents:
        request["agents"] = options.agents
    if options.output_schema is not None:
        request["jsonSchema"] = options.output_schema
    if start.title:
        request["title"] = start.title
    if options.native.get("prompt_suggestions"):
        request["promptSuggestions"] = True
    return request


def thinking(level: str) -> dict[str, Any]:
    return {"subtype": "set_max_thinking_tokens", "max_thinking_tokens": THINKING_BUDGETS[level]}
