"""Traces across the log: the context goes out and comes in as the header `traceparent`."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Final

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind
from opentelemetry.util.types import AttributeValue

from trunkline_wire.subjects import HEADER_TRACE

_tracer: Final = trace.get_tracer("trunkline")


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
