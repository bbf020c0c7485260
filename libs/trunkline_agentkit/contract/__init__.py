"""The contract suite: what every adapter must do, as tests to inherit.

    from trunkline_agentkit.contract import AdapterContract

    class TestMyAdapter(AdapterContract):
        adapter_name = "mine"
        prompts = {"say": "…", "long": "…", "ask": "…"}
        exempt = {"question": "the agent never asks"}

It runs the adapter against a real process over the real transport, without a log: a program that speaks the protocol, or the
real agent. `prompts` are texts that make the agent do a thing; what an agent can't do is exempt, with a reason. Needs pytest,
pytest-asyncio and pytest's `tmp_path`.
"""

from trunkline_agentkit.contract.asks import AskContract
from trunkline_agentkit.contract.base import Ability, Behaviour, More
from trunkline_agentkit.contract.ends import EndContract
from trunkline_agentkit.contract.still import StillContract
from trunkline_agentkit.contract.trouble import TroubleContract
from trunkline_agentkit.contract.turns import TurnContract


class AdapterContract(StillContract, TurnContract, AskContract, TroubleContract, EndContract):
    """All of it."""


__all__ = ["Ability", "AdapterContract", "Behaviour", "More"]
