"""What a session has chosen of what its server offers: the model, the agent and the level of thinking of its prompts."""

from trunkline_adapters.opencode import launch
from trunkline_adapters.opencode.profiles import Profile
from trunkline_adapters.opencode.translate import OpenCodeTranslator
from trunkline_adapters.opencode.translate_session import default_model, model_of, models_of, modes_of
from trunkline_agentkit.fields import Obj, obj, text
from trunkline_wire import TrunklineError
from trunkline_wire.session import SessionOptions, Thinking


class Choices:
    """Every method that chooses raises TrunklineError `bad_params` for what there is none of, saying what there is."""

    def __init__(self, translator: OpenCodeTranslator, profile: Profile) -> None:
        self._translator = translator
        self._profile = profile
        self._model: str | None = None
        self._mode: str | None = None
        self._variant: str | None = None

    @property
    def model(self) -> str | None:
        """`provider/model` as it was chosen, else the one that the session answers with."""
        return self._model or self._translator.known.model

    def settle(self, options: SessionOptions) -> None:
        if options.model is not None:
            self.choose_model(options.model)
        if options.mode is not None:
            self.choose_mode(options.mode)
        if options.thinking is not None:
            self.choose_thinking(options.thinking)

    def choose_model(self, model: str) -> None:
        """By its whole name, or without its provider where only one has it."""
        there = [model_of(one) or "" for one in models_of(self._translator.state)]
        named = [one for one in there if model in {one, one.partition("/")[2]}]
        if model in there:
            named = [model]
        if len(named) != 1:
            raise TrunklineError("bad_params", f"there is no model {model!r}; there are: {', '.join(there[:50])}")
        self._model = named[0]

    def choose_mode(self, mode: str) -> None:
        there = [text(one, "name") for one in modes_of(self._translator.state)]
        if mode not in there:
            names = ", ".join(name for name in there if name)
            raise TrunklineError("bad_params", f"there is no agent {mode!r}; there are: {names}")
        self._mode = mode

    def choose_thinking(self, level: Thinking) -> None:
        model = next((one for one in models_of(self._translator.state) if model_of(one) == self.model), {})
        offered = sorted(obj(model, "variants"))
        found = launch.variant(level, offered)
        if found is None:
            there = f"it has: {', '.join(offered)}" if offered else "it has none"
            raise TrunklineError("bad_params", f"model {self.model!r} can't think at level {level!r}; {there}")
        self._variant = found

    def of_prompt(self) -> Obj:
        """Members of a prompt's body. A wrong model would stick to the session, so that none is left to the server."""
        known, state = self._translator.known, self._translator.state
        body: Obj = {"agent": self._mode or known.mode or self._profile.mode}
        models = {model_of(one) for one in models_of(state)}
        model = self._model
        if model is None and models and known.model not in models:
            model = default_model(state, body["agent"])
        if model is not None:
            body["model"] = launch.model_body(model)
        if self._variant is not None:
            body["variant"] = self._variant
        return body
