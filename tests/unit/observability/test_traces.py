"""Spans of single events, and what leads from a measurement to its trace."""

from collections.abc import Iterator

import pytest
from opentelemetry import trace as otel
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from trunkline_bus import trace
from trunkline_bus.stored import make
from trunkline_wire.subjects import HEADER_TRACE


@pytest.fixture
def exported(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_tracer", provider.get_tracer("trunkline"))
    trace.export(True)
    yield exporter
    trace.export(False)
    provider.shutdown()


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in exporter.get_finished_spans()}


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent is not None else None


def id_of(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


def test_an_append_hangs_below_its_cause_and_its_consumers_below_it(exported: InMemorySpanExporter) -> None:
    with trace.span("gateway session.prompt", kind=SpanKind.SERVER):
        headers, append = trace.appending("turn.started", "EVENTS", "e1", None)
    assert append is not None
    append.end()
    stored = make("EVENTS", 7, "trunk.ev.0.s.agent.fact", {**headers, "Trunk-Type": "turn.started"}, b"{}", 0)
    with trace.taking("sessions", stored):
        pass
    spans = by_name(exported)
    assert parent_of(spans["append turn.started"]) == id_of(spans["gateway session.prompt"])
    assert parent_of(spans["sessions turn.started"]) == id_of(spans["append turn.started"])
    assert spans["append turn.started"].kind is SpanKind.PRODUCER
    assert spans["sessions turn.started"].kind is SpanKind.CONSUMER
    attributes = spans["sessions turn.started"].attributes
    assert attributes is not None
    assert attributes["messaging.system"] == "nats"
    assert attributes["messaging.destination.name"] == "EVENTS"
    assert attributes["messaging.consumer.group.name"] == "sessions"


def test_what_belongs_to_no_trace_gets_no_span(exported: InMemorySpanExporter) -> None:
    headers, append = trace.appending("session.status", "EVENTS", "e1", {})
    assert (dict(headers), append) == ({}, None)
    with trace.taking("sessions", make("EVENTS", 7, "s", {}, b"{}", 0)):
        pass
    assert exported.get_finished_spans() == ()


@pytest.mark.usefixtures("exported")
def test_nothing_is_made_for_nobody() -> None:
    with trace.span("outer") as outer:
        assert trace.exemplar() == {"trace_id": format(outer.get_span_context().trace_id, "032x")}
        trace.export(False)
        assert trace.exemplar() is None
        headers, append = trace.appending("turn.started", "EVENTS", "e1", None)
        # The ids cross the log all the same.
        assert append is None
        assert HEADER_TRACE in headers
    assert otel.get_current_span() is otel.INVALID_SPAN
