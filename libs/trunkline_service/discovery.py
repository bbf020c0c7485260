"""Every service is a NATS service too (ADR-32): `nats micro ls` lists it, PING, INFO and STATS answer."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from nats.aio.client import Client
from nats.micro import add_service
from nats.micro.request import Request
from nats.micro.service import EndpointConfig

from trunkline_service.health import Health
from trunkline_wire import encode


@asynccontextmanager
async def discoverable(connection: Client, health: Health, metadata: dict[str, str]) -> AsyncGenerator[None, None]:
    """Register `trunkline-<service>` with one endpoint, `trunk.health.<service>`, for as long as the block runs."""

    async def on_health(request: Request) -> None:
        _ready, body = await health.report()
        await request.respond(encode(body))

    service = await add_service(
        connection,
        name=f"trunkline-{health.service}",
        version=health.version,
        description=f"Trunkline's {health.service}",
        metadata=metadata,
    )
    try:
        await service.add_endpoint(
            EndpointConfig(name="health", subject=f"trunk.health.{health.service}", handler=on_health)
        )
        yield
    finally:
        if connection.is_connected:
            await service.stop()
