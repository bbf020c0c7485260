"""The model client: what a client of the gateway knows after any sequence of frames. Pure; this text is the specification.

Its input are the frames of one subscription over all its connections, in the order in which they came whole:

    {"type": "opened", "payload": P}    the answer to `subscribe`: P has `cursor`, and may have `snapshot` and `gap`
    {"type": "event", "event": T, "cursor": C, "payload": E}    an event: T its type, E the envelope
    {"type": "event", "event": "gap", "payload": {reason, cursor?, snapshot?}}
    {"type": "heartbeat", "cursor"?: C}

A frame that was cut off is no frame. A client resumes with the last cursor that it got, from any of these frames.

1. Cursor: that of the last frame with one.
2. Facts: every envelope that is no delta (`message.delta`, `tool.progress`, `terminal.screen`), known by `id`, in the order in
   which they came. One that is known already changes nothing, and is counted (`repeated`).
3. Numbers: `seq` goes up by one within a session. Whoever takes every type (`gapless`) sees what is skipped (`missing`:
   session, first, last). The first number is 1 from the start, follows the state's `seq` after a snapshot of it, and is free otherwise.
4. Snapshot: replaces everything that is known of the sessions. `state` (or `sessions`) gives their numbers, `blocks` the text so far of what
   is being written.
5. Gap: its reason is kept (`gaps`). With a snapshot it replaces everything. Without one it repeats what `opened` has told, and changes nothing.
6. Blocks: a `message.delta` {item, block, at, text} writes into (session, item, block), counted in code points. A piece that begins where
   the known text ends is appended; one that overlaps is laid over it, and never shortens it; one that begins beyond the end leaves a hole: what is
   known is that piece alone, from its `at` on; one that ends before what is known begins is of no use. A block is whole if it is known from 0.
   A delta of an epoch before the session's latest is not applied. One of a finished item neither, and is counted (`replayed`).
7. Finished: `message.assistant` finishes the blocks that it holds (`block` and those after it, one for each of its contents; without `block` the
   whole item), `tool.completed` its item, `turn.completed` outside of lanes, `session.claimed`, `session.closed`, `session.erased` and
   `terminal.closed` all of the session. What was known of a block that `message.assistant` finishes must stand in it (`wrong` otherwise).
8. Texts: those of `message.assistant`, by (session, item, block), the last one counts.
9. `session.erased` forgets everything of its session but itself.

`state()` is JSON. Two clients that took all types from the start have the same `facts` and `texts` in it at the same place of the log, however often they
came back, unless `gaps` says otherwise. `tests/recordings/resume` holds sequences with what comes of them.
"""

from __future__ import annotations

from typing import Any, Final

Frame = dict[str, Any]
Key = tuple[str, str, int]

DELTAS: Final = frozenset({"message.delta", "tool.progress", "terminal.screen"})
_ENDS: Final = frozenset({"session.claimed", "session.closed", "session.erased", "terminal.closed"})
_WHOLE: Final = -1


class Block:
    """A text under way, known from the code point `at` on."""

    __slots__ = ("at", "kind", "text")

    def __init__(self, kind: str, at: int, text: str) -> None:
        self.kind = kind
        self.at = at
        self.text = text

    @property
    def end(self) -> int:
        return self.at + len(self.text)

    def apply(self, at: int, text: str) -> None:
        """Rule 6."""
        end = at + len(text)
        if at > self.end:
            self.at, self.text = at, text
        elif at >= self.at:
            offset = at - self.at
            self.text = self.text[:offset] + text + self.text[offset + len(text) :]
        elif end >= self.at:
            self.text = text + self.text[end - self.at :]
            self.at = at


class ModelClient:
    """Feed it frames; `gapless` is false for subscriptions that leave types out."""

    def __init__(self, *, gapless: bool = True) -> None:
        self.cursor: str | None = None
        self.gaps: list[str] = []
        self.facts: dict[str, Frame] = {}
        self.texts: dict[Key, Any] = {}
        self.blocks: dict[Key, Block] = {}
        self.missing: list[tuple[str, int, int]] = []
        self.wrong: list[Key] = []
        self.repeated = 0
        self.replayed = 0
        self._gapless = gapless
        self._from_start = True
        self._seqs: dict[str, int] = {}
        self._epochs: dict[str, int] = {}
        self._finished: set[Key] = set()

    def feed(self, frame: Frame) -> None:
        """Take one frame."""
        self.cursor = frame.get("cursor") or self.cursor
        if frame["type"] == "opened":
            self._opened(frame["payload"])
        elif frame["type"] == "event" and frame["event"] == "gap":
            self._gap(frame["payload"])
        elif frame["type"] == "event":
            event = frame["payload"]
            if event["type"] in DELTAS:
                self._delta(event)
            else:
                self._fact(event)

    def state(self) -> dict[str, Any]:
        """All that is known, as JSON: keys in order of their first appearance."""
        return {
            "cursor": self.cursor,
            "gaps": self.gaps,
            "facts": list(self.facts),
            "seqs": self._seqs,
            "missing": [list(hole) for hole in self.missing],
            "repeated": self.repeated,
            "replayed": self.replayed,
            "wrong": [list(key) for key in self.wrong],
            "blocks": [[*key, block.kind, block.at, block.text] for key, block in self.blocks.items()],
            "texts": [[*key, text] for key, text in self.texts.items()],
        }

    def _opened(self, payload: Frame) -> None:
        self.cursor = payload["cursor"]
        if payload.get("gap") is not None:
            self.gaps.append(payload["gap"]["reason"])
        if payload.get("snapshot") is not None:
            self._snapshot(payload["snapshot"])

    def _gap(self, payload: Frame) -> None:
        if payload.get("snapshot") is not None:
            self.gaps.append(payload["reason"])
            self.cursor = payload.get("cursor") or self.cursor
            self._snapshot(payload["snapshot"])

    def _snapshot(self, snapshot: Frame) -> None:
        for known in (self.facts, self.texts, self.blocks, self._seqs, self._epochs):
            known.clear()
        self._finished.clear()
        self._from_start = False
        states = snapshot["sessions"] if "sessions" in snapshot else [snapshot.get("state")]
        for state in states:
            if state is not None:
                self._seqs[state["session"]] = state.get("seq", 0)
                self._epochs[state["session"]] = state.get("epoch", 0)
        for block in snapshot.get("blocks", ()):
            key = (block["session"], block["item"], block["block"])
            self.blocks[key] = Block(block["kind"], block.get("at", 0), block["text"])

    def _fact(self, event: Frame) -> None:
        if event["id"] in self.facts:
            self.repeated += 1
            return
        session = event["session"]
        self._number(session, event)
        self._epochs[session] = max(self._epochs.get(session, 0), event.get("epoch") or 0)
        if event["type"] == "session.erased":
            self._forget(session)
        self.facts[event["id"]] = event
        self._finish(session, event)

    def _number(self, session: str, event: Frame) -> None:
        seq = event.get("seq")
        if seq is None:
            return
        last = self._seqs.get(session, 0 if self._from_start else seq - 1)
        if seq > last + 1 and self._gapless and event["type"] != "session.erased":
            self.missing.append((session, last + 1, seq - 1))
        self._seqs[session] = max(last, seq)

    def _forget(self, session: str) -> None:
        self.facts = {id_: fact for id_, fact in self.facts.items() if fact["session"] != session}
        self.texts = {key: text for key, text in self.texts.items() if key[0] != session}

    def _finish(self, session: str, event: Frame) -> None:
        type_, item, data = event["type"], event.get("item"), event["data"]
        if type_ == "message.assistant" and item is not None:
            first = data.get("block")
            if first is None:
                self._end(session, item, _WHOLE)
            for number, content in enumerate(data["content"] or [{}]):
                block = (first or 0) + number
                text = content.get("text", content.get("thinking"))
                if first is not None:
                    self._end(session, item, block, text)
                if text is not None:
                    self.texts[session, item, block] = text
        elif type_ == "tool.completed" and item is not None:
            self._end(session, item, _WHOLE)
        elif type_ in _ENDS or (type_ == "turn.completed" and event.get("lane") is None):
            for key in [key for key in self.blocks if key[0] == session]:
                self._end(*key)

    def _end(self, session: str, item: str, number: int, text: Any = None) -> None:
        self._finished.add((session, item, number))
        if number == _WHOLE:
            for key in [key for key in self.blocks if key[:2] == (session, item)]:
                del self.blocks[key]
            return
        block = self.blocks.pop((session, item, number), None)
        if block is not None and isinstance(text, str) and text[block.at : block.end] != block.text:
            self.wrong.append((session, item, number))

    def _delta(self, event: Frame) -> None:
        session, item, data = event["session"], event.get("item") or "", event["data"]
        if (event.get("epoch") or 0) < self._epochs.get(session, 0) or event["type"] != "message.delta":
            return
        key = (session, item, data.get("block", 0))
        if key in self._finished or (session, item, _WHOLE) in self._finished:
            self.replayed += 1
        elif key in self.blocks:
            self.blocks[key].apply(data.get("at", 0), data["text"])
        else:
            self.blocks[key] = Block(data.get("kind", "text"), data.get("at", 0), data["text"])
