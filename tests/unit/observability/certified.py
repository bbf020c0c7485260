"""A TLS server with a certificate that it signed itself."""

import asyncio
import contextlib
import datetime as dt
import ssl
from collections.abc import AsyncGenerator
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@contextlib.asynccontextmanager
async def certified(directory: Path, ends: dt.datetime) -> AsyncGenerator[str]:
    """`host:port` of one whose certificate ends at `ends`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(ends - dt.timedelta(days=900))
        .not_valid_after(ends)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = directory / "certificate.pem"
    file.write_bytes(secret + certificate.public_bytes(serialization.Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    async with server:
        yield f"localhost:{server.sockets[0].getsockname()[1]}"
