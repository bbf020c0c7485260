"""Agents whose output is nothing but the answer: a JSON object, or lines of text. `cn -p --format json` of Continue.

An answer that is no JSON stands in `response`, one that is stands as it was; `status` without it is a word of the program.
Nothing ends the turn but the program's own end.
"""

from collections.abc import Sequence

from trunkline_adapters.headless.native import Began, Noticed, Said, Spoke
from trunkline_agentkit.fields import Obj, text
from trunkline_wire import encode
from trunkline_wire.blocks import CodeBlock, TextBlock


def read(message: Obj) -> Sequence[Said]:
    said = text(message, "response")
    if said is not None:
        return [Began(), Spoke(content=(TextBlock(text=said),))]
    status = text(message, "status")
    if status in {"error", "info", "success", "warning"} and text(message, "message") is not None:
        level = "error" if status == "error" else "warning" if status == "warning" else "info"
        return [Began(), Noticed(text=text(message, "message") or "", level=level)]
    return [Began(), Spoke(content=(CodeBlock(text=encode(message).decode(), language="json"),))]
