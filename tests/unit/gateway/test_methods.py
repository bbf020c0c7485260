"""The registry: what is needed to call what, and what parameters are refused."""

import pytest

from trunkline_gateway.methods import ALL
from trunkline_gateway.methods.sessions import One, check_content, read_args
from trunkline_gateway.openapi import document
from trunkline_gateway.registry import Limited, read_params
from trunkline_gateway.roles import Principal, Role
from trunkline_wire import TrunklineError
from trunkline_wire.blocks import ImageBlock, TextBlock
from trunkline_wire.commands import SetModel

RIGHTS: dict[str, tuple[Role, Limited]] = {
    "adapter.list": ("viewer", "itself"),
    "agent.list": ("viewer", "itself"),
    "ask.answer": ("approver", "itself"),
    "ask.answer_many": ("approver", "itself"),
    "ask.history": ("viewer", "itself"),
    "ask.list": ("viewer", "itself"),
    "ask.nonce": ("approver", "itself"),
    "ask.revoke": ("approver", "session"),
    "ask.rules": ("viewer", "session"),
    "ask.link": ("approver", "itself"),
    "blob.get": ("viewer", "itself"),
    "device.invite": ("owner", "never"),
    "device.list": ("viewer", "itself"),
    "device.pair": ("owner", "never"),
    "device.push": ("viewer", "itself"),
    "device.register": ("viewer", "itself"),
    "device.rename": ("viewer", "itself"),
    "device.revoke": ("viewer", "itself"),
    "device.seen": ("owner", "never"),
    "event.list": ("viewer", "itself"),
    "extension.config": ("viewer", "never"),
    "extension.dead_letter": ("viewer", "never"),
    "extension.emit": ("viewer", "session"),
    "extension.list": ("viewer", "itself"),
    "extension.page": ("viewer", "never"),
    "host.directories": ("participant", "never"),
    "overview.get": ("owner", "never"),
    "policy.get": ("approver", "never"),
    "policy.history": ("approver", "never"),
    "policy.test": ("approver", "never"),
    "presence.list": ("viewer", "itself"),
    "presence.typing": ("participant", "session"),
    "push.gone": ("viewer", "never"),
    "push.key": ("viewer", "itself"),
    "push.targets": ("viewer", "never"),
    "session.archive": ("participant", "session"),
    "session.close": ("participant", "session"),
    "session.command": ("participant", "session"),
    "session.compact": ("participant", "session"),
    "session.config": ("viewer", "session"),
    "session.create": ("participant", "itself"),
    "session.fork": ("participant", "session"),
    "session.get": ("viewer", "session"),
    "session.hand_over": ("approver", "session"),
    "session.history": ("viewer", "session"),
    "session.info": ("viewer", "session"),
    "session.interrupt": ("participant", "session"),
    "session.kill": ("owner", "session"),
    "session.list": ("viewer", "itself"),
    "session.native": ("owner", "session"),
    "session.prompt": ("participant", "session"),
    "session.rename": ("participant", "session"),
    "session.reset": ("participant", "session"),
    "session.resume": ("participant", "session"),
    "session.rewind": ("participant", "session"),
    "session.run_command": ("participant", "session"),
    "session.set_mode": ("approver", "session"),
    "session.set_model": ("participant", "session"),
    "session.set_thinking": ("participant", "session"),
    "session.unarchive": ("participant", "session"),
    "sign_in.link": ("owner", "never"),
    "team.board": ("viewer", "itself"),
    "team.get": ("viewer", "itself"),
    "team.list": ("viewer", "itself"),
    "team.messages": ("viewer", "itself"),
    "team.shutdown": ("participant", "itself"),
    "team.usage": ("viewer", "itself"),
    "terminal.close": ("participant", "session"),
    "terminal.input": ("participant", "session"),
    "terminal.list": ("viewer", "itself"),
    "terminal.open": ("participant", "session"),
    "terminal.release": ("participant", "session"),
    "terminal.resize": ("participant", "session"),
    "terminal.screen": ("viewer", "session"),
    "terminal.shell": ("owner", "session"),
    "terminal.take": ("participant", "session"),
    "token.create": ("owner", "never"),
    "token.list": ("owner", "never"),
    "token.revoke": ("owner", "never"),
    "usage.get": ("viewer", "itself"),
    "worker.list": ("viewer", "itself"),
    "workspace.get": ("viewer", "itself"),
    "workspace.get_or_create": ("participant", "itself"),
    "workspace.list": ("viewer", "itself"),
}


def test_every_method_needs_the_role_it_should() -> None:
    assert {name: (method.role, method.limited) for name, method in ALL.items()} == RIGHTS
    persons = {
        "ask.answer",
        "ask.link",
        "ask.nonce",
        "ask.answer_many",
        "ask.revoke",
        "device.invite",
        "device.pair",
        "device.push",
        "device.register",
        "device.rename",
        "device.revoke",
        "terminal.input",
        "terminal.release",
        "terminal.resize",
        "terminal.take",
    }
    assert {name for name, method in ALL.items() if method.acts_as_person} == persons


def test_every_method_says_what_it_does() -> None:
    assert [name for name, method in ALL.items() if not method.summary] == []
    assert set(document("1", ALL)["paths"]) == {f"/api/v1/{name}" for name in ALL}


@pytest.mark.parametrize("role", ["viewer", "participant", "approver", "owner"])
def test_roles_nest(role: Role) -> None:
    order: list[Role] = ["viewer", "participant", "approver", "owner"]
    principal = Principal(actor="a", role=role, via="tcp")
    for needed in order:
        if order.index(needed) <= order.index(role):
            principal.require(needed, "x")
        else:
            with pytest.raises(TrunklineError) as refused:
                principal.require(needed, "x")
            assert refused.value.code == "forbidden"


@pytest.mark.parametrize(
    ("raw", "field"),
    [({}, "session"), ({"session": 1}, "session"), ({"session": "x", "more": 1}, "more"), ([], None)],
)
def test_parameters_are_refused_by_name(raw: object, field: str | None) -> None:
    with pytest.raises(TrunklineError) as refused:
        read_params(One, raw)
    assert (refused.value.code, refused.value.details.get("field")) == ("bad_params", field)


def test_arguments_of_a_verb() -> None:
    assert read_args("set_model", {"model": "m"}) == SetModel(model="m")


def test_a_message_says_something_and_is_not_too_large() -> None:
    check_content([TextBlock(text=" x ")])
    check_content([ImageBlock(media_type="image/png", data="AAAA")])
    with pytest.raises(TrunklineError) as refused:
        check_content([TextBlock(text=" "), TextBlock(text="\n")])
    assert refused.value.code == "bad_params"
    check_content([TextBlock(text="€" * 130_000)])
    with pytest.raises(TrunklineError) as refused:
        check_content([TextBlock(text="€" * 137_000)])  # three bytes each: 411 kB
    assert refused.value.code == "too_large"
