"""How each real agent is started without a network: settings in its own HOME, an explicit environment, a scripted model.

Nothing is inherited: PATH has the agent's own folder and the system's, keys are dummies, telemetry and updates are off.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trunkline_testkit.agents import agent_env, agent_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODEL = "scripted"
KEY = "scripted"
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


def offline_env(name: str, home: Path, api_url: str) -> dict[str, str]:
    """The whole environment for agent `name`, after its settings were written below `home`.

    Its program, and the Node that it brings, come first on PATH. Raises KeyError for an unknown agent, LookupError for one
    that is not installed.
    """
    program = agent_path(name)
    if program is None:
        raise LookupError(f"{name} is not installed: run `just agents {name}`")
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    environment = {
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "LANG": "C.UTF-8",
        "SHELL": "/bin/bash",
        "NO_UPDATE_NOTIFIER": "1",
        **offline_settings(name, home, api_url),
    }
    return environment | {"PATH": f"{program.parent}:{_SYSTEM_PATH}"}


def offline_settings(name: str, home: Path, api_url: str) -> dict[str, str]:
    """The variables of agent `name` alone, after its settings were written below `home`: its program may be elsewhere."""
    return _SETTINGS[name](home, api_url)


def _claude(home: Path, api_url: str) -> dict[str, str]:
    # As root the program refuses modes that never ask, unless it is told that it is in a sandbox.
    return agent_env(home, api_url) | {"IS_SANDBOX": "1"}


def _claude_sdk(home: Path, api_url: str) -> dict[str, str]:
    program = agent_path("claude-sdk")
    if program is None:
        raise LookupError("claude-sdk is not installed: run `just agents claude-sdk`")
    # The package is imported: site-packages/claude_agent_sdk/_bundled/claude.
    return _claude(home, api_url) | {"TRUNKLINE_CLAUDE_SDK_PATH": str(program.resolve().parents[2])}


def _aider(home: Path, api_url: str) -> dict[str, str]:
    _write(
        home / ".aider.conf.yml",
        f"""
model: openai/{MODEL}
openai-api-base: {api_url}/v1
openai-api-key: {KEY}
analytics-disable: true
check-update: false
show-release-notes: false
show-model-warnings: false
gitignore: false
git: false
""",
    )
    return {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}


def _codex(home: Path, api_url: str) -> dict[str, str]:
    # A model of Codex's own catalogue: for others it has no tool for patches. In its terminal it praises a newer one, once.
    _write(
        home / ".codex" / "config.toml",
        f"""
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
approval_policy = "on-request"
sandbox_mode = "workspace-write"
[model_providers.scripted]
name = "Scripted"
base_url = "{api_url}/v1"
wire_api = "responses"
env_key = "CODEX_SCRIPTED_KEY"
requires_openai_auth = false
request_max_retries = 1
stream_max_retries = 1
[analytics]
enabled = false
[feedback]
enabled = false
[notice.model_migrations]
"gpt-5.5" = "gpt-6-sol"
""",
    )
    return {"CODEX_HOME": str(home / ".codex"), "CODEX_SCRIPTED_KEY": KEY}


def _gemini(home: Path, api_url: str) -> dict[str, str]:
    _write_json(
        home / ".gemini" / "settings.json",
        {
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        },
    )
    return {
        "GEMINI_API_KEY": KEY,
        "GOOGLE_GEMINI_BASE_URL": api_url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_CLI_NO_RELAUNCH": "true",
    }


def _qwen(home: Path, api_url: str) -> dict[str, str]:
    _write_json(
        home / ".qwen" / "settings.json",
        {
            "security": {"auth": {"selectedType": "openai"}},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "general": {"disableAutoUpdate": True, "disableUpdateNag": True},
        },
    )
    return {"OPENAI_BASE_URL": f"{api_url}/v1", "OPENAI_API_KEY": KEY, "OPENAI_MODEL": MODEL}


def _copilot(home: Path, api_url: str) -> dict[str, str]:
    return {
        "COPILOT_HOME": str(home / ".copilot"),
        "COPILOT_PROVIDER_BASE_URL": f"{api_url}/v1",
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_MODEL": MODEL,
        "COPILOT_OFFLINE": "true",
    }


def _cline(home: Path, api_url: str) -> dict[str, str]:
    settings = {
        "provider": "openai-compatible",
        "apiKey": KEY,
        "model": MODEL,
        "baseUrl": f"{api_url}/v1",
    }
    provider = {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    _write_json(
        home / ".cline" / "data" / "settings" / "providers.json",
        {
            "version": 1,
            "lastUsedProvider": "openai-compatible",
            "modes": {},
            "providers": {"openai-compatible": provider},
        },
    )
    return {}


def _continue(home: Path, api_url: str) -> dict[str, str]:
    _write(
        home / ".continue" / "config.yaml",
        f"""
name: {MODEL}
version: 0.0.1
schema: v1
models:
  - name: {MODEL}
    provider: openai
    model: {MODEL}
    apiBase: {api_url}/v1
    apiKey: {KEY}
    roles: [chat]
    capabilities: [tool_use]
""",
    )
    return {"CONTINUE_TELEMETRY_ENABLED": "0"}


def _opencode(home: Path, api_url: str) -> dict[str, str]:
    _write_json(home / ".config" / "opencode" / "opencode.json", _opencode_settings(api_url))
    return {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def _kilo(home: Path, api_url: str) -> dict[str, str]:
    # On a slow machine it would ask its user whether to go on without snapshots.
    _write_json(home / ".config" / "kilo" / "kilo.json", _opencode_settings(api_url) | {"snapshot": False})
    return {"KILO_DISABLE_AUTOUPDATE": "1", "KILO_DISABLE_MODELS_FETCH": "1", "KILO_TELEMETRY_LEVEL": "off"}


def _opencode_settings(api_url: str) -> dict[str, Any]:
    limit = {"context": 100_000, "output": 8_000}
    model = {
        "name": "Scripted",
        "tool_call": True,
        "reasoning": True,
        "attachment": True,
        "modalities": {"input": ["text", "image"], "output": ["text"]},
        "limit": limit,
        "cost": {"input": 3, "output": 15},
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{api_url}/v1", "apiKey": KEY},
        "models": {MODEL: model},
    }
    return {
        "autoupdate": False,
        "share": "disabled",
        "model": f"scripted/{MODEL}",
        "small_model": f"scripted/{MODEL}",
        "enabled_providers": ["scripted"],
        "provider": {"scripted": provider},
        "permission": {"bash": "ask", "edit": "ask"},
    }


def _fast_agent(home: Path, api_url: str) -> dict[str, str]:
    return {
        "GENERIC_BASE_URL": f"{api_url}/v1",
        "GENERIC_API_KEY": KEY,
        "FAST_AGENT_MODEL": f"generic.{MODEL}",
        "FAST_AGENT_HOME": str(home / ".fast-agent"),
    }


def _vibe(home: Path, api_url: str) -> dict[str, str]:
    _write(
        home / ".vibe" / "config.toml",
        f"""
active_model = "{MODEL}"
enable_update_checks = false
enable_auto_update = false
enable_telemetry = false
[[providers]]
name = "scripted"
api_base = "{api_url}/v1"
api_key_env_var = "VIBE_SCRIPTED_KEY"
api_style = "openai"
backend = "generic"
[[models]]
name = "{MODEL}"
provider = "scripted"
alias = "{MODEL}"
""",
    )
    return {"VIBE_HOME": str(home / ".vibe"), "VIBE_SCRIPTED_KEY": KEY}


def _openhands(home: Path, api_url: str) -> dict[str, str]:
    # Through ACP it wants a saved agent, though the environment says all that there is to say.
    llm: dict[str, Any] = {"model": f"openai/{MODEL}", "api_key": KEY, "base_url": f"{api_url}/v1", "usage_id": "agent"}
    # It would try for minutes, and hear of no interrupt meanwhile.
    llm |= {"num_retries": 1, "retry_min_wait": 1, "retry_max_wait": 1}
    tools = [{"name": name} for name in ("terminal", "file_editor", "task_tracker")]
    agent = {"kind": "Agent", "llm": llm, "tools": tools, "system_prompt_kwargs": {"cli_mode": True}}
    _write_json(home / ".openhands" / "agent_settings.json", agent)
    return {
        "LLM_MODEL": f"openai/{MODEL}",
        "LLM_BASE_URL": f"{api_url}/v1",
        "LLM_API_KEY": KEY,
        "OPENHANDS_SUPPRESS_BANNER": "1",
    }


_SETTINGS: dict[str, Callable[[Path, str], dict[str, str]]] = {
    "aider": _aider,
    "claude": _claude,
    "claude-2.1.101": _claude,
    "claude-sdk": _claude_sdk,
    "claude-agent-acp": _claude,
    "cline": _cline,
    "codex": _codex,
    "codex-acp": _codex,
    "continue": _continue,
    "copilot": _copilot,
    "fast-agent": _fast_agent,
    "gemini": _gemini,
    "gemini-a2a": _gemini,
    "kilo": _kilo,
    "opencode": _opencode,
    "openhands": _openhands,
    "qwen": _qwen,
    "vibe": _vibe,
}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _write_json(path: Path, value: Any) -> None:
    _write(path, json.dumps(value, indent=2))
