"""`blob.*`: what stands in an event as a reference because it is large."""

import base64
import re
from typing import Final, TypedDict

from trunkline_bus.blobs import Blobs
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.registry import Params, method
from trunkline_wire import TrunklineError

_SHA256: Final = re.compile(r"[0-9a-f]{64}")


class Get(Params, frozen=True, kw_only=True):
    sha256: str
    after: str | None = None
    """The `next` of the part before."""


def check_name(sha256: str) -> str:
    """Raises TrunklineError `bad_params` for what is no sha256 in hex."""
    if _SHA256.fullmatch(sha256) is None:
        raise TrunklineError("bad_params", "a blob is named by its sha256: 64 hex digits, lower-case", field="sha256")
    return sha256


class BlobPart(TypedDict):
    size: int
    data: str
    next: str | None


@method("blob.get", "viewer", Get, limited="itself")
async def get(gateway: Gateway, caller: Caller, params: Get) -> BlobPart:  # noqa: ARG001
    """A part of a large value: base64 in `data`, `size` of the whole in bytes, and `next` to ask for the following part.

    The name is the right to it: whoever knows the sha256 has been shown the reference, or has the value.
    `GET /api/v1/blobs/<sha256>` gives the whole as it is.
    """
    part = await Blobs(gateway.bus).part(check_name(params.sha256), params.after)
    return {"size": part.size, "data": base64.b64encode(part.data).decode(), "next": part.next}
