"""The programs of agents: where they are, and what they say of themselves."""

import asyncio
import contextlib
import os
import platform
import re
import shutil
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from trunkline_agentkit.manifest import Manifest
from trunkline_wire import TrunklineError

OUTPUT_S: Final = 15.0
_VERSION: Final = re.compile(r"\d+\.\d+(?:[.+-]?\w+)*")
_MACHINES: Final = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_SYSTEMS: Final = {"Linux": "linux", "Darwin": "darwin", "Windows": "win32"}


def find_program(manifest: Manifest, source: Mapping[str, str] | None = None) -> str:
    """The path of an agent's program: what `TRUNKLINE_PROGRAM_<NAME>` says, the manifest's `program` on PATH, or one of its
    `binaries` in an npm package beside a directory of PATH.

    Raises TrunklineError `agent_not_found`, saying how to install it.
    """
    source = os.environ if source is None else source
    variable = f"TRUNKLINE_PROGRAM_{manifest.name.upper().replace('-', '_')}"
    named = source.get(variable)
    wanted = named or manifest.program
    found = shutil.which(wanted, path=source.get("PATH", os.defpath)) if wanted else None
    if found is None and not named:
        # With `npm install --ignore-scripts`, or without Node, the package's own launcher is missing or of no use.
        found = next(_binaries(manifest, source), None)
    if found is not None:
        return found
    how = f"correct {variable}" if named else f"{manifest.install or 'install it'}, or set {variable}"
    raise TrunklineError(
        "agent_not_found",
        f"{manifest.title}: program {wanted!r} is not installed; {how}",
        adapter=manifest.name,
    )


def _binaries(manifest: Manifest, source: Mapping[str, str]) -> Iterator[str]:
    system, machine = platform.system(), platform.machine().lower()
    target = f"{_SYSTEMS.get(system, system)}-{_MACHINES.get(machine, machine)}"
    for directory in source.get("PATH", os.defpath).split(os.pathsep):
        here = Path(directory)
        # npm's prefixes: <prefix>/bin beside <prefix>/lib/node_modules, and node_modules/.bin inside a project.
        for modules in (here.parent / "lib" / "node_modules", here.parent):
            for pattern in manifest.binaries:
                for candidate in sorted(modules.glob(pattern.replace("{platform}", target))):
                    if candidate.is_file() and os.access(candidate, os.X_OK):
                        yield str(candidate)


async def program_version(path: str, source: Mapping[str, str] | None = None) -> str | None:
    """The version that a program names when it is asked with `--version`; None where it names none."""
    seen = _VERSION.search(await program_output(path, "--version", source=source))
    return seen.group() if seen else None


async def program_output(path: str, *arguments: str, source: Mapping[str, str] | None = None) -> str:
    """What a program prints; nothing where it fails or takes longer than 15 s. Of `source` it gets no more than it needs."""
    source = os.environ if source is None else source
    process = await asyncio.create_subprocess_exec(
        path,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PATH": os.defpath, "HOME": str(Path.home())}
        | {name: source[name] for name in ("PATH", "HOME", "TMPDIR") if name in source},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(OUTPUT_S):
            output, _ = await process.communicate()
    except TimeoutError:
        return ""
    finally:
        if process.returncode is None:
            # Programs of Node start themselves again as children.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return output.decode(errors="replace") if process.returncode == 0 else ""
