"""The explicit environment of an agent: nothing of the worker's own leaks into it."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from trunkline_agentkit.manifest import Manifest
from trunkline_wire import TrunklineError
from trunkline_wire.ids import check_id

SESSION_MARK: Final = "TRUNKLINE_SESSION"
INCARNATION_MARK: Final = "TRUNKLINE_INCARNATION"
"""Set for every agent, inherited by its descendants: so they are found after their parents are gone."""

ALWAYS: Final = (
    "PATH",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
)


def build_environment(
    manifest: Manifest,
    extra: Mapping[str, str],
    *,
    session: str,
    incarnation: str,
    temporary: Path,
    source: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """PATH, HOME, locale, proxy settings, what the manifest names, what the session's options say, and the marks.

    `source` is the environment to take from (the worker's by default). Variables of Trunkline itself are never passed on.
    """
    source = os.environ if source is None else source
    environment = named_variables((*ALWAYS, *manifest.variables), source)
    environment.setdefault("PATH", os.defpath)
    environment.setdefault("HOME", str(Path.home()))
    environment["TMPDIR"] = str(temporary)
    environment |= {name: value for name, value in extra.items() if not name.startswith("TRUNKLINE_")}
    environment[SESSION_MARK] = session
    environment[INCARNATION_MARK] = incarnation
    return environment


def named_variables(names: Iterable[str], source: Mapping[str, str]) -> dict[str, str]:
    """The variables of `source` that `names` names; a `*` at the end takes every name that starts so. None of Trunkline's own."""
    wanted = tuple(names)
    return {
        name: value
        for name, value in source.items()
        if not name.startswith("TRUNKLINE_") and any(_matches(name, pattern) for pattern in wanted)
    }


def _matches(name: str, pattern: str) -> bool:
    return name.startswith(pattern[:-1]) if pattern.endswith("*") else name == pattern


def temporary_directory(session: str, base: Path | None = None) -> Path:
    """A private directory for a session's temporary files, made if it is missing, the same after a restart.

    It lies outside the state directory, which agents are denied, and its path is short, because agents put unix
    sockets there. Raises TrunklineError `bad_directory` where someone else owns the place.
    """
    directory = _temporary(session, base)
    for path in (directory.parent, directory):
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise TrunklineError(
                "bad_directory", f"{str(path)!r} must be a directory that only you can enter: remove or correct it"
            )
    return directory


def remove_temporary_directory(session: str) -> None:
    """Removes what `temporary_directory` made, with everything in it."""
    shutil.rmtree(_temporary(session, None), ignore_errors=True)


def _temporary(session: str, base: Path | None) -> Path:
    return (base or Path(tempfile.gettempdir())) / f"trunkline-{os.getuid()}" / check_id(session, "ses")
