"""`session.<verb>`: each verb of a command as a method with parameters of its own."""

from collections.abc import Callable
from typing import Any, Final, cast

import msgspec

from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.methods.sessions import NEW_TURN_VERBS, CommandSent, require_verb, send
from trunkline_gateway.privileges import role_for_verb
from trunkline_gateway.registry import Params, method
from trunkline_wire import Data
from trunkline_wire.commands import VERBS, Fork
from trunkline_wire.ids import check_id, new_session_id

_SUMMARIES: Final = {
    "set_model": "Use another model from the next turn on; `session.get` names those that there are.",
    "set_mode": "Change the agent's mode; `session.get` names those that there are.",
    "set_thinking": "How much the model may think before it answers.",
    "run_command": "Run one of the agent's own slash commands.",
    "rewind": "Put files back to the state before a user message.",
    "compact": "Have the agent summarize the conversation, to make room in its context.",
    "reset": "Leave the agent's conversation behind: the next prompt begins a new one, in the same session and history.",
    "rename": "Give the session another title.",
    "archive": "Put the session out of the way; nothing of it is lost.",
    "unarchive": "Bring an archived session back.",
    "hand_over": "Go on in the agent's own terminal, or take the session back from there.",
    "resume": "Reopen a closed session.",
    "kill": "End the session's agent whatever its owner does: its process group is killed, the session is closed.",
    "native": "A request in the agent's own protocol.",
}


class _Common(Params, frozen=True, kw_only=True):
    """`id` makes a repetition harmless; with `wait` the answer has the command's outcome."""

    session: str
    id: str | None = None
    wait: bool = False


def _default(field: msgspec.structs.FieldInfo) -> tuple[Any, ...]:
    if field.required:
        return ()
    if field.default is not msgspec.NODEFAULT:
        return (field.default,)
    return (msgspec.field(default_factory=cast("Callable[[], Any]", field.default_factory)),)


def _register(verb: str, kind: type[Data]) -> None:
    fields = msgspec.structs.fields(kind)
    names = [field.name for field in fields]
    own: list[Any] = [(field.name, field.type, *_default(field)) for field in fields]
    params: Any = msgspec.defstruct(
        f"{kind.__name__}Params", own, bases=(_Common,), kw_only=True, frozen=True, module=__name__
    )

    async def handler(gateway: Gateway, caller: Caller, given: Any) -> CommandSent:
        await require_verb(gateway, caller, verb)
        if verb in NEW_TURN_VERBS:
            gateway.require_room()
        data = kind(**{name: getattr(given, name) for name in names})
        return await send(gateway, caller, given.session, data, id=given.id, wait=given.wait)

    handler.__doc__ = _SUMMARIES[verb]
    method(f"session.{verb}", role_for_verb(verb), params)(handler)


for _verb in _SUMMARIES:
    _register(_verb, VERBS[_verb])


class ForkParams(_Common, frozen=True, kw_only=True):
    new: str | None = None
    at: str | None = None
    prompt: str | None = None


class Forked(CommandSent):
    session: str


@method("session.fork", "participant", ForkParams)
async def fork(gateway: Gateway, caller: Caller, params: ForkParams) -> Forked:
    """A new session with this one's history, or with what came before the prompt `at`. Its id is `new`, or made here."""
    new = check_id(params.new, "ses") if params.new is not None else new_session_id()
    gateway.require_room()
    data = Fork(session=new, at=params.at, prompt=params.prompt)
    sent = await send(gateway, caller, params.session, data, id=params.id, wait=params.wait)
    return {**sent, "session": new}
