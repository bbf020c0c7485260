"""When a TLS server's certificate ends. Whether anybody trusts it is not asked: also one of a private authority expires."""

import asyncio
import contextlib
import ssl

from cryptography import x509


async def expiry(endpoint: str, within: float) -> float:
    """Of the server at `host:port`, in seconds since 1970. Raises OSError, TimeoutError, ValueError for no `host:port`."""
    host, _, port = endpoint.rpartition(":")
    if not host:
        raise ValueError(f"{endpoint!r} is not of the form host:port")
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    async with asyncio.timeout(within):
        _, writer = await asyncio.open_connection(host, int(port), ssl=context, server_hostname=host)
        try:
            line: ssl.SSLObject = writer.get_extra_info("ssl_object")
            raw = line.getpeercert(binary_form=True)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
    if raw is None:
        raise OSError("the server showed no certificate")
    return x509.load_der_x509_certificate(raw).not_valid_after_utc.timestamp()
