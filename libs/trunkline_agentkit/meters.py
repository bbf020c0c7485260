"""What an agent's work costs and how long it takes, as metrics: turns, tools, the first word, tokens, money."""

import time
from collections.abc import Callable
from pathlib import PurePath
from typing import Final

import msgspec

from trunkline_bus import metrics
from trunkline_fold.session import SessionState
from trunkline_wire import Event
from trunkline_wire.blocks import Usage
from trunkline_wire.turn import MessageAssistant, ToolCompleted, ToolStarted, TurnCompleted, TurnStarted

_MAX_TOOLS: Final = 1_000
Exemplar = dict[str, str] | None


class _Tool(msgspec.Struct, frozen=True):
    name: str
    begun: float


class AgentMeter:
    """Of one session's agents, one after the other. `state` is what the session's log says when the first of them starts:
    what was used before is counted already. `clock` gives seconds.
    """

    def __init__(self, adapter: str, state: SessionState, clock: Callable[[], float] = time.monotonic) -> None:
        self._adapter = adapter
        self._clock = clock
        self._asked: float | None = None
        """When a prompt was handed over that the agent has not reacted to."""
        self._begun: float | None = None
        self._tools: dict[str, _Tool] = {}
        self._done = state.metering.done
        self._cost = state.cost_usd or 0.0

    def prompted(self) -> None:
        """An idle agent is given a prompt."""
        self._asked = self._clock()

    def spoke(self, exemplar: Exemplar = None) -> None:
        """The agent shows that it works on it."""
        if self._asked is not None:
            metrics.FIRST_TOKEN_SECONDS.labels(self._adapter).observe(self._clock() - self._asked, exemplar)
            self._asked = None

    def ended(self) -> None:
        """The agent is gone."""
        self._asked = self._begun = None
        self._tools.clear()

    def take(self, event: Event, state: SessionState, exemplar: Exemplar = None) -> None:
        """An event was written; `state` has it already."""
        match event.data:
            case TurnStarted() if event.lane is None:
                self._begun = self._clock()
                if self._asked is None:
                    self._asked = self._begun
            case MessageAssistant():
                self.spoke(exemplar)
            case ToolStarted(name=name):
                self.spoke(exemplar)
                if event.item is not None and len(self._tools) < _MAX_TOOLS:
                    self._tools[event.item] = _Tool(name, self._clock())
            case ToolCompleted() as data:
                self._end_tool(event.item, data, exemplar)
            case TurnCompleted() if event.lane is None:
                self._end_turn(exemplar)
            case _:
                pass
        self._settle(event, state)

    def _end_tool(self, item: str | None, data: ToolCompleted, exemplar: Exemplar) -> None:
        metrics.TOOLS_ENDED.labels(self._adapter, data.status).inc()
        tool = self._tools.pop(item, None) if item is not None else None
        if tool is not None:
            took = self._clock() - tool.begun
            metrics.TOOL_SECONDS.labels(self._adapter, metrics.TOOLS(tool.name)).observe(took, exemplar)

    def _end_turn(self, exemplar: Exemplar) -> None:
        if self._begun is not None:
            metrics.TURN_SECONDS.labels(self._adapter).observe(self._clock() - self._begun, exemplar)
        self._asked = self._begun = None

    def _settle(self, event: Event, state: SessionState) -> None:
        """Counts what the folds settled by this event: tokens at the end of a turn, cost as soon as it is named."""
        agent = state.agent or self._adapter
        by_model = event.data.models if isinstance(event.data, TurnCompleted) else []
        if state.metering.done is not self._done:
            if by_model:
                for entry in by_model:
                    _count(agent, entry.model, Usage(), entry.usage)
            else:
                _count(agent, state.model, self._done, state.metering.done)
            self._done = state.metering.done
        spent, self._cost = (state.cost_usd or 0.0) - self._cost, max(self._cost, state.cost_usd or 0.0)
        if spent > 0:
            costs = {entry.model: entry.usage.cost_usd or 0.0 for entry in by_model}
            total = sum(costs.values())
            shares = {model: cost / total for model, cost in costs.items()} if total > 0 else {state.model: 1.0}
            for model, share in shares.items():
                metrics.COST.labels(agent, metrics.MODELS(model)).inc(spent * share)
            name = PurePath(state.cwd).name if state.cwd else None
            metrics.WORKSPACE_COST.labels(metrics.WORKSPACES(name)).inc(spent)


def _count(agent: str, model: str | None, before: Usage, after: Usage) -> None:
    for kind in ("input", "output", "cache_write", "cache_read"):
        used = getattr(after, kind) - getattr(before, kind)
        if used > 0:
            metrics.TOKENS.labels(agent, metrics.MODELS(model), kind).inc(used)
