"""An owner in a process of its own: `owner.py URL SESSION` creates the session with one note, then appends each line of its
input as a note. It says `{"fate": "stored"}`, or the code of the error, for each.
"""

import asyncio
import json
import sys

from tests.chaos.fence.ground import AGENT, created, note

from trunkline_bus import leader
from trunkline_bus.connection import Bus, BusSettings
from trunkline_bus.writer import SessionWriter
from trunkline_wire import TrunklineError


async def main(url: str, session: str) -> None:
    leader.ACK_WITHIN_S = 1.0  # type: ignore[misc]  # as the fixture `hasty`
    async with Bus.open(BusSettings(url=url, name="owner")) as bus:
        writer = await SessionWriter.create(bus, created(), session=session, worker="a", agent=AGENT)
        text = "a0"
        while text:
            try:
                writer.append(note(text))
                await writer.flush()
            except TrunklineError as error:
                say(error.code)
            else:
                say("stored")
            text = (await asyncio.to_thread(sys.stdin.readline)).strip()
        await writer.close(within=0)


def say(fate: str) -> None:
    sys.stdout.write(json.dumps({"fate": fate}) + "\n")
    sys.stdout.flush()


asyncio.run(main(*sys.argv[1:]))
