"""Tokens of an OpenID Connect provider: JWTs verified against the provider's published keys (RFC 7519, RFC 7517).

Imported only where a provider is set: the library takes a tenth of a second to load.
"""

import asyncio
import logging
import time
from typing import Any, Final

import aiohttp
import jwt
import msgspec

from trunkline_gateway.provider import LEEWAY_S, Provider, principal_of
from trunkline_gateway.roles import Principal
from trunkline_wire import TrunklineError

log = logging.getLogger(__name__)

ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a key pair only: whoever can verify must not be able to sign."""
FRESH_S: Final = 600.0
AGAIN_S: Final = 10.0
"""Least time between two fetches, so that tokens with unknown keys are no way to make us fetch."""
TIMEOUT: Final = aiohttp.ClientTimeout(total=10)
MAX_BYTES: Final = 1024 * 1024


class Oidc:
    """Verifies the tokens of one provider. Its keys are fetched when they are needed, and kept for FRESH_S."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched = -FRESH_S
        self._fetching = asyncio.Lock()

    def looks_like(self, token: str) -> bool:
        """Whether it has the form of a JWT; our own tokens have not."""
        return token.count(".") == 2

    async def principal(self, token: str) -> Principal:
        """Who the token stands for. Raises TrunklineError `unauthorized`, `forbidden` where the provider names no role."""
        try:
            header = jwt.get_unverified_header(token)
            key = await self._key(str(header.get("kid", "")))
            claims = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=self._provider.audience,
                issuer=self._provider.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iat", "sub"]},
            )
        except jwt.ExpiredSignatureError as error:
            raise TrunklineError("unauthorized", "the token has expired: sign in at your provider again") from error
        except (jwt.InvalidTokenError, jwt.PyJWKError) as error:
            # The library's messages name claims and algorithms, never the token.
            raise TrunklineError("unauthorized", f"the token is not accepted: {error}") from error
        return principal_of(claims, self._provider)

    async def _key(self, kid: str) -> jwt.PyJWK:
        now = time.monotonic()
        if kid not in self._keys or now - self._fetched > FRESH_S:
            async with self._fetching:
                since = time.monotonic() - self._fetched
                if since > FRESH_S or (kid not in self._keys and since > AGAIN_S):
                    await self._fetch()
        found = self._keys.get(kid)
        if found is None:
            raise TrunklineError("unauthorized", "the token is signed with a key that the provider does not publish")
        return found

    async def _fetch(self) -> None:
        self._fetched = time.monotonic()
        try:
            async with aiohttp.ClientSession(timeout=TIMEOUT) as http:
                discovery = f"{self._provider.issuer.rstrip('/')}/.well-known/openid-configuration"
                document = await _json(http, discovery)
                if document.get("issuer") != self._provider.issuer:
                    log.warning("oidc_issuer_differs", extra={"configured": self._provider.issuer})
                    return
                keys = await _json(http, str(document["jwks_uri"]))
            self._keys = {str(key.key_id): key for key in jwt.PyJWKSet.from_dict(keys).keys if key.key_id}
        except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, jwt.PyJWKSetError) as error:
            # The keys that are known go on to count: a provider that is away must not sign everybody out.
            log.warning("oidc_keys_not_fetched", extra={"issuer": self._provider.issuer, "error": str(error)})


async def _json(http: aiohttp.ClientSession, url: str) -> dict[str, Any]:
    async with http.get(url) as answer:
        answer.raise_for_status()
        raw = await answer.content.read(MAX_BYTES)
        return msgspec.json.decode(raw, type=dict[str, Any])
