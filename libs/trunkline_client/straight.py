"""Requests that go where they were sent to, and nowhere else."""

from typing import NoReturn

import aiohttp


def straight() -> aiohttp.TraceConfig:
    """For a ClientSession that goes to a relay: one that redirects would have us ask whatever it likes in our own network."""
    config = aiohttp.TraceConfig()
    config.on_request_redirect.append(_refuse)
    return config


async def _refuse(*_: object) -> NoReturn:
    raise aiohttp.ClientConnectionError("it redirects to another address, where nobody follows it")
