"""Conventions of the tree that no linter knows."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*ROOT.glob("libs/*/**/*.py"), *ROOT.glob("services/*/**/*.py")])
PACKAGES = sorted(p.parent for p in ROOT.glob("*/trunkline_*/__init__.py"))
ADAPTERS = sorted(p.parent for p in ROOT.glob("services/trunkline_adapters/*/manifest.toml"))


def tracked() -> list[Path]:
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in names.split("\0") if name]


def test_every_package_says_what_lives_there() -> None:
    silent = [p.name for p in PACKAGES if not (p / "README.md").is_file()]
    assert silent == []


def test_every_adapter_has_the_same_files() -> None:
    assert [a.name for a in ADAPTERS] == [
        "a2a",
        "acp",
        "claude",
        "claude_sdk",
        "codex",
        "demo",
        "headless",
        "opencode",
        "pty",
    ]
    for adapter in ADAPTERS:
        wanted = {"adapter.py", "session.py", "README.md"}
        if adapter.name != "claude_sdk":  # what it says is Claude Code's own, and is translated there
            wanted |= {"translate.py", "native.py"}
        missing = wanted - {p.name for p in adapter.iterdir()}
        assert not missing, f"{adapter.name} lacks {missing}"


@pytest.mark.parametrize("name", ["projector", "permissions", "teams", "gateway", "adapters", "supervisor"])
def test_services_have_the_same_shape(name: str) -> None:
    folder = ROOT / f"services/trunkline_{name}"
    assert {"__main__.py", "app.py"} <= {p.name for p in folder.iterdir()}
    assert len((folder / "__main__.py").read_text().splitlines()) <= 25


def test_only_the_wire_package_spells_subjects() -> None:
    pattern = re.compile(r"""["']trunk\.(ev|delta|cmd|answer|spawn|obs|sys|dlq)\.""")
    offenders = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in SOURCES
        if "trunkline_wire" not in path.parts and "trunkline_testkit" not in path.parts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]
    assert offenders == []


def test_no_adapter_name_outside_its_folder() -> None:
    pattern = re.compile(r"""["'](claude|codex|gemini|opencode)["']""")
    offenders = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in SOURCES
        if not {"trunkline_adapters", "trunkline_testkit"} & set(path.parts)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if pattern.search(line)
    ]
    assert offenders == []


def test_nothing_unfinished() -> None:
    pattern = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError")
    offenders = [f"{p.relative_to(ROOT)}" for p in SOURCES if pattern.search(p.read_text())]
    assert offenders == []


def test_no_host_of_a_registry_is_named() -> None:
    hosts = re.compile("python" + r"hosted|registry\.npm" + r"js|pypi\." + "org")
    offenders = [
        str(p.relative_to(ROOT)) for p in tracked() if p.is_file() and hosts.search(p.read_text(errors="ignore"))
    ]
    assert offenders == []


def test_error_codes_in_the_code_are_listed() -> None:
    from trunkline_wire import ERRORS

    used = {
        (code, str(path.relative_to(ROOT)))
        for path in SOURCES
        for code in re.findall(r"""TrunklineError\(\s*["']([a-z_]+)["']""", path.read_text())
    }
    assert {u for u in used if u[0] not in ERRORS} == set()
