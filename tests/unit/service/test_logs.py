import io
import json
import logging
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import TracerProvider

from trunkline_service import configure_logging


@pytest.fixture(autouse=True)
def root_logger_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_json_line_carries_event_fields_service_and_trace() -> None:
    out = io.StringIO()
    configure_logging("gateway", "info", "json", out)
    with TracerProvider(shutdown_on_exit=False).get_tracer("t").start_as_current_span("s") as span:
        logging.getLogger("trunkline_gateway.ws").info("attached", extra={"session": "ses_1", "clients": 2})
        wanted = format(span.get_span_context().trace_id, "032x")
    line = json.loads(out.getvalue())
    assert line["event"] == "attached"
    assert (line["session"], line["clients"], line["level"]) == ("ses_1", 2, "info")
    assert (line["service"], line["logger"], line["trace_id"]) == ("gateway", "trunkline_gateway.ws", wanted)


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_values_of_secret_keys_are_masked(log_format: str) -> None:
    out = io.StringIO()
    configure_logging("x", "info", log_format, out)  # type: ignore[arg-type]  # the parameter is one of the two
    logging.getLogger("a").warning("refused", extra={"token": "hunter2", "Authorization": "Bearer hunter2"})
    assert "refused" in out.getvalue()
    assert "hunter2" not in out.getvalue()


def test_the_level_holds_and_a_second_call_replaces_the_first() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure_logging("x", "info", "json", first)
    configure_logging("x", "error", "json", second)
    logging.getLogger("a").info("quiet")
    logging.getLogger("a").error("loud")
    assert first.getvalue() == ""
    assert [json.loads(line)["event"] for line in second.getvalue().splitlines()] == ["loud"]


def test_an_exception_is_one_line_of_json() -> None:
    out = io.StringIO()
    configure_logging("x", "info", "json", out)
    try:
        raise ValueError("odd")
    except ValueError:
        logging.getLogger("a").exception("failed")
    lines = out.getvalue().splitlines()
    assert len(lines) == 1
    assert "ValueError: odd" in json.loads(lines[0])["exception"]


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_of_an_exception_no_values_are_shown(log_format: str) -> None:
    out = io.StringIO()
    configure_logging("x", "info", log_format, out)  # type: ignore[arg-type]  # the parameter is one of the two
    key = "hunter" + str(2)
    try:
        raise ValueError(len(key))
    except ValueError:
        logging.getLogger("a").exception("failed")
    assert "ValueError: 7" in out.getvalue()
    assert key not in out.getvalue()


def test_a_console_line_is_the_time_the_level_the_event_the_logger_and_the_fields() -> None:
    out = io.StringIO()
    configure_logging("teams", "info", "console", out)
    record = logging.makeLogRecord({"name": "a.b", "levelno": 20, "levelname": "INFO", "msg": "ready", "created": 0.25})
    vars(record).update(session="ses_1", why="two words", count=2)
    logging.getLogger("a.b").handle(record)
    assert out.getvalue() == (
        "1970-01-01T00:00:00.250000Z [info] ready [a.b] count=2 service=teams session=ses_1 why='two words'\n"
    )
