"""What `trunkline up` tells the person in front of it: one line a step, nothing that a log would say better."""

import sys
from typing import TextIO


class Console:
    """Lines for people. Details go to the log files."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = sys.stdout if out is None else out
        self.attended = self._colour = self._out.isatty()
        """`attended`: somebody sits in front of it, and can press Ctrl-C."""

    def title(self, text: str) -> None:
        self._print(self._styled("1", text))

    def step(self, what: str, detail: str = "") -> None:
        """Something is done."""
        self._print(f"  {self._styled('32', 'ok')}  {what:<14}{detail}")

    def trouble(self, text: str) -> None:
        """Something went wrong and is being mended."""
        self._print(f"  {self._styled('33', '!!')}  {text}")

    def line(self, text: str = "") -> None:
        self._print(text)

    def _styled(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._colour else text

    def _print(self, text: str) -> None:
        try:
            print(text, file=self._out, flush=True)
        except BrokenPipeError:
            # Whoever read along is gone; the services go on.
            self._out = open("/dev/null", "w", encoding="utf-8")  # noqa: SIM115, PTH123 - for the rest of the process
