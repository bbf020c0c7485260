"""Spans of a session: a turn is `invoke_agent`, a tool call in it `execute_tool`, by the GenAI semantic conventions.

They hang below the trace that the command brought along, so that one trace runs from the request to the last event.
Names, ids and numbers only, never content.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Final

from opentelemetry import context as contexts
from opentelemetry import trace as otel
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from trunkline_bus import trace
from trunkline_wire.turn import ToolCompleted, ToolStarted, TurnCompleted

_tracer: Final = otel.get_tracer("trunkline")


@contextmanager
def carried(headers: Mapping[str, str] | None) -> Generator[None]:
    """What is written inside belongs to the trace of the message with these headers."""
    parent = trace.extract(headers)
    if parent is None:
        yield
        return
    token = contexts.attach(parent)
    try:
        yield
    finally:
        contexts.detach(token)


class TurnSpans:
    """The spans of one agent process: at most one turn at a time, any number of tools in it."""

    def __init__(self, adapter: str, session: str) -> None:
        self._adapter = adapter
        self._session = session
        self._turn: Span | None = None
        self.headers: Mapping[str, str] = {}
        """What events of the open turn carry of its trace."""
        self._tools: dict[str, Span] = {}

    @property
    def exemplar(self) -> dict[str, str] | None:
        """What leads from a measurement to the open turn's trace."""
        return trace.exemplar(self._turn) if self._turn is not None else None

    def begin(self, headers: Mapping[str, str] | None, model: str | None) -> None:
        """A turn begins, caused by a message with these headers."""
        self.end()
        attributes = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": self._adapter,
            "gen_ai.provider.name": f"trunkline.{self._adapter}",
            "gen_ai.conversation.id": self._session,
        }
        if model is not None:
            attributes["gen_ai.request.model"] = model
        name = f"invoke_agent {self._adapter}"
        self._turn = _tracer.start_span(
            name, context=trace.extract(headers), kind=SpanKind.INTERNAL, attributes=attributes
        )
        with otel.use_span(self._turn, end_on_exit=False):
            self.headers = trace.inject({})

    def begin_tool(self, item: str, data: ToolStarted) -> None:
        parent = otel.set_span_in_context(self._turn) if self._turn is not None else None
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": data.name,
            "gen_ai.tool.call.id": item,
            "gen_ai.tool.type": "extension",
            "gen_ai.conversation.id": self._session,
        }
        self._tools[item] = _tracer.start_span(f"execute_tool {data.name}", context=parent, attributes=attributes)

    def end_tool(self, item: str, data: ToolCompleted) -> None:
        span = self._tools.pop(item, None)
        if span is not None:
            if data.status == "failed":
                span.set_status(Status(StatusCode.ERROR, data.status))
            span.end()

    def end(self, data: TurnCompleted | None = None) -> None:
        """The turn ends; without `data` because its agent did."""
        for span in self._tools.values():
            span.end()
        self._tools.clear()
        if self._turn is None:
            return
        if data is None or data.outcome not in {"success", "interrupted"}:
            self._turn.set_status(Status(StatusCode.ERROR, data.outcome if data is not None else "aborted"))
        if data is not None and data.stop_reason is not None:
            self._turn.set_attribute("gen_ai.response.finish_reasons", [data.stop_reason])
        if data is not None and data.usage is not None:
            self._turn.set_attribute("gen_ai.usage.input_tokens", data.usage.input)
            self._turn.set_attribute("gen_ai.usage.output_tokens", data.usage.output)
            self._turn.set_attribute("gen_ai.usage.cache_read.input_tokens", data.usage.cache_read)
            self._turn.set_attribute("gen_ai.usage.cache_creation.input_tokens", data.usage.cache_write)
        self._turn.end()
        self._turn, self.headers = None, {}
