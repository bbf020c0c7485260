"""`GET /api/v1/blobs/<sha256>`: a large value, a part at a time, however large it is."""

import hashlib
import logging

from aiohttp import web

from trunkline_bus.blobs import Blobs
from trunkline_gateway.access import Access
from trunkline_gateway.gateway import Gateway
from trunkline_gateway.methods.blobs import check_name
from trunkline_service.web import HEADERS

log = logging.getLogger(__name__)


class BlobRoute:
    """Bytes that an agent made: no browser may take them for a page of ours."""

    def __init__(self, gateway: Gateway, access: Access) -> None:
        self._blobs = Blobs(gateway.bus)
        self._access = access

    async def get(self, request: web.Request) -> web.StreamResponse:
        principal = await self._access.require(request)
        self._access.count(request, principal, 0)
        name = check_name(request.match_info["sha256"])
        part = await self._blobs.part(name)
        response = web.StreamResponse(
            headers={
                **HEADERS,
                "Content-Type": "application/octet-stream",
                "Content-Disposition": f'attachment; filename="{name}"',
                "Content-Length": str(part.size),
                "Cache-Control": "private, max-age=31536000, immutable",
            }
        )
        await response.prepare(request)
        digest = hashlib.sha256(part.data)
        await response.write(part.data)
        while part.next is not None:
            part = await self._blobs.part(name, part.next)
            digest.update(part.data)
            await response.write(part.data)
        if digest.hexdigest() != name:
            log.error("blob_damaged", extra={"sha256": name})
            if request.transport is not None:
                request.transport.abort()  # too late for an error: what has been sent is wrong
        return response
