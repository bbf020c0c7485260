"""The generated schemas are current, and say the same as the codec about events of every type."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from trunkline_client import api
from trunkline_gateway.client_source import sources
from trunkline_testkit import strategies
from trunkline_wire import CATALOGUE, Event, encode
from trunkline_wire.asyncapi import asyncapi
from trunkline_wire.codec import decode_command, decode_event
from trunkline_wire.commands import VERBS, make_command
from trunkline_wire.errors import TrunklineError
from trunkline_wire.events import AGENT_ASKS, AGENT_FACTS, DELTA_TYPES, PERMISSION_EVENTS, TEAM_EVENTS
from trunkline_wire.export import DIRECTORY, documents, main, stale

SESSION = "ses_" + "0" * 32

EVENTS_SCHEMA: dict[str, Any] = json.loads((DIRECTORY / "events.schema.json").read_bytes())
COMMANDS_SCHEMA: dict[str, Any] = json.loads((DIRECTORY / "commands.schema.json").read_bytes())
ASYNCAPI: dict[str, Any] = json.loads((DIRECTORY / "asyncapi.json").read_bytes())


def of_type(schema: dict[str, Any], name: str) -> Draft202012Validator:
    """A validator for one member of the union: faster, and its errors name the field."""
    return Draft202012Validator({"$ref": schema["discriminator"]["mapping"][name], "$defs": schema["$defs"]})


VALIDATORS = {name: of_type(EVENTS_SCHEMA, name) for name in CATALOGUE}

every_event: st.SearchStrategy[Event] = st.sampled_from(sorted(CATALOGUE)).flatmap(
    lambda name: strategies.events(CATALOGUE[name], session=SESSION)
)


def test_committed_schemas_are_what_the_classes_say() -> None:
    assert stale() == [], "run `just schema`"


def test_the_methods_of_the_python_client_are_current() -> None:
    folder = Path(api.__file__).parent
    assert {name: (folder / name).read_text() for name in sources()} == sources(), "run `just schema`"


def test_check_tells_a_stale_file_and_writing_mends_it(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == set(documents())
    (tmp_path / "asyncapi.json").write_text("{}")
    assert main(["--check", str(tmp_path)]) == 1
    assert stale(tmp_path) == ["asyncapi.json"]


def test_schemas_are_schemas() -> None:
    Draft202012Validator.check_schema(EVENTS_SCHEMA)
    Draft202012Validator.check_schema(COMMANDS_SCHEMA)
    assert len(EVENTS_SCHEMA["oneOf"]) == len(CATALOGUE)
    assert len(COMMANDS_SCHEMA["oneOf"]) == len(VERBS)


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_sample_events_of_every_type_are_valid_and_mutilated_ones_are_not(name: str) -> None:
    @settings(max_examples=15, database=None)
    @given(strategies.events(CATALOGUE[name], session=SESSION))
    def check(event: Event) -> None:
        value = msgspec.json.decode(encode(event))
        VALIDATORS[name].validate(value)
        for field in ("id", "v", "session", "time", "data", "type"):
            less = {key: entry for key, entry in value.items() if key != field}
            assert not VALIDATORS[name].is_valid(less)
        for info in msgspec.structs.fields(CATALOGUE[name]):
            if info.required:
                data = {key: entry for key, entry in value["data"].items() if key != info.encode_name}
                assert not VALIDATORS[name].is_valid({**value, "data": data})
                with pytest.raises(TrunklineError):
                    decode_event(json.dumps({**value, "data": data}).encode())
        assert not VALIDATORS[name].is_valid({**value, "type": "moon.landed"})

    check()


def test_the_whole_union_takes_an_event_of_every_type_once() -> None:
    validator = Draft202012Validator(EVENTS_SCHEMA)
    value = {"id": "e", "v": 1, "session": SESSION, "time": "t", "type": "turn.started", "data": {"number": 1}}
    assert validator.is_valid(value)
    assert not validator.is_valid({**value, "data": {"number": "one"}})
    assert not validator.is_valid({**value, "type": "session.closed"})


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_sample_commands_of_every_verb_are_valid_and_decode(verb: str) -> None:
    validator = of_type(COMMANDS_SCHEMA, verb)

    @settings(max_examples=15, database=None)
    @given(strategies.datas(VERBS[verb]))
    def check(args: Any) -> None:
        raw = encode(make_command(args, id="cmd_1", session=SESSION, time="2026-11-27T00:00:00.000000Z"))
        validator.validate(msgspec.json.decode(raw))
        assert decode_command(raw).args == args

    check()


def test_asyncapi_names_every_type_where_it_is_written() -> None:
    on = {name: set(channel["messages"]) for name, channel in ASYNCAPI["channels"].items()}
    assert on["facts"] == {kind.TYPE for kind in AGENT_FACTS}
    assert on["asks"] == {kind.TYPE for kind in AGENT_ASKS}
    assert on["permission"] == {kind.TYPE for kind in PERMISSION_EVENTS}
    assert on["team"] == {kind.TYPE for kind in TEAM_EVENTS}
    assert on["deltas"] == {kind.TYPE for kind in DELTA_TYPES}
    assert on["commands"] == {"Command"}


def test_asyncapi_has_no_dangling_reference_and_no_channel_without_operation() -> None:
    document = asyncapi()

    def references(value: Any) -> list[str]:
        match value:
            case dict():
                own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
                return own + [ref for entry in value.values() for ref in references(entry)]
            case list():
                return [ref for entry in value for ref in references(entry)]
            case _:
                return []

    for reference in set(references(document)):
        at: Any = document
        for part in reference.removeprefix("#/").split("/"):
            at = at[part]
    operated = {operation["channel"]["$ref"].split("/")[-1] for operation in document["operations"].values()}
    assert operated == set(document["channels"])


def test_addresses_are_those_of_the_subjects_module() -> None:
    """Spelled by hand from the table of subjects."""
    assert {name: channel["address"] for name, channel in ASYNCAPI["channels"].items()} == {
        "facts": "trunk.ev.{partition}.{session}.agent.fact",
        "asks": "trunk.ev.{partition}.{session}.agent.ask",
        "permission": "trunk.ev.{partition}.{session}.permission",
        "team": "trunk.ev.{partition}.{session}.team",
        "deltas": "trunk.delta.{partition}.{session}",
        "commands": "trunk.cmd.{session}.{user}",
        "answers": "trunk.answer.{session}.{user}",
        "spawn": "trunk.spawn.{host}.{adapter}",
        "observed": "trunk.obs.{host}",
        "system": "trunk.sys.{kind}",
        "dead_letters": "trunk.dlq.{service}",
    }


def test_descriptions_come_from_the_classes() -> None:
    tool = EVENTS_SCHEMA["$defs"]["PermissionRequested"]["properties"]["tool"]
    assert tool["description"] == "Item id of the tool call."
    seq = EVENTS_SCHEMA["$defs"]["TurnStartedEvent"]["properties"]["seq"]
    assert "over the session's agent events" in seq["description"]
    assert EVENTS_SCHEMA["$defs"]["TeamMessage"]["required"] == ["team", "from"]
