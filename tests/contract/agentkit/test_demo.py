"""The contract suite for the demo adapter."""

from trunkline_agentkit.contract import AdapterContract


class TestDemo(AdapterContract):
    adapter_name = "demo"
    prompts = {
        "say": "say one two three",
        "long": "slow",
        "ask": "ask ls",
        "question": "question Which way?",
        "crash": "crash 4",
    }
