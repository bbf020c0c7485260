"""The gateway's methods. Generated from its registry by `just schema`: a test compares them."""

# fmt: off

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from trunkline_wire.ids import new_command_id, new_session_id

if TYPE_CHECKING:
    from trunkline_client import results

WITHIN = 60.0
"""Seconds that a method may take to answer."""

Call = Callable[..., Awaitable[Any]]
"""Calls a method of this name: `call(name, within=…, **params)`."""


class _Methods:
    def __init__(self, call: Call) -> None:
        self._call = call


class AdapterMethods(_Methods):
    """`adapter.*`"""

    async def list(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        within: float = WITHIN,
    ) -> "results.AdapterPage":
        """The adapters, with the hosts that have each.

        Needs the role `viewer`.
        """
        return await self._call(
            "adapter.list",
            within=within,
            limit=limit,
            offset=offset,
        )


class AgentMethods(_Methods):
    """`agent.*`"""

    async def list(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        host: str | None = None,
        within: float = WITHIN,
    ) -> "results.AgentPage":
        """The agents by the names that people call them, each with its ways on a host, the best first.

        Needs the role `viewer`.
        """
        return await self._call(
            "agent.list",
            within=within,
            limit=limit,
            offset=offset,
            host=host,
        )


class AskMethods(_Methods):
    """`ask.*`"""

    async def answer(
        self,
        *,
        ask: str,
        behaviour: Literal["allow", "answered", "deny"],
        session: str | None = None,
        option: str | None = None,
        updated_input: Any = None,
        rule_updates: Any = None,
        answers: Mapping[str, Any] | None = None,
        message: str | None = None,
        interrupt: bool | None = None,
        signature: Mapping[str, Any] | None = None,
        id: str | None = None,
        within: float = WITHIN,
    ) -> "results.Answered":
        """Decide an ask. The same `id` again gets the same outcome; who is too late learns what was decided.

        Needs the role `approver`.
        """
        return await self._call(
            "ask.answer",
            within=within,
            ask=ask,
            behaviour=behaviour,
            session=session,
            option=option,
            updated_input=updated_input,
            rule_updates=rule_updates,
            answers=answers,
            message=message,
            interrupt=interrupt,
            signature=signature,
            id=id or new_command_id(),
        )

    async def answer_many(
        self,
        *,
        behaviour: Literal["allow", "deny"],
        asks: Sequence[str] | None = None,
        session: str | None = None,
        team: str | None = None,
        workspace: str | None = None,
        tool: str | None = None,
        kind: Literal["delete", "edit", "execute", "fetch", "move", "other", "read", "search", "switch_mode", "think"] | None = None,
        command: str | None = None,
        all: bool | None = None,
        message: str | None = None,
        dry_run: bool | None = None,
        id: str | None = None,
        within: float = WITHIN,
    ) -> "results.AnsweredMany":
        """Allow or deny many asks at once, each by itself: `asks` says of every one what became of it, or …

        Needs the role `approver`.
        """
        return await self._call(
            "ask.answer_many",
            within=within,
            behaviour=behaviour,
            asks=asks,
            session=session,
            team=team,
            workspace=workspace,
            tool=tool,
            kind=kind,
            command=command,
            all=all,
            message=message,
            dry_run=dry_run,
            id=id or new_command_id(),
        )

    async def history(
        self,
        *,
        session: str | None = None,
        status: Literal["decided", "expired", "lost", "open", "withdrawn"] | None = None,
        since: str | None = None,
        until: str | None = None,
        by: str | None = None,
        tool: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        within: float = WITHIN,
    ) -> "results.AskStories":
        """Asks with all that became of them, the latest first; `cursor` is where the next page goes on, null …

        Needs the role `viewer`.
        """
        return await self._call(
            "ask.history",
            within=within,
            session=session,
            status=status,
            since=since,
            until=until,
            by=by,
            tool=tool,
            limit=limit,
            cursor=cursor,
        )

    async def link(
        self,
        *,
        ask: str,
        actor: str | None = None,
        behaviours: Sequence[Literal["allow", "deny"]] | None = None,
        lasts: float | None = None,
        session: str | None = None,
        within: float = WITHIN,
    ) -> "results.AskLink":
        """A code that decides an ask, once; `path` is where a browser opens it, behind the gateway's URL.

        Needs the role `approver`.
        """
        return await self._call(
            "ask.link",
            within=within,
            ask=ask,
            actor=actor,
            behaviours=behaviours,
            lasts=lasts,
            session=session,
        )

    async def list(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        session: str | None = None,
        team: str | None = None,
        status: Literal["all", "decided", "expired", "lost", "open", "withdrawn"] | None = None,
        within: float = WITHIN,
    ) -> "results.AskPage":
        """The asks of one session, of a team (its lead and its members) or of all, in the order in which …

        Needs the role `viewer`.
        """
        return await self._call(
            "ask.list",
            within=within,
            limit=limit,
            offset=offset,
            session=session,
            team=team,
            status=status,
        )

    async def nonce(
        self,
        *,
        within: float = WITHIN,
    ) -> "results.Nonce":
        """For one signed answer: a nonce, the server's time, how many seconds both are good for, and the …

        Needs the role `approver`.
        """
        return await self._call(
            "ask.nonce",
            within=within,
        )

    async def revoke(
        self,
        *,
        session: str,
        rule: str,
        id: str | None = None,
        within: float = WITHIN,
    ) -> "results.RuleRevoked":
        """Take a rule of the session back: what it allowed is asked about again. The same `id` again gets …

        Needs the role `approver`.
        """
        return await self._call(
            "ask.revoke",
            within=within,
            session=session,
            rule=rule,
            id=id or new_command_id(),
        )

    async def rules(
        self,
        *,
        session: str,
        within: float = WITHIN,
    ) -> "results.SessionRules":
        """The session's own rules, which people made by allowing something for good, those that were revoked …

        Needs the role `viewer`.
        """
        return await self._call(
            "ask.rules",
            within=within,
            session=session,
        )


class BlobMethods(_Methods):
    """`blob.*`"""

    async def get(
        self,
        *,
        sha256: str,
        after: str | None = None,
        within: float = WITHIN,
    ) -> "results.BlobPart":
        """A part of a large value: base64 in `data`, `size` of the whole in bytes, and `next` to ask for the …

        Needs the role `viewer`.
        """
        return await self._call(
            "blob.get",
            within=within,
            sha256=sha256,
            after=after,
        )


class DeviceMethods(_Methods):
    """`device.*`"""

    async def invite(
        self,
        *,
        actor: str,
        role: Literal["approver", "owner", "participant", "viewer"],
        name: str | None = None,
        within: float = WITHIN,
    ) -> "results.Invited":
        """Agree that a device may be paired, once, for `actor`: what `device.pair` wants.

        Needs the role `owner`.
        """
        return await self._call(
            "device.invite",
            within=within,
            actor=actor,
            role=role,
            name=name,
        )

    async def list(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        within: float = WITHIN,
    ) -> "results.DevicePage":
        """The caller's devices; an owner sees everybody's.

        Needs the role `viewer`.
        """
        return await self._call(
            "device.list",
            within=within,
            limit=limit,
            offset=offset,
        )

    async def pair(
        self,
        *,
        name: str,
        key: str,
        invitation: str,
        route: str,
        identity: str,
        within: float = WITHIN,
    ) -> "results.Paired":
        """Register a device that comes from anywhere, as its invitation has it, with a token of its own, …

        Needs the role `owner`.
        """
        return await self._call(
            "device.pair",
            within=within,
            name=name,
            key=key,
            invitation=invitation,
            route=route,
            identity=identity,
        )

    async def push(
        self,
        *,
        subscription: Mapping[str, Any] | None,
        within: float = WITHIN,
    ) -> "results.Device":
        """Have the caller's device notified of asks that it may decide, by the push subscription of its …

        Needs the role `viewer`.
        """
        return await self._call(
            "device.push",
            within=within,
            subscription=subscription,
        )

    async def register(
        self,
        *,
        name: str,
        key: str,
        within: float = WITHIN,
    ) -> "results.Device":
        """Register a device of the caller, with a `key` that it made: base64 of 32 random bytes.

        Needs the role `viewer`.
        """
        return await self._call(
            "device.register",
            within=within,
            name=name,
            key=key,
        )

    async def rename(
        self,
        *,
        id: str,
        name: str,
        within: float = WITHIN,
    ) -> "results.Device":
        """Give a device of the caller another name.

        Needs the role `viewer`.
        """
        return await self._call(
            "device.rename",
            within=within,
            id=id,
            name=name,
        )

    async def revoke(
        self,
        *,
        id: str,
        within: float = WITHIN,
    ) -> "results.DeviceRevoked":
        """End a device of the caller: its key counts no more, and neither do the tokens and devices that …

        Needs the role `viewer`.
        """
        return await self._call(
            "device.revoke",
            within=within,
            id=id,
        )

    async def seen(
        self,
        *,
        devices: Sequence[str],
        within: float = WITHIN,
    ) -> "results.SeenNow":
        """Note that devices are there; answers for which that was worth noting: it is kept to the minute.

        Needs the role `owner`.
        """
        return await self._call(
            "device.seen",
            within=within,
            devices=devices,
        )


class EventMethods(_Methods):
    """`event.*`"""

    async def list(
        self,
        *,
        after: str | None = None,
        session: str | None = None,
        patterns: Sequence[str] | None = None,
        limit: int | None = None,
        wait: float | None = None,
        routed: bool | None = None,
        within: float = WITHIN,
    ) -> "results.EventsSince":
        """The facts above the cursor `after`, and the cursor to go on from; without `after` only the cursor …

        Needs the role `viewer`.
        """
        return await self._call(
            "event.list",
            within=within,
            after=after,
            session=session,
            patterns=patterns,
            limit=limit,
            wait=wait,
            routed=routed,
        )


class ExtensionMethods(_Methods):
    """`extension.*`"""

    async def config(
        self,
        *,
        within: float = WITHIN,
    ) -> "results.OwnConfig":
        """The table `[extensions.<name>]` of this host's `trunkline.toml`, for that extension alone.

        Needs the role `viewer`.
        """
        return await self._call(
            "extension.config",
            within=within,
        )

    async def dead_letter(
        self,
        *,
        cursor: str,
        error: str,
        within: float = WITHIN,
    ) -> "results.Buried":
        """Note that the event at a cursor of `event.list` could not be delivered, for people to find.

        Needs the role `viewer`.
        """
        return await self._call(
            "extension.dead_letter",
            within=within,
            cursor=cursor,
            error=error,
        )

    async def emit(
        self,
        *,
        session: str,
        kind: str,
        data: Mapping[str, Any] | None = None,
        id: str | None = None,
        within: float = WITHIN,
    ) -> "results.Emitted":
        """Write the event `ext.<name>.<kind>` into a session's history; the same `id` again, at once, is the …

        Needs the role `viewer`.
        """
        return await self._call(
            "extension.emit",
            within=within,
            session=session,
            kind=kind,
            data=data,
            id=id or new_command_id(),
        )

    async def list(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        within: float = WITHIN,
    ) -> "results.ExtensionPage":
        """The extensions that answer: their methods, what of them was refused and why, and their own …

        Needs the role `viewer`.
        """
        return await self._call(
            "extension.list",
            within=within,
            limit=limit,
            offset=offset,
        )

    async def page(
        self,
        *,
        extension: str,
        within: float = WITHIN,
    ) -> "results.PagesTicket":
        """Where the caller finds an extension's pages for the next hour: `path`, which is a secret, and what …

        Needs the role `viewer`.
        """
        return await self._call(
            "extension.page",
            within=within,
            extension=extension,
        )


class HostMethods(_Methods):
    """`host.*`"""

    async def directories(
        self,
        *,
        directory: str,
        host: str | None = None,
        within: float = WITHIN,
    ) -> "results.Directories":
        """The directories in one of a host's, to choose from; `~` is the home of its worker's user.

        Needs the role `participant`.
        """
        return await self._call(
            "host.directories",
            within=within,
            directory=directory,
            host=host,
        )


class OverviewMethods(_Methods):
    """`overview.*`"""

    async def get(
        self,
        *,
        within: float = WITHIN,
    ) -> "results.Glance":
        """Sessions by status, open asks and the oldest, events a second, how far projections are behind the …

        Needs the role `owner`.
        """
        return await self._call(
            "overview.get",
            within=within,
        )


class PolicyMethods(_Methods):
    """`policy.*`"""

    async def get(
        self,
        *,
        within: float = WITHIN,
    ) -> "results.PolicyNow":
        """The policy in force: its text, version and file, and its rules in the order in which they are tried.

        Needs the role `approver`.
        """
        return await self._call(
            "policy.get",
            within=within,
        )

    async def history(
        self,
        *,
        limit: int | None = None,
        before: int | None = None,
        within: float = WITHIN,
    ) -> "results.PolicyVersions":
        """The versions in the log, the latest first, with their texts; `next` is `before` of the next page.

        Needs the role `approver`.
        """
        return await self._call(
            "policy.history",
            within=within,
            limit=limit,
            before=before,
        )

    async def test(
        self,
        *,
        described: Mapping[str, Any] | None = None,
        ask: str | None = None,
        session: str | None = None,
        since: str | None = None,
        policy: str | None = None,
        within: float = WITHIN,
    ) -> "results.PolicyTest":
        """Which rule would win, and why those before it would not; nothing is decided.

        Needs the role `approver`.
        """
        return await self._call(
            "policy.test",
            within=within,
            described=described,
            ask=ask,
            session=session,
            since=since,
            policy=policy,
        )


class PresenceMethods(_Methods):
    """`presence.*`"""

    async def list(
        self,
        *,
        session: str | None = None,
        within: float = WITHIN,
    ) -> "results.WhoWatches":
        """Who watches a session, or each one where somebody is. A subscription with `presence` hears of …

        Needs the role `viewer`.
        """
        return await self._call(
            "presence.list",
            within=within,
            session=session,
        )

    async def typing(
        self,
        *,
        session: str,
        typing: bool | None = None,
        within: float = WITHIN,
    ) -> "results.OfSession":
        """Say that somebody types a prompt, again every few seconds while it goes on; WebSocket only.

        Needs the role `participant`.
        """
        return await self._call(
            "presence.typing",
            within=within,
            session=session,
            typing=typing,
        )


class PushMethods(_Methods):
    """`push.*`"""

    async def gone(
        self,
        *,
        device: str,
        endpoint: str,
        within: float = WITHIN,
    ) -> "results.Forgotten":
        """For the extension that sends: a subscription has ended.

        Needs the role `viewer`.
        """
        return await self._call(
            "push.gone",
            within=within,
            device=device,
            endpoint=endpoint,
        )

    async def key(
        self,
        *,
        within: float = WITHIN,
    ) -> "results.PushKey":
        """The public key that a browser subscribes with; `unknown_extension` where nobody sends push messages.

        Needs the role `viewer`.
        """
        return await self._call(
            "push.key",
            within=within,
        )

    async def targets(
        self,
        *,
        ask: str,
        within: float = WITHIN,
    ) -> "results.PushTargets":
        """For the extension that sends: the devices to notify of an ask, by subscription; none once it is no …

        Needs the role `viewer`.
        """
        return await self._call(
            "push.targets",
            within=within,
            ask=ask,
        )


class SessionMethods(_Methods):
    """`session.*`"""

    async def archive(
        self,
        *,
        session: str,
        id: str | None = None,
        wait: bool | None = None,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """Put the session out of the way; nothing of it is lost.

        Needs the role `participant`.
        """
        return await self._call(
            "session.archive",
            within=within,
            session=session,
            id=id or new_command_id(),
            wait=wait,
        )

    async def close(
        self,
        *,
        session: str,
        reason: str | None = None,
        id: str | None = None,
        wait: bool | None = None,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """End the session's agent and close the session; `resume` reopens it.

        Needs the role `participant`.
        """
        return await self._call(
            "session.close",
            within=within,
            session=session,
            reason=reason,
            id=id or new_command_id(),
            wait=wait,
        )

    async def command(
        self,
        *,
        session: str,
        verb: str,
        args: Mapping[str, Any] | None = None,
        target: str | None = None,
        id: str | None = None,
        wait: bool | None = None,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """Send a command of any verb. With `wait` the answer has its `outcome` too.

        Needs the role `participant`.
        """
        return await self._call(
            "session.command",
            within=within,
            session=session,
            verb=verb,
            args=args,
            target=target,
            id=id or new_command_id(),
            wait=wait,
        )

    async def compact(
        self,
        *,
        session: str,
        id: str | None = None,
        wait: bool | None = None,
        instructions: str | None = None,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """Have the agent summarize the conversation, to make room in its context.

        Needs the role `participant`.
        """
        return await self._call(
            "session.compact",
            within=within,
            session=session,
            id=id or new_command_id(),
            wait=wait,
            instructions=instructions,
        )

    async def config(
        self,
        *,
        session: str,
        model: str | None = None,
        mode: str | None = None,
        thinking: Literal["high", "low", "max", "medium", "off"] | None = None,
        title: str | None = None,
        id: str | None = None,
        wait: bool | None = None,
        within: float = WITHIN,
    ) -> "results.Configured":
        """How a session is set, and what it may be set to. With values it sets them, each by the command for …

        Needs the role `viewer`.
        """
        return await self._call(
            "session.config",
            within=within,
            session=session,
            model=model,
            mode=mode,
            thinking=thinking,
            title=title,
            id=id or new_command_id(),
            wait=wait,
        )

    async def create(
        self,
        *,
        cwd: str,
        adapter: str | None = None,
        session: str | None = None,
        host: str | None = None,
        title: str | None = None,
        agent: str | None = None,
        options: Mapping[str, Any] | None = None,
        wait: bool | None = None,
        within: float = WITHIN,
    ) -> "results.Created":
        """Start a session of an `agent`, by the best `adapter` or a given one, in a directory of `host`.

        Needs the role `participant`.
        """
        return await self._call(
            "session.create",
            within=within,
            cwd=cwd,
            adapter=adapter,
            session=session or new_session_id(),
            host=host,
            title=title,
            agent=agent,
            options=options,
            wait=wait,
        )

    async def fork(
        self,
        *,
        session: str,
        id: str | None = None,
        wait: bool | None = None,
        new: str | None = None,
        at: str | None = None,
        prompt: str | None = None,
        within: float = WITHIN,
    ) -> "results.Forked":
        """A new session with this one's history, or with what came before the prompt `at`. Its id is `new`, …

        Needs the role `participant`.
        """
        return await self._call(
            "session.fork",
            within=within,
            session=session,
            id=id or new_command_id(),
            wait=wait,
            new=new,
            at=at,
            prompt=prompt,
        )

    async def get(
        self,
        *,
        session: str,
        messages: int | None = None,
        within: float = WITHIN,
    ) -> "results.SessionNow":
        """A session as of the log's end: its state, its asks, the latest messages as events, and what is …

        Needs the role `viewer`.
        """
        return await self._call(
            "session.get",
            within=within,
            session=session,
            messages=messages,
        )

    async def hand_over(
        self,
        *,
        session: str,
        to: Literal["structured", "terminal"],
        id: str | None = None,
        wait: bool | None = None,
        interrupt: bool | None = None,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """Go on in the agent's own terminal, or take the session back from there.

        Needs the role `approver`.
        """
        return await self._call(
            "session.hand_over",
            within=within,
            session=session,
            id=id or new_command_id(),
            wait=wait,
            to=to,
            interrupt=interrupt,
        )

    async def history(
        self,
        *,
        session: str,
        before: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        join: bool | None = None,
        within: float = WITHIN,
    ) -> "results.HistoryPage":
        """HistoryPage in order: the latest ones, or those just `before` or just `after` the cursor of an …

        Needs the role `viewer`.
        """
        return await self._call(
            "session.history",
            within=within,
            session=session,
            before=before,
            after=after,
            limit=limit,
            join=join,
        )

    async def info(
        self,
        *,
        session: str,
        within: float = WITHIN,
    ) -> "results.SessionInfo":
        """What a session is and can do, without what was said in it, and who watches it now.

        Needs the role `viewer`.
        """
        return await self._call(
            "session.info",
            within=within,
            session=session,
        )

    async def interrupt(
        self,
        *,
        session: str,
        turn: str | None = None,
        cancel_queued: bool | None = None,
        id: str | None = None,
        wait: bool | None = None,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """Stop the named turn, or the one that is open.

        Needs the role `participant`.
        """
        return await self._call(
            "session.interrupt",
            within=within,
            session=session,
            turn=turn,
            cancel_queued=cancel_queued,
            id=id or new_command_id(),
            wait=wait,
        )

    async def kill(
        self,
        *,
        session: str,
        id: str | None = None,
        wait: bool | None = None,
        reason: str | None = None,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """End the session's agent whatever its owner does: its process group is killed, the session is closed.

        Needs the role `owner`.
        """
        return await self._call(
            "session.kill",
            within=within,
            session=session,
            id=id or new_command_id(),
            wait=wait,
            reason=reason,
        )

    async def list(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        search: str | None = None,
        status: Sequence[str] | None = None,
        workspace: str | None = None,
        host: str | None = None,
        adapter: str | None = None,
        agent: str | None = None,
        parent: str | None = None,
        open: bool | None = None,
        archived: bool | None = None,
        within: float = WITHIN,
    ) -> "results.SessionPage":
        """The sessions, the one with the latest event first; all the filters that are given must match.

        Needs the role `viewer`.
        """
        return await self._call(
            "session.list",
            within=within,
            limit=limit,
            offset=offset,
            search=search,
            status=status,
            workspace=workspace,
            host=host,
            adapter=adapter,
            agent=agent,
            parent=parent,
            open=open,
            archived=archived,
        )

    async def native(
        self,
        *,
        session: str,
        method: str,
        id: str | None = None,
        wait: bool | None = None,
        params: Mapping[str, Any] | None = None,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """A request in the agent's own protocol.

        Needs the role `owner`.
        """
        return await self._call(
            "session.native",
            within=within,
            session=session,
            id=id or new_command_id(),
            wait=wait,
            method=method,
            params=params,
        )

    async def prompt(
        self,
        *,
        session: str,
        text: str | None = None,
        content: Sequence[Mapping[str, Any]] | None = None,
        id: str | None = None,
        delivery: Literal["auto", "queue", "steer"] | None = None,
        route: str | None = None,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """Send a user message. Returns when it is in the log of commands; the same `id` again is the same …

        Needs the role `participant`.
        """
        return await self._call(
            "session.prompt",
            within=within,
            session=session,
            text=text,
            content=content,
            id=id or new_command_id(),
            delivery=delivery,
            route=route,
        )

    async def rename(
        self,
        *,
        session: str,
        title: str,
        id: str | None = None,
        wait: bool | None = None,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """Give the session another title.

        Needs the role `participant`.
        """
        return await self._call(
            "session.rename",
            within=within,
            session=session,
            id=id or new_command_id(),
            wait=wait,
            title=title,
        )

    async def reset(
        self,
        *,
        session: str,
        id: str | None = None,
        wait: bool | None = None,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """Leave the agent's conversation behind: the next prompt begins a new one, in the same session and …

        Needs the role `participant`.
        """
        return await self._call(
            "session.reset",
            within=within,
            session=session,
            id=id or new_command_id(),
            wait=wait,
        )

    async def resume(
        self,
        *,
        session: str,
        id: str | None = None,
        wait: bool | None = None,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """Reopen a closed session.

        Needs the role `participant`.
        """
        return await self._call(
            "session.resume",
            within=within,
            session=session,
            id=id or new_command_id(),
            wait=wait,
        )

    async def rewind(
        self,
        *,
        session: str,
        to: str,
        id: str | None = None,
        wait: bool | None = None,
        dry_run: bool | None = None,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """Put files back to the state before a user message.

        Needs the role `participant`.
        """
        return await self._call(
            "session.rewind",
            within=within,
            session=session,
            id=id or new_command_id(),
            wait=wait,
            to=to,
            dry_run=dry_run,
        )

    async def run_command(
        self,
        *,
        session: str,
        name: str,
        id: str | None = None,
        wait: bool | None = None,
        arguments: str | None = None,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """Run one of the agent's own slash commands.

        Needs the role `participant`.
        """
        return await self._call(
            "session.run_command",
            within=within,
            session=session,
            id=id or new_command_id(),
            wait=wait,
            name=name,
            arguments=arguments,
        )

    async def set_mode(
        self,
        *,
        session: str,
        mode: str,
        id: str | None = None,
        wait: bool | None = None,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """Change the agent's mode; `session.get` names those that there are.

        Needs the role `approver`.
        """
        return await self._call(
            "session.set_mode",
            within=within,
            session=session,
            id=id or new_command_id(),
            wait=wait,
            mode=mode,
        )

    async def set_model(
        self,
        *,
        session: str,
        model: str,
        id: str | None = None,
        wait: bool | None = None,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """Use another model from the next turn on; `session.get` names those that there are.

        Needs the role `participant`.
        """
        return await self._call(
            "session.set_model",
            within=within,
            session=session,
            id=id or new_command_id(),
            wait=wait,
            model=model,
        )

    async def set_thinking(
        self,
        *,
        session: str,
        level: Literal["high", "low", "max", "medium", "off"],
        id: str | None = None,
        wait: bool | None = None,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """How much the model may think before it answers.

        Needs the role `participant`.
        """
        return await self._call(
            "session.set_thinking",
            within=within,
            session=session,
            id=id or new_command_id(),
            wait=wait,
            level=level,
        )

    async def unarchive(
        self,
        *,
        session: str,
        id: str | None = None,
        wait: bool | None = None,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """Bring an archived session back.

        Needs the role `participant`.
        """
        return await self._call(
            "session.unarchive",
            within=within,
            session=session,
            id=id or new_command_id(),
            wait=wait,
        )


class SignInMethods(_Methods):
    """`sign_in.*`"""

    async def link(
        self,
        *,
        actor: str,
        role: Literal["approver", "owner", "participant", "viewer"],
        sessions: Sequence[str] | None = None,
        workspaces: Sequence[str] | None = None,
        lasts: float | None = None,
        within: float = WITHIN,
    ) -> "results.SignInLink":
        """A code that signs a browser in, once, within a few minutes; `path` is where to open it, behind the …

        Needs the role `owner`.
        """
        return await self._call(
            "sign_in.link",
            within=within,
            actor=actor,
            role=role,
            sessions=sessions,
            workspaces=workspaces,
            lasts=lasts,
        )


class TeamMethods(_Methods):
    """`team.*`"""

    async def board(
        self,
        *,
        team: str,
        within: float = WITHIN,
    ) -> "results.TeamBoard":
        """The tasks by what can be done with them: `ready`, `blocked` by others (`waits_for`), …

        Needs the role `viewer`.
        """
        return await self._call(
            "team.board",
            within=within,
            team=team,
        )

    async def get(
        self,
        *,
        team: str,
        within: float = WITHIN,
    ) -> "results.TeamNow":
        """A team with its members, tasks, open and answered requests, and the open asks of all its members.

        Needs the role `viewer`.
        """
        return await self._call(
            "team.get",
            within=within,
            team=team,
        )

    async def list(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        session: str | None = None,
        status: Literal["all", "ended", "live"] | None = None,
        within: float = WITHIN,
    ) -> "results.TeamPage":
        """The teams, the one that changed last first; `session` is the lead's or a member's.

        Needs the role `viewer`.
        """
        return await self._call(
            "team.list",
            within=within,
            limit=limit,
            offset=offset,
            session=session,
            status=status,
        )

    async def messages(
        self,
        *,
        team: str,
        member: str | None = None,
        before: str | None = None,
        limit: int | None = None,
        within: float = WITHIN,
    ) -> "results.MessagePage":
        """What the members say to each other, the newest last; of one `member` what it said or was told, …

        Needs the role `viewer`.
        """
        return await self._call(
            "team.messages",
            within=within,
            team=team,
            member=member,
            before=before,
            limit=limit,
        )

    async def shutdown(
        self,
        *,
        team: str,
        reason: str | None = None,
        id: str | None = None,
        wait: bool | None = None,
        within: float = WITHIN,
    ) -> "results.ShutdownAsked":
        """Ask the lead to shut its team down: a prompt that says that it is a request. It may refuse; the …

        Needs the role `participant`.
        """
        return await self._call(
            "team.shutdown",
            within=within,
            team=team,
            reason=reason,
            id=id or new_command_id(),
            wait=wait,
        )

    async def usage(
        self,
        *,
        team: str,
        within: float = WITHIN,
    ) -> "results.TeamUsage":
        """Tokens and cost (USD) by member, and of all of them; the lead's session by itself, for it may …

        Needs the role `viewer`.
        """
        return await self._call(
            "team.usage",
            within=within,
            team=team,
        )


class TerminalMethods(_Methods):
    """`terminal.*`"""

    async def close(
        self,
        *,
        session: str,
        within: float = WITHIN,
    ) -> "results.CommandSent":
        """End the terminal's program and close its session; `resume` reopens it.

        Needs the role `participant`.
        """
        return await self._call(
            "terminal.close",
            within=within,
            session=session,
        )

    async def input(
        self,
        *,
        session: str,
        viewer: str,
        text: str,
        within: float = WITHIN,
    ) -> "results.Typist":
        """Type. `terminal_taken` for anybody but the one who has taken the terminal.

        Needs the role `participant`.
        """
        return await self._call(
            "terminal.input",
            within=within,
            session=session,
            viewer=viewer,
            text=text,
        )

    async def list(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        within: float = WITHIN,
    ) -> "results.TerminalPage":
        """The sessions with an open terminal, the one with the latest event first.

        Needs the role `viewer`.
        """
        return await self._call(
            "terminal.list",
            within=within,
            limit=limit,
            offset=offset,
        )

    async def open(
        self,
        *,
        session: str,
        within: float = WITHIN,
    ) -> "results.Opened":
        """Start a session's program in its terminal, if it does not run yet; who is there already changes …

        Needs the role `participant`.
        """
        return await self._call(
            "terminal.open",
            within=within,
            session=session,
        )

    async def release(
        self,
        *,
        session: str,
        viewer: str,
        within: float = WITHIN,
    ) -> "results.Typist":
        """Give the keyboard up.

        Needs the role `participant`.
        """
        return await self._call(
            "terminal.release",
            within=within,
            session=session,
            viewer=viewer,
        )

    async def resize(
        self,
        *,
        session: str,
        viewer: str,
        columns: int,
        rows: int,
        within: float = WITHIN,
    ) -> "results.Typist":
        """Set the terminal's size, which is the business of whoever types there.

        Needs the role `participant`.
        """
        return await self._call(
            "terminal.resize",
            within=within,
            session=session,
            viewer=viewer,
            columns=columns,
            rows=rows,
        )

    async def screen(
        self,
        *,
        session: str,
        history: int | None = None,
        within: float = WITHIN,
    ) -> "results.Painted":
        """The screen as it is: what a terminal has to print to look like it (base64), after `history` lines …

        Needs the role `viewer`.
        """
        return await self._call(
            "terminal.screen",
            within=within,
            session=session,
            history=history,
        )

    async def shell(
        self,
        *,
        session: str,
        id: str | None = None,
        within: float = WITHIN,
    ) -> "results.ShellOpened":
        """Open a shell in a session's directory: a session of its own. Off unless the setting `shells` is on.

        Needs the role `owner`.
        """
        return await self._call(
            "terminal.shell",
            within=within,
            session=session,
            id=id or new_session_id(),
        )

    async def take(
        self,
        *,
        session: str,
        viewer: str | None = None,
        force: bool | None = None,
        within: float = WITHIN,
    ) -> "results.Taken":
        """Become the one who types; `force` takes the keyboard from whoever has it. It is given up after a …

        Needs the role `participant`.
        """
        return await self._call(
            "terminal.take",
            within=within,
            session=session,
            viewer=viewer,
            force=force,
        )


class TokenMethods(_Methods):
    """`token.*`"""

    async def create(
        self,
        *,
        actor: str,
        role: Literal["approver", "owner", "participant", "viewer"],
        sessions: Sequence[str] | None = None,
        workspaces: Sequence[str] | None = None,
        lasts: float | None = None,
        label: str | None = None,
        within: float = WITHIN,
    ) -> "results.NewToken":
        """A new token for `actor`, limited to `sessions` and `workspaces` if any are named; it is shown only …

        Needs the role `owner`.
        """
        return await self._call(
            "token.create",
            within=within,
            actor=actor,
            role=role,
            sessions=sessions,
            workspaces=workspaces,
            lasts=lasts,
            label=label,
        )

    async def list(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        within: float = WITHIN,
    ) -> "results.TokenPage":
        """The tokens that are valid, without what would let one use them.

        Needs the role `owner`.
        """
        return await self._call(
            "token.list",
            within=within,
            limit=limit,
            offset=offset,
        )

    async def revoke(
        self,
        *,
        id: str,
        within: float = WITHIN,
    ) -> "results.Revoked":
        """End a token, and every connection that was opened with it, at all gateways.

        Needs the role `owner`.
        """
        return await self._call(
            "token.revoke",
            within=within,
            id=id,
        )


class UsageMethods(_Methods):
    """`usage.*`"""

    async def get(
        self,
        *,
        by: Literal["agent", "host", "model", "session", "workspace"] | None = None,
        session: str | None = None,
        workspace: str | None = None,
        limit: int | None = None,
        within: float = WITHIN,
    ) -> "results.UsageSums":
        """Tokens, cost (USD) and turns, in all and by session, workspace, agent, model or host; the most …

        Needs the role `viewer`.
        """
        return await self._call(
            "usage.get",
            within=within,
            by=by,
            session=session,
            workspace=workspace,
            limit=limit,
        )


class WorkerMethods(_Methods):
    """`worker.*`"""

    async def list(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        within: float = WITHIN,
    ) -> "results.WorkerPage":
        """The living workers, with the adapters of each.

        Needs the role `viewer`.
        """
        return await self._call(
            "worker.list",
            within=within,
            limit=limit,
            offset=offset,
        )


class WorkspaceMethods(_Methods):
    """`workspace.*`"""

    async def get(
        self,
        *,
        workspace: str,
        within: float = WITHIN,
    ) -> "results.WorkspaceNow":
        """A directory with its latest sessions.

        Needs the role `viewer`.
        """
        return await self._call(
            "workspace.get",
            within=within,
            workspace=workspace,
        )

    async def get_or_create(
        self,
        *,
        directory: str,
        host: str | None = None,
        within: float = WITHIN,
    ) -> "results.WorkspaceFound":
        """The workspace of a directory, whether it has sessions or not, with its latest ones.

        Needs the role `participant`.
        """
        return await self._call(
            "workspace.get_or_create",
            within=within,
            directory=directory,
            host=host,
        )

    async def list(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        host: str | None = None,
        search: str | None = None,
        within: float = WITHIN,
    ) -> "results.WorkspacePage":
        """The directories that have sessions, the one with the latest event first; `search` is looked for in …

        Needs the role `viewer`.
        """
        return await self._call(
            "workspace.list",
            within=within,
            limit=limit,
            offset=offset,
            host=host,
            search=search,
        )


class Api:
    """Every method by its name: `api.session.list()`. What is None is left out."""

    def __init__(self, call: Call) -> None:
        self.adapter = AdapterMethods(call)
        self.agent = AgentMethods(call)
        self.ask = AskMethods(call)
        self.blob = BlobMethods(call)
        self.device = DeviceMethods(call)
        self.event = EventMethods(call)
        self.extension = ExtensionMethods(call)
        self.host = HostMethods(call)
        self.overview = OverviewMethods(call)
        self.policy = PolicyMethods(call)
        self.presence = PresenceMethods(call)
        self.push = PushMethods(call)
        self.session = SessionMethods(call)
        self.sign_in = SignInMethods(call)
        self.team = TeamMethods(call)
        self.terminal = TerminalMethods(call)
        self.token = TokenMethods(call)
        self.usage = UsageMethods(call)
        self.worker = WorkerMethods(call)
        self.workspace = WorkspaceMethods(call)
