"""How `codex exec` is started: its arguments, and what it can't honour. Pure."""

from pathlib import Path
from typing import Final

from trunkline_adapters.codex import modes
from trunkline_agentkit import Start
from trunkline_wire import TrunklineError, encode
from trunkline_wire.session import Capabilities, SessionOptions

CAPABILITIES: Final = Capabilities(
    resume=True,
    structured_output=True,
    options=("model", "mode", "output_schema", "resume_native", "native"),
)
"""One prompt after the other: no streaming, nothing to interrupt, nothing that asks."""

_BEYOND: Final = ("thinking", "system_prompt", "append_system_prompt", "mcp_servers")
_SCHEMA: Final = "output-schema.json"


def check(start: Start) -> None:
    """Raises TrunklineError `unsupported` naming what only an app-server can do."""
    options, default = start.options, SessionOptions()
    lacking = [name for name in _BEYOND if getattr(options, name) != getattr(default, name)]
    lacking += [f"native.{name}" for name in sorted(options.native) if name != "interface"]
    if options.mode is not None and (options.mode == modes.PLAN or modes.policies(options.mode).approval != "never"):
        lacking.append("mode")
    if start.fork:
        lacking.append("fork")
    if lacking:
        raise TrunklineError(
            "unsupported",
            f"this Codex has no app-server, and `codex exec` does not honour {', '.join(map(repr, lacking))}: update Codex",
            capability="options",
            options=lacking,
        )


def arguments(start: Start, native: str | None) -> list[str]:
    """The arguments of one run; the prompt comes over stdin. `native` is the thread to go on with."""
    options = start.options
    argv = ["exec"]
    argv += ["resume", native] if native is not None else []
    argv += ["--json", "--skip-git-repo-check"]
    if options.model is not None:
        argv += ["--model", options.model]
    if options.mode is not None:
        # `exec resume` has no option for the sandbox.
        argv += ["--config", f'sandbox_mode="{modes.policies(options.mode).sandbox}"']
    if options.output_schema is not None:
        argv += ["--output-schema", str(schema_file(start))]
    return [*argv, "-"]


def schema_file(start: Start) -> Path:
    return Path(start.environment["TMPDIR"]) / _SCHEMA


def write_schema(start: Start) -> None:
    """Writes what `exec` takes as a file, into the session's own temporary directory. Blocking."""
    if start.options.output_schema is not None:
        schema_file(start).write_bytes(encode(start.options.output_schema))
