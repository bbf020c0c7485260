"""A translator in the midst of a conversation, fed by hand."""

from typing import Any

from tests.unit.acp.recorded import new_translator
from tests.unit.claude.recorded import CONTEXT

from trunkline_adapters.acp.profiles import Profile
from trunkline_adapters.acp.translate import AcpTranslator
from trunkline_agentkit import Fact, Out
from trunkline_wire import Data
from trunkline_wire.blocks import TextBlock

Obj = dict[str, Any]


class Talk:
    """A translator in the midst of a turn of session `s`."""

    def __init__(self, profile: Profile | None = None, *, prompted: bool = True) -> None:
        self.translator = new_translator() if profile is None else AcpTranslator(CONTEXT, profile)
        self.translator.sent({"id": 1, "method": "session/new", "params": {"cwd": "/"}})
        self.feed({"id": 1, "result": {"sessionId": "s"}})
        if prompted:
            self.translator.prompt("cmd_1", [TextBlock(text="go")])
            self.send("go")

    def send(self, text: str, id: int = 2) -> None:
        params = {"sessionId": "s", "prompt": [{"type": "text", "text": text}]}
        self.translator.sent({"id": id, "method": "session/prompt", "params": params})

    def feed(self, message: Obj) -> list[Out]:
        return self.translator.feed(message)

    def update(self, name: Any, **fields: Any) -> list[Data]:
        params = {"sessionId": "s", "update": {"sessionUpdate": name, **fields}}
        return data_of(self.feed({"method": "session/update", "params": params}))

    def end(self, **result: Any) -> list[Data]:
        return data_of(self.feed({"id": 2, "result": {"stopReason": "end_turn", **result}}))


def data_of(out: list[Out]) -> list[Data]:
    return [one.data for one in out if isinstance(one, Fact) and one.data.TYPE != "turn.started"]
