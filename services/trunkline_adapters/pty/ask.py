"""A dialog on the screen as an ask. Pure."""

from dataclasses import dataclass

from trunkline_adapters.pty.infer import Asking
from trunkline_wire import Data, TrunklineError
from trunkline_wire.asks import AskDecided, PermissionRequested


@dataclass
class Ask:
    id: str
    dialog: Asking
    answered: bool = False

    def keys(self, decision: AskDecided) -> tuple[str, ...]:
        """The keys to be typed for a decision. Raises TrunklineError `bad_answer`."""
        wanted = "allow" if decision.behaviour == "allow" else "reject"
        fitting = [option.id for option in self.dialog.options if option.kind.startswith(wanted)]
        chosen = decision.option or next(iter(fitting), None)
        if chosen not in self.dialog.keys:
            known = ", ".join(self.dialog.keys)
            raise TrunklineError("bad_answer", f"the dialog has no answer {chosen or wanted!r}; there are: {known}")
        return self.dialog.keys[chosen]

    def requested(self, incarnation: str) -> PermissionRequested:
        return PermissionRequested(
            ask=self.id,
            incarnation=incarnation,
            name=self.dialog.name,
            kind=self.dialog.kind,
            title=self.dialog.title,
            input=self.dialog.about,
            description=self.dialog.shown,
            options=list(self.dialog.options),
        )


def is_of(asked: Data, dialog: Asking) -> bool:
    """Whether what was asked is what a dialog asks."""
    return isinstance(asked, PermissionRequested) and (asked.name, asked.title, asked.input) == dialog.key
