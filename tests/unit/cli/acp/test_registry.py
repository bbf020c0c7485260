"""The entry for the registry of ACP agents: in its form, and true of this version.

Source: agentclientprotocol/registry, `agent.schema.json` and CONTRIBUTING.md.
"""

import json
import re
from importlib import metadata, resources
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import click

from trunkline_cli.root import cli

ENTRY = resources.files("trunkline_cli") / "acp/registry"
AGENT: dict[str, Any] = json.loads((ENTRY / "agent.json").read_text())


def test_the_entry_has_the_registrys_form() -> None:
    assert re.fullmatch(r"[a-z][a-z0-9-]*", AGENT["id"])
    assert re.match(r"[0-9]+\.[0-9]+\.[0-9]+", AGENT["version"])
    assert set(AGENT) == {"id", "name", "version", "description", "icon", "distribution"}
    assert all(AGENT[name] for name in ("name", "description"))
    assert set(AGENT["distribution"]) == {"uvx"}
    assert set(AGENT["distribution"]["uvx"]) == {"package", "args"}


def test_it_is_of_this_version_and_names_a_command_that_there_is() -> None:
    version = metadata.version("trunkline")
    assert AGENT["version"] == version
    assert AGENT["distribution"]["uvx"]["package"] == f"trunkline=={version}"
    (script,) = metadata.entry_points(group="console_scripts", name="trunkline")
    assert script.value == "trunkline_cli.__main__:main"
    name, *flags = AGENT["distribution"]["uvx"]["args"]
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    context = command.make_context(name, list(flags))
    assert (context.args, context.params["up"]) == ([], True)


def test_the_icon_takes_the_editors_colour() -> None:
    icon = ET.fromstring((ENTRY / "icon.svg").read_text())
    assert (icon.get("width"), icon.get("height")) == ("16", "16")
    fills = {one.get("fill") for one in icon.iter() if one.get("fill")}
    assert fills == {"currentColor"}


def test_the_readmes_settings_start_it() -> None:
    readme = (Path(__file__).parents[4] / "README.md").read_text()
    found = re.search(r"## From an editor\n.*?```json\n(.*?)```", readme, re.DOTALL)
    assert found is not None
    (server,) = json.loads(found[1])["agent_servers"].values()
    assert (server["type"], server["command"]) == ("custom", "trunkline")
    name, *flags = server["args"]
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    context = command.make_context(name, list(flags))
    assert (context.params["up"], context.params["agent"]) == (True, "claude")
