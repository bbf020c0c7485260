"""Logging: modules use the standard logger with an event word and `extra={...}`; this renders it, as JSON or for a console.

Every record carries the service, and the trace and span ids of the span it was written in. Values whose key says that
they are secret are masked, whoever wrote them.
"""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Final, Literal, TextIO

import structlog
from opentelemetry import trace

LogFormat = Literal["json", "console"]

_MASK: Final = "********"
_SECRET_KEYS: Final = frozenset(
    {"token", "authorization", "secret", "password", "seed", "api_key", "cookie", "nkey", "credential", "credentials"}
)
_NOISY: Final = {"nats": logging.WARNING, "aiohttp.access": logging.WARNING, "asyncio": logging.WARNING}


def configure_logging(
    service: str, level: str = "info", log_format: LogFormat = "console", stream: TextIO | None = None
) -> None:
    """Give the root logger its one handler. Replaces what an earlier call installed."""

    def add_service(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event["service"] = service
        return event

    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.ExtraAdder(),
        add_service,
        add_trace,
        mask_secrets,
    ]
    out = sys.stderr if stream is None else stream
    render: list[structlog.typing.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
        if log_format == "json"
        else [structlog.dev.ConsoleRenderer(colors=out.isatty())]
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render]
        )
    )
    root = logging.getLogger()
    for old in list(root.handlers):
        if isinstance(old.formatter, structlog.stdlib.ProcessorFormatter):
            root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name, floor in _NOISY.items():
        logging.getLogger(name).setLevel(max(floor, logging.getLevelNamesMapping()[level.upper()]))


def add_trace(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Adds the ids of the current span, so that a log line leads to its trace."""
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = format(context.trace_id, "032x")
        event["span_id"] = format(context.span_id, "016x")
    return event


def mask_secrets(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Masks values by their key: a guard behind the rule that secrets are not logged at all."""
    for key in event:
        if key.lower() in _SECRET_KEYS:
            event[key] = _MASK
    return event
