"""The methods of extensions as methods of the gateway, with the same checks."""

from typing import Any, Final
from urllib.parse import quote

from trunkline_gateway.extensions import CALL_S, Offer
from trunkline_gateway.gateway import Caller, Gateway
from trunkline_gateway.methods import ALL
from trunkline_gateway.registry import Method

_HEADER_SAFE: Final = " !#$&'()*+,/:;=?@[]~"


def all_methods(gateway: Gateway) -> dict[str, Method]:
    """The gateway's own, and what the extensions that answer offer now."""
    return {**ALL, **{offer.name: _method(offer) for offer in gateway.extensions.offers}}


async def find(gateway: Gateway, name: str) -> Method | None:
    """A method by its name. Raises TrunklineError `unknown_extension`, `unknown_method` for an extension's."""
    if name.startswith("ext."):
        return _method(await gateway.extensions.offer(name))
    return ALL.get(name)


def headers_of(caller: Caller, method: str) -> dict[str, str]:
    """Who calls, as headers; a name that is not plain ASCII is percent-encoded."""
    principal = caller.principal
    return {
        "Trunk-Actor": quote(principal.actor, safe=_HEADER_SAFE),
        "Trunk-Role": principal.role,
        "Trunk-Via": principal.via,
        "Trunk-Method": method,
    }


def _method(offer: Offer) -> Method:
    extension = offer.name.split(".")[1]

    async def handler(gateway: Gateway, caller: Caller, params: dict[str, Any]) -> Any:
        return await gateway.extensions.request(
            extension, offer.subject, params, headers_of(caller, offer.name), CALL_S
        )

    return Method(
        name=offer.name,
        role=offer.role,
        params=dict[str, Any],
        result=Any,
        handler=handler,
        acts_as_person=offer.role in {"approver", "owner"},
        limited=offer.limited,
        summary=offer.summary,
    )
