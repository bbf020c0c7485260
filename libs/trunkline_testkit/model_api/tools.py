"""From what a model wants done to a call of a tool that the agent has: by its own name, with its own input. Pure.

An agent says with each request which tools it has. `Deed.tools` are the names that agents give to one deed; the input
is fitted to the schema of the one on offer. Where none is on offer the first name is called all the same: some agents
hide tools, and one that has none says so to the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from trunkline_testkit.model_api.answer import ToolUse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunkline_testkit.model_api.conversation import Tool

_REFERENCES = 20
"""References in a schema are followed so deep."""


@dataclass(frozen=True, slots=True)
class Deed:
    """Something to do. `input` is for the first of `tools`; `aliases` are what others call the same."""

    tools: tuple[str, ...]
    input: dict[str, Any]
    aliases: dict[str, Any] = field(default_factory=dict[str, Any])
    text: str | None = None
    """The input for a tool that takes free text."""
    command: str | None = None
    """A shell command that does it, for agents that have a shell and no such tool."""


_SHELLS = (
    "Bash",
    "exec_command",
    "run_shell_command",
    "bash",
    "shell_command",
    "execute",
    "terminal",
    "execute_bash",
    "shell",
    "run_commands",
)


def shell(command: str, *, background: bool = False) -> Deed:
    given = {"command": command, "description": "Run a scripted command"}
    if background:
        given |= {"run_in_background": True}
    return Deed(_SHELLS, given, {"cmd": command, "commands": [command], "is_background": background})


def read(path: str) -> Deed:
    return Deed(
        ("Read", "read_file", "read", "view", "read_text_file", "file_editor", "str_replace_editor", "read_files"),
        {"file_path": path},
        {"path": path, "absolute_path": path, "filePath": path, "files": [{"path": path}], "command": "view"},
        command=f"cat {path}",
    )


def write(path: str, text: str) -> Deed:
    added = "".join(f"+{line}\n" for line in text.splitlines())
    patch = f"*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\n"
    return Deed(
        ("Write", "write_file", "write", "create", "write_text_file", "apply_patch", "file_editor", "editor"),
        {"file_path": path, "content": text},
        {"path": path, "filePath": path, "file_text": text, "new_text": text, "command": "create"},
        text=patch,
        command=f"apply_patch <<'EOF'\n{patch}EOF",
    )


def question(text: str, header: str, options: Sequence[dict[str, str]]) -> Deed:
    asked = {"question": text, "header": header, "multiSelect": False, "options": list(options)}
    return Deed(
        ("AskUserQuestion", "request_user_input", "ask_user_question", "ask_user", "question", "ask_question"),
        {"questions": [asked]},
        {
            "questions": [asked | {"id": header.lower(), "type": "choice", "multiple": False, "multi_select": False}],
            "question": text,
            "choices": [option["label"] for option in options],
            "options": [option["label"] for option in options],
        },
    )


def plan(text: str) -> Deed:
    return Deed(("ExitPlanMode", "exit_plan_mode", "plan_exit"), {"plan": text}, {"summary": text})


def delegate(prompt: str) -> Deed:
    return Deed(
        ("Agent", "task", "Task", "agent", "spawn_agent"),
        {
            "description": "child job",
            "prompt": prompt,
            "subagent_type": "general-purpose",
            "run_in_background": False,
        },
        {"message": prompt, "task": prompt, "name": "child", "agent_type": "general-purpose"},
    )


def agreement(request: str) -> Deed:
    message = {"type": "shutdown_response", "request_id": request, "approve": True}
    return Deed(("SendMessage",), {"to": "team-lead", "message": message, "summary": "agreed"})


def call(deed: Deed, offered: Sequence[Tool]) -> ToolUse:
    """The call of the first of the deed's tools that is on offer."""
    by_name = {tool.name: tool for tool in offered}
    found = next((by_name[name] for name in deed.tools if name in by_name), None)
    if found is None and deed.command is not None and any(name in by_name for name in _SHELLS):
        return call(shell(deed.command), offered)
    if found is None or found.schema == {}:
        name, namespace = (deed.tools[0], None) if found is None else (found.name, found.namespace)
        return ToolUse(name, deed.input, namespace)
    if found.schema is None:
        return ToolUse(found.name, deed.text or "", found.namespace)
    members = deed.input | deed.aliases if found.name != deed.tools[0] else deed.aliases | deed.input
    return ToolUse(found.name, fit(members, found.schema, found.schema), found.namespace)


def fit(value: Any, schema: dict[str, Any], whole: dict[str, Any]) -> Any:
    """`value` without members that the schema does not have, and with those that it requires. `whole`: where references lead."""
    schema = _resolved(schema, whole)
    if isinstance(value, dict) and "properties" in schema:
        properties: dict[str, dict[str, Any]] = schema["properties"]
        given = cast("dict[str, Any]", value)
        fitted = {name: fit(given[name], member, whole) for name, member in properties.items() if name in given}
        missing = [name for name in schema.get("required", []) if name not in fitted]
        return fitted | {name: minimal(_resolved(properties.get(name, {}), whole)) for name in missing}
    if isinstance(value, list):
        return [fit(item, schema.get("items", {}), whole) for item in cast("list[Any]", value)]
    if isinstance(value, str) and str(schema.get("type")).lower() == "array":
        return ["bash", "-lc", value]
    if "enum" in schema and value not in schema["enum"]:
        return schema["enum"][0]
    return value


def minimal(schema: dict[str, Any]) -> Any:
    """The smallest value that a JSON schema of simple types takes."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    match kind.lower() if isinstance(kind, str) else kind:
        case "object":
            properties: dict[str, dict[str, Any]] = schema.get("properties", {})
            required: list[str] = schema.get("required", list(properties))
            return {name: minimal(properties.get(name, {})) for name in required}
        case "array":
            return []
        case "boolean":
            return False
        case "integer" | "number":
            return 0
        case _:
            return "Scripted answer"


def _resolved(schema: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    """The schema that a reference, or the first of several choices, leads to."""
    for _ in range(_REFERENCES):
        if "$ref" in schema:
            found: Any = whole
            for step in str(schema["$ref"]).removeprefix("#/").split("/"):
                found = cast("dict[str, Any]", found).get(step, {}) if isinstance(found, dict) else {}
            schema = cast("dict[str, Any]", found)
        elif choices := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
            schema = choices[0]
        else:
            break
    return schema
