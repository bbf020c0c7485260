"""What can be known of agents without starting one."""

from pathlib import Path

import pytest

from trunkline_adapters.acp.adapter import AcpAdapter
from trunkline_adapters.demo.adapter import DemoAdapter
from trunkline_agentkit.agents import agents_of, signed_in
from trunkline_agentkit.protocol import Installed
from trunkline_wire import TrunklineError


def program(directory: Path, name: str) -> Path:
    path = directory / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_sign_is_a_variable_or_a_file(tmp_path: Path) -> None:
    (tmp_path / ".agent").mkdir()
    (tmp_path / ".agent" / "auth.json").touch()
    home = {"HOME": str(tmp_path)}
    assert signed_in(["~/.agent/auth.json"], home)
    assert not signed_in(["~/.agent/other.json"], home)
    assert signed_in(["$AGENT_KEY"], home | {"AGENT_KEY": "x"})
    assert not signed_in(["$AGENT_KEY"], home | {"AGENT_KEY": ""})
    assert signed_in(["$AGENT_HOME/auth.json"], {"AGENT_HOME": str(tmp_path / ".agent")})
    assert not signed_in(["$AGENT_HOME/auth.json"], home)
    assert not signed_in([], home)


async def test_an_adapter_of_several_tells_of_each(tmp_path: Path) -> None:
    path = program(tmp_path, "gemini")
    source = {"PATH": str(tmp_path), "HOME": str(tmp_path), "GEMINI_API_KEY": "x"}
    found = {agent.name: agent for agent in await agents_of(AcpAdapter(source))}
    gemini, goose = found["gemini"], found["goose"]
    assert (gemini.path, gemini.profile, gemini.error, gemini.signed_in) == (str(path), "gemini", None, True)
    assert goose.path is None
    assert goose.error is not None
    assert goose.error.code == "agent_not_found"
    assert not goose.signed_in


async def test_an_adapter_of_one_is_its_own_agent() -> None:
    (demo,) = await agents_of(DemoAdapter(), {})
    assert (demo.name, demo.title, demo.profile, demo.version) == ("demo", "Demo agent", None, "1")


async def test_what_keeps_it_from_running_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def probe(_: DemoAdapter) -> Installed:
        raise TrunklineError("agent_not_found", "install it")

    monkeypatch.setattr(DemoAdapter, "probe", probe)
    (demo,) = await agents_of(DemoAdapter(), {})
    assert demo.path is None
    assert demo.error is not None
    assert demo.error.message == "install it"
