"""What the log has of a session, and whether a page shows it."""

import asyncio
import json
import re
from typing import Final

from playwright.async_api import Page

from trunkline_testkit import eventually
from trunkline_testkit.product import Client, Frame, Product

READ_THROUGH: Final = """async () => {
    const scroller = document.querySelector(".scroller");
    const painted = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    const texts = new Map();
    for (let at = 0; ; at += scroller.clientHeight / 2) {
        scroller.scrollTop = at;
        await painted();
        for (const row of document.querySelectorAll(".row.assistant")) {
            for (const [block, part] of [...row.querySelectorAll(".said .markdown")].entries()) {
                texts.set(`${row.dataset.row} ${block}`, part.innerText);
            }
        }
        if (at > scroller.scrollHeight) return [...texts.values()];
    }
}"""


class Log:
    """What the log has of a session, beside what a page shows of it."""

    def __init__(self, product: Product, path: str) -> None:
        self._product = product
        self._session = path.rpartition("/")[2]

    async def answered(self, prompt: str, *, times: int = 1) -> None:
        """Until a turn has ended after so many prompts with these words, and none goes on."""
        async with await self._product.client_when_up() as client:

            async def over() -> bool:
                seen = [(one["type"], json.dumps(one["data"])) for one in await self._events(client)]
                asked = [at for at, (type_, data) in enumerate(seen) if type_ == "message.user" and prompt in data]
                ended = [at for at, (type_, _) in enumerate(seen) if type_ == "turn.completed"]
                return len(asked) >= times and ended[-1:] > asked[-1:]

            await eventually(over, 240)
        await self.rests()

    async def rests(self) -> None:
        """Until no turn goes on."""
        async with await self._product.client_when_up() as client:

            async def over() -> bool:
                return (await client.call("session.get", session=self._session))["state"]["turn"] is None

            await eventually(over, 240)

    async def is_shown(self, page: Page) -> None:
        """The page, read from its beginning to its end, has the words of each text of the log once, in order, and no others."""
        shown: list[list[str]] = []
        wanted: list[list[str]] = []
        try:
            async with asyncio.timeout(30), await self._product.client_when_up() as client:
                while not wanted or shown != wanted:
                    wanted = await self._said(client)
                    # only rows on the screen are in the page
                    shown = [words(text) for text in await page.evaluate(READ_THROUGH)]
        except TimeoutError:
            assert shown == wanted, f"shown: {shown}\nwanted: {wanted}"

    async def _said(self, client: Client) -> list[list[str]]:
        said = [one["data"] for one in await self._events(client) if one["type"] == "message.assistant"]
        blocks = [block for data in said for block in data["content"] if block["type"] == "text"]
        return [found for block in blocks if (found := words(block["text"]))]

    async def _events(self, client: Client) -> list[Frame]:
        return [
            one["event"] for one in (await client.call("session.history", session=self._session, limit=500))["events"]
        ]


def words(text: str) -> list[str]:
    """Without what is markup in one and not in the other."""
    return re.findall(r"[^\W_]+", re.sub(r"(?m)^ *\d+\. ", "", text))


def squeezed(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
