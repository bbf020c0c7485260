"""Where what one input means is gathered: changes what the deriver remembers, and collects operations and caveats."""

from typing import Final, Literal

from msgspec.structs import replace

from trunkline_fold.team.board import MAX_HEARD
from trunkline_fold.team.fold import add_usage, message_key, total_usage
from trunkline_fold.team.hearing import (
    LEAD,
    MAX_DUE,
    MAX_FIELDS,
    MAX_ITEMS,
    MAX_LANES,
    MAX_NAMES,
    MAX_VALUES,
    Deriver,
    Field,
    Mate,
    Teller,
    forget_oldest,
)
from trunkline_fold.team.operations import (
    AskFor,
    Caveat,
    CaveatCode,
    EndTeam,
    Op,
    OpenTeam,
    PutMember,
    PutTask,
    Reply,
    Say,
)
from trunkline_wire.blocks import Json, Text, Usage
from trunkline_wire.team import Member, TeamTask

_TOLD: Final = ("subject", "description", "status", "owner", "active_form")
Status = Literal["active", "idle", "shutdown"]


class Ear:
    def __init__(self, deriver: Deriver) -> None:
        self.deriver = deriver
        self.ops: list[Op] = []
        self.caveats: list[Caveat] = []

    def odd(self, code: CaveatCode, text: str) -> None:
        self.caveats.append(Caveat(code=code, text=text))
        self.deriver.caveats[code] = self.deriver.caveats.get(code, 0) + 1

    def drift(self, tool: str) -> None:
        drift = self.deriver.drift
        if tool in drift or len(drift) < MAX_NAMES:
            drift[tool] = drift.get(tool, 0) + 1
        self.odd("drift", f"the team tool {tool!r} is not known")

    @property
    def implicit(self) -> str:
        """The name of the team that a session has without creating one, as Claude Code spells it."""
        native = self.deriver.native_session or self.deriver.session.removeprefix("ses_")
        return f"session-{native[:8]}"

    @property
    def here(self) -> str:
        """The team, or the list of the session's own, that is meant where none is named."""
        return self.deriver.team or self.implicit

    def open_team(
        self,
        name: str,
        *,
        created: bool = False,
        role: Literal["lead", "member"] = "lead",
        description: str | None = None,
        lead: str | None = None,
    ) -> None:
        """There is a team. One that was not created by a call of its own takes over the session's list."""
        deriver = self.deriver
        if name in deriver.ended:
            if not created:
                return
            deriver.ended.remove(name)
        self.ops.append(OpenTeam(team=name, role=role, description=description, lead=lead))
        if deriver.team is not None and not created:
            return
        deriver.team = name
        if not created:
            for task in deriver.todo.values():
                self.ops.append(PutTask(team=name, task=task))
            deriver.todo.clear()

    def end_team(self, name: str) -> None:
        deriver = self.deriver
        self.ops.append(EndTeam(team=name))
        deriver.ended = [*(one for one in deriver.ended if one != name), name][-MAX_NAMES:]
        deriver.listed.pop(name, None)
        for heard in deriver.heard.values():
            # A team that is made under the same name begins with nothing said.
            for key in [one for one in heard if one.startswith(f"{name}/")]:
                del heard[key]
        if deriver.team == name:
            deriver.team = None
            deriver.mates.clear()
            deriver.lanes.clear()
            deriver.fields.clear()

    def name_of(self, told: str) -> str:
        """A member's name, whatever it is called by: its name, `name@team`, its agent id."""
        if told in ("main", LEAD):
            return LEAD
        if told in self.deriver.mates:
            return told
        known = next((mate.name for mate in self.deriver.mates.values() if mate.agent_id == told), None)
        return known or told.partition("@")[0]

    def mate_of(
        self, *, lane: str | None = None, agent_id: str | None = None, session: str | None = None
    ) -> Mate | None:
        deriver = self.deriver
        if lane is not None:
            return deriver.mates.get(deriver.lanes.get(lane, ""))
        for mate in deriver.mates.values():
            if (agent_id is not None and mate.agent_id == agent_id) or (
                session is not None and mate.session == session
            ):
                return mate
        return None

    def member(self, told: Member, how: Literal["spawned", "seen", "known"], team: str | None = None) -> Mate | None:
        """What is known of a member; None if there is none of this name."""
        deriver = self.deriver
        mate = deriver.mates.get(told.name)
        if mate is None:
            if how == "known" or len(deriver.mates) >= MAX_LANES:
                return None
            mate = deriver.mates[told.name] = Mate(name=told.name, kind=told.kind)
        if how == "spawned":
            mate.kind, mate.resting = told.kind, False
        if mate.status != "shutdown" or how == "spawned":
            mate.status = told.status or mate.status
        mate.agent_id = told.agent_id or mate.agent_id
        mate.session = told.session or mate.session
        if told.lane is not None:
            mate.lane = told.lane
            deriver.lanes[told.lane] = told.name
            forget_oldest(deriver.lanes, MAX_LANES)
        if told.usage is not None:
            mate.told = told.usage
        self.ops.append(PutMember(team=team or self.here, member=told, how=how))
        return mate

    def status(self, mate: Mate, status: Status) -> None:
        """Says how a member is, with what it has used so far."""
        used = usage_of(mate)
        news = used if used != mate.told else None
        if status == mate.status and news is None:
            return
        self.member(Member(name=mate.name, kind=mate.kind, status=status, usage=news), "known")

    def settle(self) -> None:
        """Says what each member has used since it was said last."""
        for mate in list(self.deriver.mates.values()):
            self.status(mate, mate.status)

    def task(
        self,
        teller: Teller,
        told: TeamTask,
        *,
        by: str | None = None,
        blocks: list[str] | None = None,
        blocked_by: list[str] | None = None,
        team: str | None = None,
    ) -> None:
        """What a teller says of a task; what another has told before it is no news."""
        where = team or self.here
        news = self._news(teller, where, told)
        put = PutTask(team=where, task=news, by=by, add_blocks=blocks or [], add_blocked_by=blocked_by or [])
        if self.deriver.team is None and where == self.implicit:
            self._to_do(put)
        elif put.add_blocks or put.add_blocked_by or news != TeamTask(id=told.id):
            self.ops.append(put)
            # A dependency stands on both of its tasks.
            self.ops += [
                PutTask(team=where, task=TeamTask(id=one), by=by, add_blocked_by=[told.id], known=True)
                for one in put.add_blocks
            ]
            self.ops += [
                PutTask(team=where, task=TeamTask(id=one), by=by, add_blocks=[told.id], known=True)
                for one in put.add_blocked_by
            ]
        self._claims(told, by)

    def _news(self, teller: Teller, where: str, told: TeamTask) -> TeamTask:
        news: dict[str, Json] = {}
        for name in _TOLD:
            value = getattr(told, name)
            if value is not None and self._tell(f"{where}/{told.id}/{name}", teller, value):
                news[name] = value
        return TeamTask(id=told.id, **news)

    def _tell(self, key: str, teller: Teller, value: Json) -> bool:
        """Whether a value is news: one that follows in what others have told, behind where this teller is, is none."""
        fields = self.deriver.fields
        field = fields.get(key)
        if field is None:
            field = fields[key] = Field()
            forget_oldest(fields, MAX_FIELDS)
        for at in range(field.at.get(teller, 0), len(field.values)):
            if field.values[at] == value:
                field.at[teller] = at
                return False
        field.values.append(value)
        if len(field.values) > MAX_VALUES:
            del field.values[0]
            field.at = {who: max(0, at - 1) for who, at in field.at.items()}
        field.at[teller] = len(field.values) - 1
        return True

    def _to_do(self, put: PutTask) -> None:
        todo = self.deriver.todo
        if put.task.status == "deleted":
            todo.pop(put.task.id, None)
            return
        known = todo.get(put.task.id, TeamTask(id=put.task.id))
        todo[put.task.id] = _merged(known, put)
        for one in put.add_blocks:
            if one in todo:
                todo[one] = replace(todo[one], blocked_by=_with(todo[one].blocked_by, [put.task.id]))
        for one in put.add_blocked_by:
            if one in todo:
                todo[one] = replace(todo[one], blocks=_with(todo[one].blocks, [put.task.id]))
        forget_oldest(todo, MAX_DUE)

    def _claims(self, told: TeamTask, by: str | None) -> None:
        mates = self.deriver.mates
        claimer = mates.get(told.owner or "") or (mates.get(by or "") if told.status == "in_progress" else None)
        if claimer is not None and told.status in (None, "pending", "in_progress"):
            claimer.resting = False
            if told.status == "in_progress":
                self.status(claimer, "active")
        if told.status == "completed" and (mate := mates.get(by or "")) is not None:
            mate.resting = True

    def first_sight(self, id: str) -> bool:
        """Whether this is no mail that was seen before: who looks at the files anew sees it again, by the same id."""
        letters = self.deriver.letters
        again = id in letters
        letters[id] = None
        forget_oldest(letters, MAX_HEARD)
        return not again

    def say(
        self, teller: Teller, sender: str, to: str | None, content: Text, summary: str | None, team: str | None = None
    ) -> None:
        where = team or self.here
        heard = self.deriver.heard.setdefault(teller, {})
        key = f"{where}/{message_key(sender, to, content)}"
        count = heard.pop(key, 0) + 1
        heard[key] = count
        forget_oldest(heard, MAX_HEARD)
        self.ops.append(Say(team=where, sender=sender, to=to, summary=summary, content=content, count=count))

    def ask(self, op: AskFor) -> None:
        self.ops.append(op)

    def reply(self, op: Reply) -> None:
        """An answer; a member that agrees to be shut down is."""
        self.ops.append(op)
        mate = self.deriver.mates.get(op.member)
        if op.kind == "shutdown" and op.approve and mate is not None:
            self.status(mate, "shutdown")


def use(mate: Mate, item: str, usage: Usage) -> None:
    """Counts what a message has used; a message that is told in parts counts with the last of them."""
    mate.items[item] = usage
    while len(mate.items) > MAX_ITEMS:
        oldest = next(iter(mate.items))
        mate.done = add_usage(mate.done, mate.items.pop(oldest))


def settle_turn(mate: Mate, usage: Usage) -> None:
    """A turn of a member's own session is over: its totals count in place of what its messages said."""
    mate.done, mate.items = add_usage(mate.done, usage), {}


def usage_of(mate: Mate) -> Usage | None:
    """What a member has used: what its stream or what its transcripts have counted, whichever has seen more of it."""
    streamed = add_usage(mate.done, total_usage(mate.items.values())) if mate.items or _tokens(mate.done) else None
    seen = total_usage(mate.seen.values()) if len(mate.seen) > 1 else next(iter(mate.seen.values()), None)
    if streamed is None or (seen is not None and _tokens(seen) > _tokens(streamed)):
        return seen
    return streamed


def _tokens(usage: Usage) -> int:
    return usage.input + usage.output + usage.cache_read + usage.cache_write


def _with(before: list[str] | None, more: list[str]) -> list[str]:
    return list(dict.fromkeys([*(before or []), *more]))


def _merged(known: TeamTask, put: PutTask) -> TeamTask:
    told = put.task
    return replace(
        known,
        subject=told.subject or known.subject,
        description=told.description or known.description,
        status=told.status or known.status,
        owner=known.owner if told.owner is None else told.owner,
        active_form=told.active_form or known.active_form,
        blocks=_with(known.blocks, put.add_blocks) or None,
        blocked_by=_with(known.blocked_by, put.add_blocked_by) or None,
    )
