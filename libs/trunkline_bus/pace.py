"""When a Reader that need not hurry asks for messages, and for how many. Pure; all times in seconds of one clock.

It takes what there is every so often, and rests when there was nothing: then it asks for one message, which comes the
moment it is stored and begins the next round.
"""


class Pace:
    """`due` is when to ask again, None where that is at once or a request is under way."""

    def __init__(self, every: float) -> None:
        self._every = every
        self.reset()

    def reset(self) -> None:
        """No request is under way any more: take what there is."""
        self.resting = False
        """Whether the last request is for the one message that ends a rest, and waits for it."""
        self.due: float | None = None
        self._asked = self._got = 0
        self._hurry = False

    def hurry(self) -> None:
        """Ask as soon as no request is under way."""
        self._hurry = True

    def arrived(self) -> None:
        """A message came."""
        self._got += 1

    def wanted(self, now: float, most: int) -> int:
        """For how many messages to ask, now that no request is under way; 0 for none before `due`."""
        if self._asked:
            # Where all came that was asked for, there may be more.
            more = self._got >= self._asked and not self.resting
            self.due = now + self._every if self._got and not more else None
            self.resting = not self._got
            self._asked = 0
        if self.due is not None and now < self.due and not self._hurry:
            return 0
        self.resting = self.resting and not self._hurry
        self._asked = 1 if self.resting else most
        self.due, self._got, self._hurry = None, 0, False
        return self._asked
