"""A fake OpenTelemetry collector: takes spans over OTLP/HTTP, as the protocol says, and keeps them."""

from types import TracebackType
from typing import Any, Self

import msgspec
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Span(msgspec.Struct, frozen=True):
    """Ids as hex; `parent` is empty for a root. `kind` is the protocol's name, without its prefix."""

    service: str
    name: str
    kind: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]


class Receiver:
    """Use as an async context manager; `url` is what TRUNKLINE_OTLP_ENDPOINT has to be."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/traces", self._on_traces)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _on_traces(self, request: web.Request) -> web.Response:
        assert request.content_type == "application/x-protobuf"
        batch = ExportTraceServiceRequest.FromString(await request.read())
        for resource in batch.resource_spans:
            service = _attributes(resource.resource.attributes)["service.name"]
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.spans.append(
                        Span(
                            service=service.removeprefix("trunkline-"),
                            name=span.name,
                            kind=span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
                            trace=span.trace_id.hex(),
                            id=span.span_id.hex(),
                            parent=span.parent_span_id.hex(),
                            attributes=_attributes(span.attributes),
                        )
                    )
        answer = ExportTraceServiceResponse().SerializeToString()
        return web.Response(body=answer, content_type="application/x-protobuf")

    def named(self, service: str, name: str) -> list[Span]:
        return [span for span in self.spans if span.service == service and span.name == name]


def _attributes(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
