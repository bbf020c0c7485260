"""A team in the running product: its lead's session is written as a worker would, the team service makes the board of it."""

import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from tests.integration.teams.stage import Lead

from trunkline_bus.connection import Bus, BusSettings
from trunkline_testkit.product import Product
from trunkline_wire.asks import AskOption, PermissionRequested
from trunkline_wire.blocks import Block, TextBlock, Usage
from trunkline_wire.ids import ask_id, item_id
from trunkline_wire.session import SessionUpdated
from trunkline_wire.turn import MessageAssistant, MessageUser, TurnCompleted, TurnStarted

TASKS = [
    ("Read the grammar", ()),
    ("Write the tokenizer", ("1",)),
    ("Write the tests", ("1",)),
    ("Write the parser", ("2",)),
    ("Wire errors to lines", ("4",)),
    ("Run the whole suite", ("3", "4", "5")),
    ("Note the change", ()),
]


@contextlib.asynccontextmanager
async def bus_of(product: Product) -> AsyncGenerator[Bus]:
    seed = product.trunkline_home / "nats" / "keys" / "admin.nk"
    async with Bus.open(BusSettings(url=product.state["nats"], seed_file=seed, name="test")) as bus:
        await bus.read_log_id()
        yield bus


class Crew:
    """A team `parser` of ann, bob and carol, with tasks, messages and requests. `lead` writes what comes next."""

    def __init__(self, lead: Lead) -> None:
        self.lead = lead
        self.lanes: dict[str, str] = {}

    @property
    def path(self) -> str:
        return f"/team/{self.lead.session}/parser"

    async def work(self) -> None:
        """All that it does before a test begins."""
        lead = self.lead
        prompt: list[Block] = [TextBlock(text="Rewrite the parser with a small crew.")]
        lead.writer.append(MessageUser(content=prompt), item=item_id(lead.session, "user", "1"))
        lead.writer.append(SessionUpdated(title="A new parser"))
        lead.writer.append(TurnStarted(number=1), turn="tur_" + "1" * 32)
        made = {"team_name": "parser", "lead_agent_id": "team-lead@parser"}
        await lead.call("TeamCreate", "", made, team_name="parser", description="Three who rewrite the parser")
        for name, type_ in (("ann", "builder"), ("bob", "tester"), ("carol", "writer")):
            spawned = {"status": "teammate_spawned", "name": name, "team_name": "parser", "model": "sonnet"}
            self.lanes[name] = await lead.call(
                "Task",
                "Spawned successfully.",
                spawned,
                team_name="parser",
                name=name,
                subagent_type=type_,
                prompt="go",
            )
        for number, (subject, after) in enumerate(TASKS, 1):
            await lead.call("TaskCreate", f"Task #{number} created successfully: x", subject=subject)
            if after:
                await self.update(str(number), addBlockedBy=list(after))
        await self.update("1", lane="ann", status="completed", owner="ann")
        await self.update("2", lane="ann", status="in_progress", owner="ann", activeForm="Writing the tokenizer")
        await self.update("3", lane="bob", status="in_progress", owner="bob", activeForm="Writing the tests")
        await self.tell("ann", "team-lead", "The grammar has two ambiguous rules; I keep the longer match.", "grammar")
        await self.tell(None, "ann", "Good. Say so in the tests, too.", "agreed")
        await self.tell("ann", "bob", "Please add cases for the longer match: `a.b.c` and `a..c`.", "cases")
        await self.tell("bob", "ann", "Both are in; the second fails as it should.", "done")
        await self.tell(
            "carol", "team-lead", {"type": "plan_approval_request", "request_id": "plan-1@carol", "plan": PLAN}
        )
        await self.tell(
            None, "carol", {"type": "shutdown_request", "request_id": "stop-1@carol", "reason": "nothing to write yet"}
        )
        for name, tokens in (("ann", 48_200), ("bob", 31_400), ("carol", 5_100)):
            usage = Usage(input=tokens, output=tokens // 9, cache_read=6 * tokens, cost_usd=tokens / 90_000)
            said = MessageAssistant(content=[TextBlock(text="Going on.")], usage=usage)
            lead.writer.append(said, item=item_id(lead.session, "said", name), lane=self.lanes[name])
        lead.writer.append(TurnCompleted(outcome="success"), turn="tur_" + "1" * 32)
        lead.writer.append(TurnStarted(number=2), turn="tur_" + "2" * 32)
        await lead.writer.flush()

    async def update(self, task: str, *, lane: str | None = None, **given: Any) -> None:
        words = f"Updated task #{task} {', '.join(given)}"
        await self.lead.call("TaskUpdate", words, lane=self.lanes.get(lane or ""), taskId=task, **given)

    async def tell(self, sender: str | None, to: str, message: str | dict[str, Any], summary: str = "s") -> None:
        done: dict[str, Any] = {"success": True}
        if isinstance(message, dict):
            done["request_id"] = message["request_id"]
        lane = self.lanes.get(sender or "")
        await self.lead.call("SendMessage", "", done, lane=lane, to=to, message=message, summary=summary)

    async def ask(self, member: str, command: str) -> str:
        """A member asks for permission; the ask's id."""
        ask = ask_id(self.lead.session, "inc", command)
        options = [
            AskOption(id="yes", name="Yes", kind="allow_once"),
            AskOption(id="no", name="No", kind="reject_once"),
        ]
        asked = PermissionRequested(
            ask=ask, name="Bash", incarnation="inc", kind="execute", input={"command": command}, options=options
        )
        self.lead.writer.append(asked, turn="tur_" + "2" * 32, lane=self.lanes[member])
        await self.lead.writer.flush()
        return ask


PLAN = "1. Read what the parser says of errors\n2. Describe the longer match\n3. Show both examples"


@contextlib.asynccontextmanager
async def crew(product: Product) -> AsyncGenerator[Crew]:
    """A team at work, whose board the product has."""
    async with bus_of(product) as bus, Lead.open(bus) as lead:
        one = Crew(lead)
        await one.work()
        yield one
