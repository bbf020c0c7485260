"""One trace across the log: what goes out in a header comes in as the parent."""

from opentelemetry import trace as otel
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from trunkline_bus import trace

TRACE, SPAN = 0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331
HEADER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_the_current_span_goes_out_as_the_w3c_header() -> None:
    span = NonRecordingSpan(SpanContext(TRACE, SPAN, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)))
    with otel.use_span(span):
        assert trace.inject({"Trunk-Id": "x"}) == {"Trunk-Id": "x", "traceparent": HEADER}


def test_without_a_span_nothing_goes_out() -> None:
    assert trace.inject({}) == {}


def test_what_came_in_is_the_parent() -> None:
    with trace.span("fold", parent={"traceparent": HEADER}) as span:
        assert span.get_span_context().trace_id == TRACE
    assert trace.extract(None) is None
    assert trace.extract({"Trunk-Id": "x"}) is None
