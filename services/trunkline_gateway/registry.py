"""The registry of methods: name -> parameters, the role it needs, and the handler. Filled by `trunkline_gateway.methods`."""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Final, TypedDict, TypeVar

import msgspec

from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.roles import Limited, Role
from trunkline_wire import TrunklineError
from trunkline_wire.secret import Discreet

P = TypeVar("P", bound="Params")
T = TypeVar("T")


class Params(Discreet, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a method. Strict: what is missing, unknown or of the wrong type is refused by name."""


PAGE: Final = 50
MAX_PAGE: Final = 500


class Paged(Params, frozen=True, kw_only=True):
    """The parameters of a list: up to `limit` entries (MAX_PAGE at most), from the one with the number `offset` on."""

    limit: int = PAGE
    offset: int = 0


class Page(TypedDict):
    """What the answer of a list has beside its entries; `total` counts them all."""

    total: int
    has_more: bool


StoredEvent = Annotated[Any, msgspec.Meta(title="KnownEvent")]
"""An event as it is stored; those of later versions may be of types that this one does not know."""


class EventAt(TypedDict):
    """An event, and the cursor that goes on behind it."""

    cursor: str
    event: StoredEvent


def page_of(found: Sequence[T], wanted: Paged) -> tuple[list[T], Page]:
    """One page of a list, and what its answer says beside it. Raises TrunklineError `bad_params`."""
    if wanted.limit < 1 or wanted.offset < 0:
        field = "limit" if wanted.limit < 1 else "offset"
        raise TrunklineError("bad_params", "limit must be 1 or more, offset 0 or more", field=field)
    page = list(found[wanted.offset : wanted.offset + min(wanted.limit, MAX_PAGE)])
    return page, {"total": len(found), "has_more": wanted.offset + len(page) < len(found)}


Handler = Callable[[Gateway, Caller, Any], Awaitable[Any]]


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """`acts_as_person`: refused to processes of agents, whatever token they hold. `limited`: to tokens with a scope.

    `result` is the type of what it answers: a TypedDict, or Any of an extension's.
    """

    name: str
    role: Role
    params: type[Params] | type[dict[str, Any]]
    result: Any
    handler: Handler
    acts_as_person: bool
    limited: Limited
    summary: str


METHODS: Final[dict[str, Method]] = {}

_FIELD: Final = re.compile(r"field `([^`]+)`|at `\$\.([^`]+)`")


def method(
    name: str, role: Role, params: type[P], *, acts_as_person: bool = False, limited: Limited | None = None
) -> Callable[[Callable[[Gateway, Caller, P], Awaitable[T]]], Callable[[Gateway, Caller, P], Awaitable[T]]]:
    """Registers the decorated function as the handler of `name`; its docstring is the method's description, and the type that
    it returns that of the answer.

    Without a word on scopes a method of one session is checked, and any other is refused to limited tokens.
    """
    of_session = any(field.name == "session" and field.required for field in msgspec.structs.fields(params))

    def register(
        handler: Callable[[Gateway, Caller, P], Awaitable[T]],
    ) -> Callable[[Gateway, Caller, P], Awaitable[T]]:
        METHODS[name] = Method(
            name=name,
            role=role,
            params=params,
            result=handler.__annotations__["return"],
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
