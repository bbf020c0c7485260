"""What a thread holds, page by page: Codex gives whole histories no more."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from trunkline_agentkit import unsupported
from trunkline_agentkit.fields import Obj, objects, text
from trunkline_wire import TrunklineError
from trunkline_wire.ids import is_id

Request = Callable[[str, Any], Awaitable[Obj]]

_PAGE: Final = 50
_PAGES: Final = 200


async def turn_of(request: Request, thread: str, wanted: str) -> str:
    """The id of the turn that a prompt has begun: `wanted` is the id of the prompt's command, or of the turn itself.

    Raises TrunklineError `bad_params` where the thread has no such turn, `unsupported` for an item that is no prompt's.
    """
    if is_id(wanted, "itm"):
        raise unsupported("fork", f"Codex copies a thread up to a prompt: {wanted!r} is not the item of one")
    cursor: str | None = None
    for _ in range(_PAGES):
        params: dict[str, Any] = {"threadId": thread, "limit": _PAGE, "sortDirection": "desc", "itemsView": "summary"}
        page = await request("thread/turns/list", params if cursor is None else params | {"cursor": cursor})
        for turn in objects(page, "data"):
            prompts = {text(item, "clientId") for item in objects(turn, "items")}
            if (id := text(turn, "id")) is not None and wanted in {id, *prompts}:
                return id
        cursor = text(page, "nextCursor")
        if cursor is None:
            break
    raise TrunklineError("bad_params", f"{wanted!r} is neither a prompt nor a turn of Codex's thread")
