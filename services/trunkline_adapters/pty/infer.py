"""What a program is doing, as far as its screen tells: it works, waits for its user, or asks. Pure; times are given.

A screen is read as often as it changes, in the midst of being drawn, so what it shows counts once it has stood for a while.
"""

import re
from collections import deque
from typing import Final, Literal

import msgspec

from trunkline_adapters.pty.profiles import Profile
from trunkline_wire.asks import AskOption
from trunkline_wire.blocks import ToolKind

STANDS_S: Final = 0.3
"""Seconds that a dialog has to stand, or to be gone."""
_SHOWN: Final = 4000
"""Characters of the screen around a dialog that are told."""


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """A dialog on the screen. `keys` are what each option types, by its id."""

    name: str
    kind: ToolKind
    title: str
    about: str | None
    shown: str
    options: tuple[AskOption, ...]
    keys: dict[str, tuple[str, ...]]

    @property
    def key(self) -> tuple[str, str, str | None]:
        """What makes it the same dialog, though it is drawn anew."""
        return self.name, self.title, self.about


Sight = Asking | Literal["busy", "prompt"] | None
"""What a screen shows; None: nothing that is known."""


def look(profile: Profile, text: str, title: str = "") -> Sight:
    """What the text of a screen shows, and the title above it."""
    for dialog in profile.dialogs:
        if (found := _last(dialog.pattern, text)) is None:
            continue
        groups = found.groupdict()
        answers = [
            (answer, tuple(key.format_map({**groups, **offered.groupdict()}) for key in answer.keys))
            for answer in dialog.answers
            if (offered := re.search(answer.match, text[found.start() :], re.MULTILINE)) is not None
        ]
        return Asking(
            name=dialog.name,
            kind=dialog.kind,
            title=(groups.get("title") or found[0]).strip(),
            about=_joined(groups.get("about")),
            shown=text[-_SHOWN:],
            options=tuple(AskOption(id=answer.id, name=answer.name, kind=answer.kind) for answer, _ in answers),
            keys={answer.id: keys for answer, keys in answers},
        )
    for shows, where in (profile.busy, text), (profile.busy_title, title):
        if shows and re.search(shows, where, re.MULTILINE):
            return "busy"
    return "prompt" if re.search(profile.prompt, text, re.MULTILINE) else None


def _last(pattern: str, text: str) -> re.Match[str] | None:
    return next(iter(deque(re.finditer(pattern, text, re.MULTILINE), maxlen=1)), None)


def _joined(text: str | None) -> str | None:
    """A text without the frame of the box it stands in."""
    if text is None:
        return None
    lines = (re.sub(r"^[\s│┃|]+|[\s│┃|]+$", "", line) for line in text.splitlines())
    return "\n".join(line for line in lines if line)


class Watch:
    """Follows the screen of one program. `settled` is what it is known to do: None as long as nothing is known."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._sight: Sight = None
        self._since = self._changed = self._at = 0.0
        self._begun: float | None = None
        """When something was sent that the program has not been seen to work at yet."""
        self.settled: Sight = None

    @property
    def due(self) -> float | None:
        """When `settled` changes if the screen stays as it is; None for never."""
        if self._sight is None:
            silent = self._changed + self._profile.silent_s
            if self.settled is None:
                return silent
            return None if self._at >= silent else min(silent, self._since + STANDS_S)
        return None if self._is_settled() else self._time_of(self._sight)

    def restart(self, at: float) -> None:
        """Something was sent: what the screen shows has to stand anew."""
        self._sight = self.settled = None
        self._since = self._changed = self._at = self._begun = at

    def see(self, at: float, text: str, title: str = "") -> None:
        """The program has printed something, and this is its screen now."""
        sight = look(self._profile, text, title)
        if _key(sight) != _key(self._sight):
            self._since = at
        self._sight, self._changed = sight, at
        self.pass_time(at)

    def stands(self, at: float) -> Sight:
        """What the screen shows at this moment, taken as if it had stood for long."""
        if isinstance(self._sight, Asking):
            self.settled = self._sight
            self._at = at
        return self._sight

    def pass_time(self, at: float) -> None:
        """The screen stays as it is up to a time."""
        self._at = max(self._at, at)
        if self._sight is None and at >= self._changed + self._profile.silent_s:
            self.settled = "prompt"
        elif not self._is_settled() and at >= self._time_of(self._sight):
            self.settled = self._sight
            if self._sight != "prompt":
                self._begun = None

    def _time_of(self, sight: Sight) -> float:
        """From when on a sight counts."""
        if sight == "busy":
            # Unasked it has to stand: some are at work for a moment when they start.
            return self._since if self._begun is not None else self._since + STANDS_S
        if sight != "prompt":
            return self._since + STANDS_S
        stood = self._since + self._profile.prompt_s
        # A prompt that always shows is no answer to what was sent.
        return (
            stood
            if self._begun is None or not self._profile.tells_work
            else max(stood, self._begun + self._profile.unseen_s)
        )

    def _is_settled(self) -> bool:
        return _key(self._sight) == _key(self.settled)


def _key(sight: Sight) -> object:
    return sight.key if isinstance(sight, Asking) else sight
