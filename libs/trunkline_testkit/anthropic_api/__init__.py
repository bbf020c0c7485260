"""A scripted Anthropic Messages API on loopback, good enough for the real Claude Code to complete turns against.

What it answers is chosen by directives in the last user prompt (`scenarios.py`) and is a function of the request alone,
but for `once…` (fails the first time) and `hold` (waits for a release).
"""

from trunkline_testkit.anthropic_api.server import ApiRequest, ScriptedApi

__all__ = ["ApiRequest", "ScriptedApi"]
