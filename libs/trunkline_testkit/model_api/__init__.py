"""Scripted model APIs on loopback, good enough for real agents to complete turns against.

One server speaks the Messages API, the Responses API, Chat Completions and the Gemini API.

What they answer is chosen by directives in the last user prompt (`scenarios.py`) and is a function of the request alone,
but for `once…` (fails the first time) and `hold` (waits for a release).
"""

from trunkline_testkit.model_api.server import ApiRequest, ScriptedApi

__all__ = ["ApiRequest", "ScriptedApi"]
