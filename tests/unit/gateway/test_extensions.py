"""What an extension may offer, and who an extension is when it asks."""

import pytest

from trunkline_gateway.api import read_subject
from trunkline_gateway.extensions import ServiceInfo, understand
from trunkline_wire import TrunklineError


def info(name: str, *endpoints: dict[str, object]) -> ServiceInfo:
    import msgspec

    return msgspec.convert({"name": name, "id": "x", "version": "1.0.0", "endpoints": list(endpoints)}, ServiceInfo)


def test_the_role_is_the_owners_unless_the_endpoint_names_one() -> None:
    found = understand(
        info(
            "ext-bot",
            {"name": "a", "subject": "trunk.ext.bot.plain"},
            {"name": "b", "subject": "trunk.ext.bot.seen", "metadata": {"role": "viewer", "limited": "session"}},
            {"name": "c", "subject": "trunk.ext.bot.deliver", "metadata": {"internal": "true"}},
        )
    )
    assert [(one.name, one.role, one.limited) for one in found.methods] == [
        ("ext.bot.plain", "owner", "never"),
        ("ext.bot.seen", "viewer", "session"),
    ]
    assert found.refused == []


@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        ({"subject": "trunk.ext.other.x"}, "trunk.ext.bot"),
        ({"subject": "trunk.cmd.ses.bot"}, "trunk.ext.bot"),
        ({"subject": "trunk.ext.bot.x", "metadata": {"role": "root"}}, "'root'"),
        ({"subject": "trunk.ext.bot.x", "metadata": {"limited": "itself"}}, "limited"),
        ({"subject": "trunk.ext.bot.X y"}, "trunk.ext.bot"),
    ],
)
def test_what_does_not_fit_is_no_method(endpoint: dict[str, object], why: str) -> None:
    found = understand(info("ext-bot", {"name": "x", **endpoint}))
    assert found.methods == []
    assert why in found.refused[0]


@pytest.mark.parametrize("name", ["bot", "ext-", "ext-Bot", "ext-a.b", "trunkline-gateway"])
def test_a_service_of_another_name_is_no_extension(name: str) -> None:
    with pytest.raises(TrunklineError, match="bad_id"):
        understand(info(name))


def test_the_subject_says_who_asks_and_with_which_right() -> None:
    principal, method = read_subject("trunk.api.bot.participant.session.prompt")
    assert (principal.actor, principal.role, principal.via, principal.extension) == (
        "ext:bot",
        "participant",
        "nats",
        "bot",
    )
    assert method == "session.prompt"
    assert read_subject("trunk.api.bot.emit.extension.emit")[1] == "extension.emit"


@pytest.mark.parametrize(
    "subject",
    [
        "trunk.api.bot.owner.token.create",
        "trunk.api.bot.emit.session.prompt",
        "trunk.api.bot.itself.session.list",
        "trunk.api.bot.itself",
        "trunk.api.bot",
    ],
)
def test_a_right_reaches_its_methods_only(subject: str) -> None:
    with pytest.raises(TrunklineError, match="forbidden"):
        read_subject(subject)
