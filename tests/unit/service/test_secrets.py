"""No repr shows a secret, of any struct of the packages that have them: a log, a traceback or a failed assertion would."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import trunkline_agentkit
import trunkline_client
import trunkline_extensions
import trunkline_gateway
import trunkline_relay
import trunkline_seal
import trunkline_service
from trunkline_wire.secret import MASK, Discreet, Secret, SecretBytes, secret_fields

PACKAGES = (
    trunkline_agentkit,
    trunkline_client,
    trunkline_extensions,
    trunkline_gateway,
    trunkline_relay,
    trunkline_seal,
    trunkline_service,
)
NAMES = {"seed", "secret", "token", "key", "auth", "endpoint", "invitation", "code", "pair", "password"}
"""What fields with secrets are called."""
OPEN = {
    "trunkline_agentkit.agent_process.Exit.code": "a process's",
    "trunkline_agentkit.jsonrpc.RpcError.code": "an error's",
    "trunkline_client.relayed.Refusal.code": "an error's",
    "trunkline_client.sealed._Closed.code": "a WebSocket's",
    "trunkline_extensions.client._Error.code": "an error's",
    "trunkline_gateway.methods.push._Key.key": "public: what browsers subscribe with",
    "trunkline_gateway.roles.Principal.token": "names the token's record",
    "trunkline_gateway.tickets.Ticket.token": "names the token's record",
    "trunkline_relay.between.Answer.code": "an error's",
    "trunkline_relay.between.End.code": "an error's",
    "trunkline_relay.bridge.Closed.code": "a WebSocket's",
    "trunkline_relay.pairing.Arrived.code": "the six digits, which people compare on two screens",
    "trunkline_relay.pairing.NotDone.code": "an error's",
    "trunkline_relay.server_settings.ServerSettings.key": "a file's path",
    "trunkline_seal.control.Failed.code": "an error's",
}


def structs() -> dict[str, type[msgspec.Struct]]:
    """All of the packages, by module and name."""
    for package in PACKAGES:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    roots = tuple(f"{package.__name__}." for package in PACKAGES)
    found = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in _below(msgspec.Struct)}
    return {name: kind for name, kind in found.items() if name.startswith(roots)}


def _below(kind: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for one in kind.__subclasses__():
        yield one
        yield from _below(one)


def test_what_is_called_as_secrets_are_is_marked_or_known_to_be_none() -> None:
    unmarked = {
        f"{name}.{field}"
        for name, kind in structs().items()
        for field in NAMES.intersection(kind.__struct_fields__) - secret_fields(kind)
    }
    assert unmarked == OPEN.keys()


def test_what_is_marked_is_in_no_repr() -> None:
    marked = {name: kind for name, kind in structs().items() if secret_fields(kind)}
    assert len(marked) > 20
    for name, kind in marked.items():
        values = {field: f"<{field}>" for field in kind.__struct_fields__}
        made: Any = kind(**values)
        for shown in (repr(made), str(made), repr(made.__rich_repr__())):
            for field in kind.__struct_fields__:
                assert (f"<{field}>" in shown) == (field not in secret_fields(kind)), name
                assert field in shown


class _Nested(Discreet, frozen=True, kw_only=True):
    plain: int
    text: Secret
    maybe: Secret | None = None
    many: list[SecretBytes] = []


def test_a_mark_counts_wherever_it_is_in_a_type() -> None:
    made = _Nested(plain=1, text="x", many=[b"y"])
    assert secret_fields(_Nested) == {"text", "maybe", "many"}
    assert repr(made) == f"_Nested(plain=1, text={MASK!r}, maybe={MASK!r}, many={MASK!r})"


@pytest.mark.parametrize("raw", [b'{"plain":"value","text":"x"}', b'{"plain":1,"text":7}'])
def test_what_does_not_decode_is_told_without_its_values(raw: bytes) -> None:
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.json.decode(raw, type=_Nested)
    assert "value" not in str(refused.value)
