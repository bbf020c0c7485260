"""An agent's program: where it is found, and the version that it names."""

from pathlib import Path

import pytest

from trunkline_agentkit.manifest import Manifest
from trunkline_agentkit.profiles import AgentProfile, profiled_program
from trunkline_agentkit.programs import find_program, program_version
from trunkline_testkit import processes
from trunkline_wire import TrunklineError

BINARY = "@x/x-{platform}/vendor/*/xprog"
MANIFEST = Manifest(name="x", title="X", protocol="p", program="xprog", install="get it", binaries=(BINARY,))


def program(path: Path, content: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    path.chmod(0o755)
    return path


def test_a_program_is_found_by_its_variable_or_on_the_path(tmp_path: Path) -> None:
    found = program(tmp_path / "xprog")
    other = program(tmp_path / "other" / "y")
    source = {"PATH": str(tmp_path)}
    assert find_program(MANIFEST, source) == str(found)
    assert find_program(MANIFEST, source | {"TRUNKLINE_PROGRAM_X": str(other)}) == str(other)


@pytest.mark.parametrize(
    ("system", "machine", "name"), [("Linux", "x86_64", "linux-x64"), ("Darwin", "arm64", "darwin-arm64")]
)
@pytest.mark.parametrize("prefix", ["lib/node_modules", "node_modules"])
def test_a_package_without_its_launcher_still_has_its_binary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str, machine: str, name: str, prefix: str
) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: machine)
    found = program(tmp_path / prefix / f"@x/x-{name}/vendor/a/xprog")
    directory = tmp_path / ("node_modules/.bin" if prefix == "node_modules" else "bin")
    directory.mkdir()
    assert find_program(MANIFEST, {"PATH": str(directory)}) == str(found)


def test_a_missing_program_says_how_to_get_it() -> None:
    with pytest.raises(TrunklineError, match=r"get it, or set TRUNKLINE_PROGRAM_X") as refused:
        find_program(MANIFEST, {"PATH": "/nowhere"})
    assert refused.value.code == "agent_not_found"


def test_a_variable_that_names_no_program_is_to_be_corrected(tmp_path: Path) -> None:
    program(tmp_path / "xprog")
    with pytest.raises(TrunklineError, match=r"'/no/x' is not installed; correct TRUNKLINE_PROGRAM_X") as refused:
        find_program(MANIFEST, {"PATH": str(tmp_path), "TRUNKLINE_PROGRAM_X": "/no/x"})
    assert refused.value.code == "agent_not_found"


@pytest.mark.parametrize(
    ("name", "variable"),
    [("x", "TRUNKLINE_PROGRAM_X"), ("my-agent", "TRUNKLINE_PROGRAM_X_MY_AGENT"), (None, "TRUNKLINE_PROGRAM_X_COMMAND")],
)
def test_the_variable_of_a_profile_holds_its_name(tmp_path: Path, name: str | None, variable: str) -> None:
    other = program(tmp_path / "other")
    profile = AgentProfile(title="Mine", command=("mine", "--flag"), install="get mine")
    assert profiled_program(MANIFEST, name, profile, {"PATH": "", variable: str(other)}) == str(other)
    with pytest.raises(TrunklineError, match=f"Mine: program 'mine' is not installed; get mine, or set {variable}"):
        profiled_program(MANIFEST, name, profile, {"PATH": "/nowhere"})


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("echo '2.1.332 (Claude Code)'", "2.1.332"),
        ("echo codex-cli 0.171.0-alpha.3", "0.171.0-alpha.3"),
        ("echo 1.2; exit 1", None),
        ("echo none", None),
    ],
)
async def test_a_version_is_what_the_program_prints(tmp_path: Path, said: str, version: str | None) -> None:
    path = program(tmp_path / "x", f'#!/bin/sh\n[ "$1" = --version ] && {said}\n')
    assert await program_version(str(path), {"PATH": "/usr/bin:/bin"}) == version


async def test_a_program_that_does_not_say_its_version_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline_agentkit.programs.OUTPUT_S", 0.5)
    pids = tmp_path / "pids"
    path = program(tmp_path / "x", f"#!/bin/sh\nsleep 600 &\necho $! > {pids}\nwait\n")
    assert await program_version(str(path), {"PATH": "/usr/bin:/bin"}) is None
    assert processes.snapshot(int(pids.read_text())) is None
