"""Settings: defaults < trunkline.toml < TRUNKLINE_* environment < flags; read once, at the edge.

A service's settings are a frozen struct. The fields of `Settings` are common to all services: `TRUNKLINE_<FIELD>` and a
top-level key of the file. Every field may also be set for one service alone: `TRUNKLINE_<SERVICE>_<FIELD>` and the
table `[<service>]`; a service's own fields only there. A key that nobody knows is refused, so that a typing error
can't be a silent default. The environment is shared with programs that are not ours: there `TRUNKLINE_<anything>` is
refused where it is meant for this service or nearly names a setting.
"""

import argparse
import difflib
import os
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeVar
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec import inspect as structure

from trunkline_wire import TrunklineError
from trunkline_wire.secret import MASK, Discreet, secret_fields

SERVICES: Final = (
    "adapters",
    "cli",
    "extensions",
    "gateway",
    "monitor",
    "permissions",
    "projector",
    "relay",
    "relay_server",
    "supervisor",
    "teams",
)


class Settings(Discreet, frozen=True, kw_only=True):
    """What every service can be told. A service adds its own fields in a frozen subclass."""

    home: Path = Path("~/.trunkline")
    """Directory of this host's files (0700)."""
    nats_url: str = "nats://127.0.0.1:4222"
    nats_seed: Path | None = None
    """File with the nkey seed of this service's NATS user."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    log_format: Literal["json", "console"] = "console"
    http_port: int = 0
    """Port of /health, /ready and /metrics on loopback; 0 takes any free one."""
    http_host: str = "127.0.0.1"
    otlp_endpoint: str | None = None
    """Base URL of an OTLP/HTTP collector; without it traces are only propagated."""
    drain_s: float = 20.0
    """Seconds that a service may take to finish after SIGTERM."""


S = TypeVar("S", bound=Settings)


def load(
    kind: type[S], service: str, *, argv: Sequence[str] = (), environ: Mapping[str, str] | None = None
) -> tuple[S, bool]:
    """The effective settings, and whether `--check` was asked for.

    Raises TrunklineError `bad_settings` naming the key and where it stands. argparse ends the process with 2 for an
    unknown flag.
    """
    environ = os.environ if environ is None else environ
    names = {field.name for field in msgspec.structs.fields(kind)}
    common = {field.name for field in msgspec.structs.fields(Settings)}
    flags, check = _from_flags(kind, service, argv)
    variables = _from_environment(environ, service, names, common)
    home = Path(flags.get("home") or variables.get("home") or Settings().home).expanduser()
    values = _from_file(home / "trunkline.toml", service, names, common)
    for source in (variables, flags):
        values.update(source)
    values["home"] = str(home)
    return _convert(kind, values), check


def effective(settings: Settings) -> dict[str, Any]:
    """The settings as JSON values, secrets and passwords in URLs masked."""
    shown: dict[str, Any] = {}
    hidden = secret_fields(type(settings))
    for name in settings.__struct_fields__:
        value: Any = getattr(settings, name)
        if name in hidden and value:
            value = MASK
        elif isinstance(value, Path):
            value = str(value)
        elif isinstance(value, str):
            value = mask_url(value)
        shown[name] = value
    return shown


def mask_url(value: str) -> str:
    """`value` without the password or token that stands before the @ of a URL."""
    if "://" not in value or "@" not in value:
        return value
    parts = urlsplit(value)
    return urlunsplit(parts._replace(netloc=f"{MASK}@{parts.netloc.rpartition('@')[2]}"))


def _from_flags(kind: type[Settings], service: str, argv: Sequence[str]) -> tuple[dict[str, Any], bool]:
    parser = argparse.ArgumentParser(prog=f"trunkline-{service}", allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="print the effective settings and end")
    for field in msgspec.structs.fields(kind):
        flag = f"--{field.name.replace('_', '-')}"
        if _is_bool(field.type):
            parser.add_argument(flag, action=argparse.BooleanOptionalAction, default=None)
        else:
            parser.add_argument(flag, default=None, metavar="VALUE")
    found = vars(parser.parse_args(list(argv)))
    check = bool(found.pop("check"))
    given = {name: value for name, value in found.items() if value is not None}
    return {name: _listed(kind, name, value) for name, value in given.items()}, check


def _from_environment(environ: Mapping[str, str], service: str, names: set[str], common: set[str]) -> dict[str, Any]:
    own: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    for variable, value in environ.items():
        if not variable.startswith("TRUNKLINE_"):
            continue
        key = variable.removeprefix("TRUNKLINE_")
        prefix = max((s for s in SERVICES if key.startswith(f"{s.upper()}_")), key=len, default=None)
        if prefix == service:
            own[_known(key.removeprefix(f"{service.upper()}_"), names, variable, cutoff=0)] = value
        elif prefix is None:
            name = _known(key, common, variable, cutoff=0.7)
            if name in common:
                shared[name] = value
    return {**shared, **own}


def _from_file(path: Path, service: str, names: set[str], common: set[str]) -> dict[str, Any]:
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise TrunklineError("bad_settings", f"{path} can't be read: {error}", file=str(path)) from error
    own: Any = raw.pop(service, {})
    if not isinstance(own, dict):
        raise TrunklineError("bad_settings", f"{path}: {service!r} must be a table: write [{service}]", file=str(path))
    shared = {key: value for key, value in raw.items() if key not in SERVICES}
    own_values = typing.cast("dict[str, Any]", own)
    for where, table, allowed in ((str(path), shared, common), (f"{path} [{service}]", own_values, names)):
        for key in table:
            if key not in allowed or key == "home":
                raise _unknown(key, where, sorted(allowed - {"home"}))
    return {**shared, **own_values}


def _convert(kind: type[S], values: dict[str, Any]) -> S:
    prepared = {name: _listed(kind, name, value) for name, value in values.items()}
    try:
        return msgspec.convert(prepared, kind, strict=False, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise TrunklineError("bad_settings", f"a setting has a wrong value: {error}") from error


def _path(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value).expanduser()
    raise TypeError(f"settings of type {kind!r}")


def _listed(kind: type[Settings], name: str, value: Any) -> Any:
    """Lists are written with commas in the environment and in flags."""
    if not isinstance(value, str):
        return value
    declared = next(field.type for field in msgspec.structs.fields(kind) if field.name == name)
    info = structure.type_info(declared) if declared is not Path else None
    if isinstance(info, structure.ListType | structure.VarTupleType):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _is_bool(declared: Any) -> bool:
    if isinstance(declared, types.UnionType):
        return bool in typing.get_args(declared)
    return declared is bool


def _known(key: str, allowed: set[str], variable: str, *, cutoff: float) -> str:
    """`key` as a field's name; refused if it is none of `allowed` but near to one."""
    name = key.lower()
    near = difflib.get_close_matches(name, sorted(allowed), n=1, cutoff=cutoff)
    if name in allowed or not near:
        return name
    meant = variable.removesuffix(key) + near[0].upper()
    raise TrunklineError(
        "bad_settings", f"unknown setting {variable!r} in the environment: did you mean {meant!r}?", key=variable
    )


def _unknown(key: str, where: str, known: list[str]) -> TrunklineError:
    near = difflib.get_close_matches(key, known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
    return TrunklineError("bad_settings", f"unknown setting {key!r} in {where}: {hint}", key=key)
