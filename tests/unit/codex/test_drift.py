"""Every name of the tested version's protocol is handled, and what a newer one brings is named."""

from trunkline_adapters.codex import drift
from trunkline_adapters.codex.native import ASKING, BEGINNING, KNOWN, OPENING, TRANSLATED


def test_all_that_the_tested_version_says_is_handled() -> None:
    assert drift.unhandled(drift.reviewed()) == {}


def test_nothing_is_both_translated_and_known_to_mean_nothing() -> None:
    assert not KNOWN & TRANSLATED
    assert ASKING <= TRANSLATED


def test_no_name_is_listed_that_the_tested_version_does_not_have() -> None:
    names = drift.reviewed()
    assert {*names["notifications"], *names["requests"]} >= KNOWN | TRANSLATED
    assert {*names["methods"]} >= BEGINNING | OPENING


def test_news_are_named() -> None:
    before = {"items": ["plan", "sleep"], "methods": ["thread/start"]}
    now = {"items": ["dream", "plan"], "methods": ["thread/start"]}
    assert drift.news(now, before) == {"items": (["dream"], ["sleep"])}
    assert drift.unhandled({"items": ["dream"], "notifications": ["item/dream"], "requests": []}) == {
        "items": ["dream"],
        "notifications": ["item/dream"],
    }


def test_what_is_new_is_said_in_lines() -> None:
    names = drift.reviewed()
    assert drift.lines(names) == []
    now = names | {
        "notifications": [*names["notifications"], "dream/started"],
        "methods": [*names["methods"][1:], "dream/start"],
    }
    assert drift.lines(now) == [
        "new notifications without a translation: dream/started",
        "new methods: dream/start",
        f"methods that are gone: {names['methods'][0]}",
    ]


def test_names_are_read_from_a_generated_schema() -> None:
    def methods(*names: str) -> dict[str, object]:
        return {"oneOf": [{"properties": {"method": {"enum": [name]}}} for name in names]}

    item = {"properties": {"type": {"enum": ["plan"]}}}
    files = {
        "ClientRequest.json": methods("turn/start", "thread/start"),
        "ServerNotification.json": methods("error"),
        "ServerRequest.json": methods("item/tool/call"),
        drift.BUNDLE: {"definitions": {"ThreadItem": {"oneOf": [item]}}},
    }
    assert drift.names_of(files) == {
        "methods": ["thread/start", "turn/start"],
        "notifications": ["error"],
        "requests": ["item/tool/call"],
        "items": ["plan"],
    }
