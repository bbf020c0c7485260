"""Traces across the log: the context goes out and comes in as the header `traceparent`.

The spans of requests, turns and tools are always made, so that their ids reach the log and the logs. Those of single events
(`appending`, `taking`) and exemplars exist only while spans are exported.
"""

from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind
from opentelemetry.util.types import AttributeValue

from trunkline_bus.stored import Stored
from trunkline_wire.subjects import HEADER_ID, HEADER_TRACE

_tracer: Final = trace.get_tracer("trunkline")
_NOTHING: Final = nullcontext()


class _Exporting:
    """Whether somebody receives the spans of this process."""

    on = False


def export(on: bool) -> None:
    """Say whether spans are exported from now on."""
    _Exporting.on = on


def inject(headers: dict[str, str]) -> dict[str, str]:
    """Add the current trace context to `headers`, nothing where there is none; returns `headers`."""
    if trace.get_current_span().get_span_context().is_valid:
        propagate.inject(headers)
    return headers


def extract(headers: Mapping[str, str] | None) -> Context | None:
    """The trace context that a message carries, None where it carries none."""
    if not headers or HEADER_TRACE not in headers:
        return None
    return propagate.extract(headers)


def exemplar(span: Span | None = None) -> dict[str, str] | None:
    """What leads from a measurement to the trace of `span`, by default the current one; None where nobody has that trace."""
    if not _Exporting.on:
        return None
    context = (span or trace.get_current_span()).get_span_context()
    if not context.is_valid or not context.trace_flags.sampled:
        return None
    return {"trace_id": format(context.trace_id, "032x")}


@contextmanager
def span(
    name: str,
    *,
    parent: Mapping[str, str] | None = None,
    kind: SpanKind = SpanKind.INTERNAL,
    attributes: Mapping[str, AttributeValue] | None = None,
) -> Generator[Span]:
    """A span as the current one; `parent` are the headers of the message that led to it.

    Attribute values must be names, ids and numbers, never content.
    """
    with _tracer.start_as_current_span(name, context=extract(parent), kind=kind, attributes=attributes) as current:
        yield current


def appending(
    type_: str, stream: str, id: str, headers: Mapping[str, str] | None
) -> tuple[Mapping[str, str], Span | None]:
    """The span of one append, to be ended by the caller, and the headers that make it the parent of what follows.

    `headers` are what the message would carry otherwise, None for the current context. Without a trace, or where nobody
    receives it, they come back as they are and there is no span.
    """
    carried = inject({}) if headers is None else headers
    if not _Exporting.on or HEADER_TRACE not in carried:
        return carried, None
    attributes = _messaging("send", stream) | {"messaging.message.id": id}
    started = _tracer.start_span(
        f"append {type_}", context=extract(carried), kind=SpanKind.PRODUCER, attributes=attributes
    )
    with trace.use_span(started, end_on_exit=False):
        return {**carried, **inject({})}, started


def taking(consumer: str, stored: Stored) -> AbstractContextManager[Span | None]:
    """The span in which `consumer` takes one message of the log, below the append of it; nothing where nobody receives it."""
    headers = stored.headers
    if not _Exporting.on or not headers or HEADER_TRACE not in headers:
        return _NOTHING
    attributes = _messaging("process", stored.stream) | {
        "messaging.consumer.group.name": consumer,
        "messaging.message.id": headers.get(HEADER_ID, ""),
    }
    return span(f"{consumer} {stored.type}", parent=headers, kind=SpanKind.CONSUMER, attributes=attributes)


def _messaging(operation: str, stream: str) -> dict[str, AttributeValue]:
    return {
        "messaging.system": "nats",
        "messaging.operation.type": operation,
        "messaging.destination.name": stream,
    }
