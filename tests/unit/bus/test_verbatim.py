from trunkline_bus.verbatim import verbatim


def test_json_stays_as_the_agent_wrote_it() -> None:
    assert bytes(verbatim(b'{"b": 1,  "a":2}')) == b'{"b": 1,  "a":2}'


def test_a_lone_surrogate_is_replaced() -> None:
    assert bytes(verbatim(rb'{"a": "\ud800"}')) == rb'{"a": "\ufffd"}'


def test_what_is_no_json_becomes_a_string() -> None:
    assert bytes(verbatim(b"Welcome!\n")) == rb'"Welcome!\n"'
    assert bytes(verbatim(b'{"cut": ')) == rb'"{\"cut\": "'


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    assert bytes(verbatim(b'"\xff"')) == '"\\"\ufffd\\""'.encode()
