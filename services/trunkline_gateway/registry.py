"""The registry of methods: name -> parameters, the role it needs, and the handler. Filled by `trunkline_gateway.methods`."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import msgspec

from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.roles import Limited, Role
from trunkline_wire import TrunklineError

P = TypeVar("P", bound="Params")
T = TypeVar("T")


class Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a method. Strict: what is missing, unknown or of the wrong type is refused by name."""


Handler = Callable[[Gateway, Caller, Any], Awaitable[Any]]


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """`acts_as_person`: refused to processes of agents, whatever token they hold. `limited`: to tokens with a scope."""

    name: str
    role: Role
    params: type[Params] | type[dict[str, Any]]
    handler: Handler
    acts_as_person: bool
    limited: Limited
    summary: str


METHODS: Final[dict[str, Method]] = {}

_FIELD: Final = re.compile(r"field `([^`]+)`|at `\$\.([^`]+)`")


def method(
    name: str, role: Role, params: type[P], *, acts_as_person: bool = False, limited: Limited | None = None
) -> Callable[[Callable[[Gateway, Caller, P], Awaitable[Any]]], Callable[[Gateway, Caller, P], Awaitable[Any]]]:
    """Registers the decorated function as the handler of `name`; its docstring is the method's description.

    Without a word on scopes a method of one session is checked, and any other is refused to limited tokens.
    """
    of_session = any(field.name == "session" and field.required for field in msgspec.structs.fields(params))

    def register(
        handler: Callable[[Gateway, Caller, P], Awaitable[Any]],
    ) -> Callable[[Gateway, Caller, P], Awaitable[Any]]:
        METHODS[name] = Method(
            name=name,
            role=role,
            params=params,
            handler=handler,
            acts_as_person=acts_as_person,
            limited=limited or ("session" if of_session else "never"),
            summary=(handler.__doc__ or "").strip(),
        )
        return handler

    return register


def read_params(kind: type[T], raw: Any) -> T:
    """Raises TrunklineError `bad_params` naming the field."""
    try:
        if isinstance(raw, msgspec.Raw):
            return msgspec.json.decode(raw, type=kind)
        return msgspec.convert(raw, kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        found = _FIELD.search(str(error))
        details = {} if found is None else {"field": found[1] or found[2]}
        raise TrunklineError("bad_params", f"wrong parameters: {error}", **details) from error
