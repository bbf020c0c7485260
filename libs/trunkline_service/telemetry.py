"""OpenTelemetry: one tracer provider a process; spans are exported only where an OTLP endpoint is set."""

from collections.abc import Generator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from trunkline_bus.trace import export


@contextmanager
def tracing(service: str, version: str, endpoint: str | None) -> Generator[None, None, None]:
    """Spans of this process go to `endpoint` (the base URL of an OTLP/HTTP collector) until the block ends.

    Without an endpoint trace ids still cross the log; nothing is exported and nothing connects.
    """
    provider = TracerProvider(
        resource=Resource.create({"service.name": f"trunkline-{service}", "service.version": version}),
        shutdown_on_exit=False,
    )
    if endpoint:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces")
        provider.add_span_processor(BatchSpanProcessor(exporter))
        export(True)
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        export(False)
        provider.shutdown()
