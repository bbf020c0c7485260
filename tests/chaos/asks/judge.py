"""A judge of one session's asks: knows the raw log and one rule, that the first end in stream order counts.

It reads JSON and shares nothing with the folds, so that it can tell when they are wrong.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

ASKS: Final = ("permission.requested", "question.asked", "plan.proposed")
TOLD: Final = {
    "decided": {"already_decided"},
    "expired": {"expired"},
    "withdrawn": {"withdrawn"},
    "lost": {"withdrawn"},
}
"""What an answer that comes after an end may be refused with."""


@dataclass(frozen=True, slots=True)
class End:
    """How an ask ended: `behaviour` is what the agent has to be told, None for nothing."""

    how: str
    sequence: int
    behaviour: str | None = None
    answer: str | None = None
    updated_input: Any = None


@dataclass(slots=True)
class Verdict:
    """What the log says. `outcomes` are by answer id, `incarnations` by ask; `faults` are broken rules, in words."""

    incarnations: dict[str, str] = field(default_factory=dict[str, str])
    ends: dict[str, End] = field(default_factory=dict[str, End])
    withdrawals: set[str] = field(default_factory=set[str])
    outcomes: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict[str, list[str]](list))
    delivered: Counter[str] = field(default_factory=Counter[str])
    faults: list[str] = field(default_factory=list[str])


def judge(messages: Iterable[tuple[int, bytes]], bad: frozenset[str] = frozenset()) -> Verdict:
    """The verdict over a session's messages, (stream sequence, payload) in stream order; `bad` are ids of answers that
    fit no ask.
    """
    verdict = Verdict()
    bench = _Bench(verdict, bad)
    for sequence, raw in messages:
        event = json.loads(raw)
        bench.take(sequence, event, event["data"])
    return verdict


class _Bench:
    def __init__(self, verdict: Verdict, bad: frozenset[str]) -> None:
        self._verdict = verdict
        self._bad = bad
        self._routed: dict[str, dict[str, Any]] = {}
        self._votes: defaultdict[str, set[str]] = defaultdict(set)
        self._said: Counter[str] = Counter()
        self._sources: set[tuple[Any, ...]] = set()
        self._answer_at = 0
        self._epochs: dict[str, int] = {}
        self._epoch = 0

    def take(self, sequence: int, event: dict[str, Any], data: dict[str, Any]) -> None:
        kind: str = event["type"]
        if kind in {"session.created", "session.claimed"}:
            self._epoch = event["epoch"]
        if "src" in event:
            self._source(event["src"])
        if kind in ASKS:
            self._verdict.incarnations[data["ask"]] = data["incarnation"]
            self._epochs[data["ask"]] = event["epoch"]
        elif kind == "session.claimed":
            for ask, incarnation in self._verdict.incarnations.items():
                if incarnation != data.get("incarnation"):
                    self._verdict.ends.setdefault(ask, End("lost", sequence))
        elif kind == "ask.withdrawn":
            self._verdict.withdrawals.add(data["ask"])
            self._verdict.ends.setdefault(data["ask"], End("withdrawn", sequence))
        elif kind == "ask.delivered":
            self._delivered(sequence, event, data["ask"])
        elif kind == "ask.routed":
            self._routed[data["ask"]] = data
        elif kind in {"ask.voted", "ask.decided", "ask.expired", "answer.rejected"}:
            self._said_of(kind, sequence, data, data["ask"])

    def _said_of(self, kind: str, sequence: int, data: dict[str, Any], ask: str) -> None:
        verdict, end = self._verdict, self._verdict.ends.get(ask)
        answer: Any = data.get("answer")
        match kind:
            case "answer.rejected":
                code = data["error"]["code"]
                verdict.outcomes[answer].append(code)
                self._check_code(sequence, ask, answer, code, end)
            case "ask.voted":
                verdict.outcomes[answer].append("voted")
                self._fault(data["by"] in self._votes[ask], f"{sequence}: a second vote of {data['by']}")
                self._votes[ask].add(data["by"])
            case _:
                self._said[ask] += 1
                self._fault(self._said[ask] > 1, f"{sequence}: the permission service ended {ask} twice")
                how = "decided" if kind == "ask.decided" else "expired"
                if answer is not None:
                    verdict.outcomes[answer].append("decided" if end is None else "late")
                    self._fault(answer in self._bad, f"{sequence}: a bad answer decided")
                self._check_quorum(sequence, ask, data, how)
                verdict.ends.setdefault(
                    ask, End(how, sequence, data.get("behaviour", "deny"), answer, data.get("updated_input"))
                )

    def _check_quorum(self, sequence: int, ask: str, data: dict[str, Any], how: str) -> None:
        routed = self._routed.get(ask, {})
        if how == "expired":
            self._fault("expires_at" not in routed, f"{sequence}: {ask} expired without a policy that says so")
        elif data["behaviour"] != "deny":
            voters = self._votes[ask] | {data["by"]}
            self._fault(len(voters) < routed.get("quorum", 1), f"{sequence}: {ask} was decided below its quorum")

    def _check_code(self, sequence: int, ask: str, answer: str, code: str, end: End | None) -> None:
        if code == "bad_answer":
            self._fault(answer not in self._bad, f"{sequence}: a good answer was called bad")
        elif code == "already_voted":
            self._fault(not self._votes[ask], f"{sequence}: a first vote was called a second one")
        elif end is None or code not in TOLD[end.how]:
            self._fault(True, f"{sequence}: told {code} of {ask}, which is {end.how if end else 'open'}")

    def _delivered(self, sequence: int, event: dict[str, Any], ask: str) -> None:
        end = self._verdict.ends.get(ask)
        self._verdict.delivered[ask] += 1
        self._fault(self._verdict.delivered[ask] > 1, f"{sequence}: {ask} was delivered twice")
        self._fault(end is None or end.behaviour is None, f"{sequence}: {ask} was delivered without a decision")
        self._fault(event["epoch"] != self._epochs.get(ask), f"{sequence}: {ask} was delivered to another incarnation")

    def _source(self, src: list[Any]) -> None:
        self._fault(tuple(src) in self._sources, f"two results of {src}")
        self._sources.add(tuple(src))
        if src[0] == "COMMANDS":
            self._fault(src[1] <= self._answer_at, f"the answer at {src[1]} was taken after that at {self._answer_at}")
            self._answer_at = src[1]

    def _fault(self, broken: bool, words: str) -> None:
        if broken:
            self._verdict.faults.append(words)
