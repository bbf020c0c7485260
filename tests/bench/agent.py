"""The demo agent with steps that carry the clock, so that a client can tell how old what it sees is.

facts N MS     N finished messages, MS milliseconds apart, each `t<ns>`
ticks N MS     N pieces of one message, MS milliseconds apart, each `t<ns> `
flood N        N pieces of one message at full speed
asks N MS      N requests for permission, MS milliseconds after the answer to the one before; then one message with the
               time that each took from stdout to stdin, `<ns> `
"""

import asyncio
import sys
import time

from trunkline_adapters.demo.agent import Agent, main, parse


async def steps(agent: Agent, step: str) -> bool:
    word, *numbers = step.split()
    match word:
        case "facts":
            count, pause = int(numbers[0]), int(numbers[1]) / 1000
            for _ in range(count):
                agent.say({"type": "message", "message": agent.new("m"), "text": f"t{time.time_ns()}"})
                await asyncio.sleep(pause)
        case "ticks":
            count, pause = int(numbers[0]), int(numbers[1]) / 1000
            message, text = agent.new("m"), ""
            for _ in range(count):
                piece = f"t{time.time_ns()} "
                text += piece
                agent.say({"type": "text", "message": message, "text": piece})
                await asyncio.sleep(pause)
            agent.say({"type": "message", "message": message, "text": text})
        case "flood":
            message, text = agent.new("m"), ""
            for number in range(int(numbers[0])):
                piece = f"piece {number} "
                text += piece
                agent.say({"type": "text", "message": message, "text": piece})
            agent.say({"type": "message", "message": message, "text": text})
        case "asks":
            count, pause = int(numbers[0]), int(numbers[1]) / 1000
            took: list[int] = []
            for _ in range(count):
                tool = agent.new("t")
                ask = {"type": "ask", "ask": f"a-{tool}", "tool": tool, "name": "run", "input": {"command": "x"}}
                begin = time.time_ns()
                await agent.wait_for(ask, tool)
                took.append(time.time_ns() - begin)
                await asyncio.sleep(pause)
            text = " ".join(map(str, took))
            agent.say({"type": "message", "message": agent.new("m"), "text": text})
        case _:
            return False
    return True


class BenchAgent(Agent):
    async def step(self, step: str) -> None:
        if not await steps(self, step):
            await super().step(step)


if __name__ == "__main__":
    asyncio.run(main(parse(sys.argv[1:]), BenchAgent))
