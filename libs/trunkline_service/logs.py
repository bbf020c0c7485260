"""Logging: modules use the standard logger with an event word and `extra={...}`; this renders it, as JSON or for a console.

Every record carries the service, and the trace and span ids of the span it was written in. Values whose key says that
they are secret are masked, whoever wrote them; of an exception the lines of code are shown, never the values in them.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO

from opentelemetry import trace

from trunkline_bus import metrics

LogFormat = Literal["json", "console"]

_MASK: Final = "********"
_SECRET_KEYS: Final = frozenset(
    {"token", "authorization", "secret", "password", "seed", "api_key", "cookie", "nkey", "credential", "credentials"}
)
_NOISY: Final = {"nats": logging.WARNING, "aiohttp.access": logging.WARNING, "asyncio": logging.WARNING}
_OWN: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has: the other attributes are those of `extra`."""


def configure_logging(
    service: str, level: str = "info", log_format: LogFormat = "console", stream: TextIO | None = None
) -> None:
    """Give the root logger its one handler. Replaces what an earlier call installed."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.addFilter(_count)
    handler.setFormatter(JsonLines(service) if log_format == "json" else ConsoleLines(service))
    root = logging.getLogger()
    for old in list(root.handlers):
        if isinstance(old.formatter, Lines):
            root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    for name, floor in _NOISY.items():
        logging.getLogger(name).setLevel(max(floor, logging.getLevelNamesMapping()[level.upper()]))


def _count(record: logging.LogRecord) -> bool:
    """Counts what should make somebody look; lets everything pass."""
    if record.levelno >= logging.WARNING:
        metrics.LOG_RECORDS.labels(record.levelname.lower()).inc()
    return True


class Lines(logging.Formatter):
    """The fields of a record, whatever becomes of them."""

    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def fields(self, record: logging.LogRecord) -> dict[str, Any]:
        """Those of `extra`, the service, and the ids of the current span, so that a line leads to its trace."""
        found = {key: value for key, value in vars(record).items() if key not in _OWN}
        found["service"] = self._service
        context = trace.get_current_span().get_span_context()
        if context.is_valid:
            found["trace_id"] = format(context.trace_id, "032x")
            found["span_id"] = format(context.span_id, "016x")
        return {key: _MASK if key.lower() in _SECRET_KEYS else value for key, value in found.items()}

    def time(self, record: logging.LogRecord) -> str:
        """When it was written: ISO 8601 with microseconds, in UTC."""
        at = datetime.fromtimestamp(record.created, UTC)
        return at.isoformat(timespec="microseconds").replace("+00:00", "Z")

    def level(self, record: logging.LogRecord) -> str:
        return record.levelname.lower()

    def trouble(self, record: logging.LogRecord) -> str | None:
        """The traceback of the record's exception."""
        return self.formatException(record.exc_info) if record.exc_info and record.exc_info[0] else None


class JsonLines(Lines):
    """One JSON object a line: `event`, `level`, `logger`, `timestamp`, the fields, and `exception` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "event": record.getMessage(),
            "level": self.level(record),
            "logger": record.name,
            "timestamp": self.time(record),
            **self.fields(record),
        }
        if trouble := self.trouble(record):
            line["exception"] = trouble
        return json.dumps(line, default=str)


class ConsoleLines(Lines):
    """For people: `2026-01-31T12:00:00.000000Z [info] ready [trunkline_teams.app] service=teams`."""

    def format(self, record: logging.LogRecord) -> str:
        fields = "".join(f" {key}={_word(value)}" for key, value in sorted(self.fields(record).items()))
        line = f"{self.time(record)} [{self.level(record)}] {record.getMessage()} [{record.name}]{fields}"
        return f"{line}\n{trouble}" if (trouble := self.trouble(record)) else line


def _word(value: object) -> str:
    """`value` so that a line of fields can be read back by eye: quoted where a space or a line break stands in it."""
    text = value if isinstance(value, str) else repr(value)
    return repr(text) if not text or any(mark.isspace() for mark in text) else text
