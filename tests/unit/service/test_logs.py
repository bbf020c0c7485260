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
