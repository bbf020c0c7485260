"""The chat bridge: a message is a prompt, its answer comes back, an ask is decided by a button."""

from tests.integration.gateway.rig import Rig
from tests.integration.gateway.telegram import TOKEN, fake_telegram
from tests.integration.gateway.test_senders import configure, running

from trunkline_extensions.chat.app import ChatConfig, opened
from trunkline_testkit import eventually
from trunkline_wire.asks import PermissionRequested
from trunkline_wire.ids import ask_id
from trunkline_wire.turn import TurnCompleted, TurnStarted


async def test_a_chat_prompts_is_answered_and_decides(rig: Rig) -> None:
    await rig.decide_asks()
    writer = await rig.session()
    await rig.settled(writer)
    async with fake_telegram() as telegram:
        place = configure(
            rig,
            f'[extensions.chat]\ntoken = "{TOKEN}"\nchats = ["7"]\napi = "{telegram.url}"\nlongest_pause = 0.1\n',
        )
        async with running("chat", place, ChatConfig, opened):
            telegram.write(8, "let me in")
            telegram.write(7, "hello")
            await eventually(lambda: telegram.sent)
            assert (telegram.sent[0]["chat_id"], "/use" in telegram.sent[0]["text"]) == ("7", True)
            telegram.write(7, f"/use {writer.session}")
            telegram.write(7, "list the files")
            ((_, command),) = await eventually(lambda: rig.commands(writer.session))
            assert command.source is not None
            assert (command.source.actor, command.source.route) == ("ext:chat", "chat/7")
            turn, source = f"tur_{1:032x}", command.source
            writer.append(TurnStarted(number=1), turn=turn, source=source)
            asked = ask_id(writer.session, "inc", "one")
            request = PermissionRequested(ask=asked, name="Bash", incarnation="inc", input={"command": "ls"})
            writer.append(request, turn=turn, source=source)
            await eventually(lambda: len(telegram.sent) == 3)
            (row,) = telegram.sent[2]["reply_markup"]["inline_keyboard"]
            assert [button["text"] for button in row] == ["Allow", "Deny"]
            telegram.press(8, row[0]["callback_data"])
            telegram.press(7, row[1]["callback_data"])
            await eventually(lambda: telegram.pressed)
            assert telegram.pressed[0]["text"] == "Denied."
            record = rig.running.gateway.directory.ask(asked)
            assert record is not None
            assert record.decision is not None
            assert (record.decision.behaviour, record.decision.by) == ("deny", "ext:chat")
        # While it is away the turn ends; its answer waits.
        writer.append(TurnCompleted(outcome="success", result="a.txt b.txt"), turn=turn, source=source)
        await rig.settled(writer)
        async with running("chat", place, ChatConfig, opened):
            await eventually(lambda: len(telegram.sent) == 4)
        assert (telegram.sent[3]["chat_id"], telegram.sent[3]["text"]) == ("7", "a.txt b.txt")
        assert len(await rig.commands(writer.session)) == 1
    await writer.close()
