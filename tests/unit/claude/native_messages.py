"""Native messages as the CLI sends them, for tests that need one more or one less than a recording has."""

from typing import Any

from tests.unit.claude.recorded import CONTEXT

from trunkline_adapters.claude.translate import ClaudeTranslator
from trunkline_agentkit import Fact
from trunkline_wire import Data
from trunkline_wire.ids import ask_id, item_id

Obj = dict[str, Any]
NATIVE = "11111111-2222-4333-8444-555555555555"


def init(**fields: Any) -> Obj:
    about: Obj = {"model": "claude-opus-5-5", "permissionMode": "default", "tools": ["Bash"], "session_id": NATIVE}
    return {"type": "system", "subtype": "init", **about, **fields}


def user_line(text: str, uuid: str | None = None) -> Obj:
    line: Obj = {"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": None}
    return line | ({"uuid": uuid} if uuid else {})


def lifecycle(uuid: str, state: str) -> Obj:
    return {"type": "command_lifecycle", "command_uuid": uuid, "state": state}


def assistant(message: str, *blocks: Obj, **fields: Any) -> Obj:
    usage = fields.pop("usage", {"input_tokens": 1, "output_tokens": 1})
    body = {"id": message, "role": "assistant", "model": "claude-opus-5-5", "content": list(blocks), "usage": usage}
    return {"type": "assistant", "message": body, "parent_tool_use_id": None, **fields}


def text(said: str) -> Obj:
    return {"type": "text", "text": said}


def tool_use(tool: str, name: str = "Bash", **tool_input: Any) -> Obj:
    return {"type": "tool_use", "id": tool, "name": name, "input": tool_input}


def tool_result(tool: str, content: Any = "done", *, is_error: bool = False, **fields: Any) -> Obj:
    block = {"type": "tool_result", "tool_use_id": tool, "content": content, "is_error": is_error}
    return {"type": "user", "message": {"role": "user", "content": [block]}, "parent_tool_use_id": None, **fields}


def can_use_tool(request: str, tool: str, name: str = "Bash", **fields: Any) -> Obj:
    about: Obj = {"subtype": "can_use_tool", "tool_name": name, "input": {"command": "ls"}, "tool_use_id": tool}
    return {"type": "control_request", "request_id": request, "request": about | fields}


def answer(request: str, **payload: Any) -> Obj:
    return {
        "type": "control_response",
        "response": {"subtype": "success", "request_id": request, "response": payload},
    }


def cancel(request: str) -> Obj:
    return {"type": "control_cancel_request", "request_id": request}


def result(**fields: Any) -> Obj:
    about: Obj = {"subtype": "success", "is_error": False, "result": "ok", "num_turns": 1, "duration_ms": 5}
    return {"type": "result", **about, **fields}


def facts(translator: ClaudeTranslator, *messages: Obj) -> list[Fact]:
    return [out for message in messages for out in translator.feed(message) if isinstance(out, Fact)]


def datas(translator: ClaudeTranslator, *messages: Obj) -> list[Data]:
    return [fact.data for fact in facts(translator, *messages)]


def item(native: str) -> str:
    return item_id(CONTEXT.session, CONTEXT.incarnation, native)


def ask(native: str) -> str:
    return ask_id(CONTEXT.session, CONTEXT.incarnation, native)
