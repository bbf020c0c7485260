"""The protocol's own words: versions, methods, error codes, and what a client says that it can do.

Source: agentclientprotocol.com, schema v1. A field that is unknown, or missing, never raises.
"""

from typing import Final

import msgspec

from trunkline_agentkit.fields import Obj, obj, truth
from trunkline_agentkit.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS
from trunkline_wire import TrunklineError

VERSION: Final = 1
PERMISSION: Final = "session/request_permission"
ELICITATION: Final = "elicitation/create"
UPDATE: Final = "session/update"
CANCEL_REQUEST: Final = "$/cancel_request"

AUTH_REQUIRED: Final = -32000
NOT_FOUND: Final = -32002
CODES: Final[dict[str, int]] = {
    "agent_auth": AUTH_REQUIRED,
    "unauthorized": AUTH_REQUIRED,
    "unknown_session": NOT_FOUND,
    "bad_id": INVALID_PARAMS,
    "bad_params": INVALID_PARAMS,
    "bad_directory": INVALID_PARAMS,
    "too_large": INVALID_PARAMS,
    "unsupported": INVALID_PARAMS,
    "unknown_adapter": INVALID_PARAMS,
}
"""Our error codes -> the protocol's; every other one is an internal error. Ours always stands in the error's `data`."""


class Able(msgspec.Struct, frozen=True, kw_only=True):
    """What the editor can do beyond the protocol's baseline, by its `clientCapabilities`."""

    forms: bool = False
    """`elicitation/create` with a form."""
    notices: bool = False
    """The update `notice`."""
    terminal_output: bool = False
    """Terminals that the agent runs, told in `_meta`: an extension of several editors, and no part of the schema."""


def able(client: Obj) -> Able:
    return Able(
        forms=obj(client, "elicitation").get("form") is not None,
        notices=obj(client, "session").get("notices") is not None,
        terminal_output=truth(obj(client, "_meta"), "terminal_output"),
    )


def code_of(error: TrunklineError) -> int:
    """The number that an error of ours has in the protocol."""
    return CODES.get(error.code, INTERNAL_ERROR)
