"""`python -m trunkline_gateway.client_source [--check]` writes the methods of the Python client, and what they answer."""

import argparse
import sys
import textwrap
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import inspect as structure

from trunkline_gateway import client_results
from trunkline_gateway.methods import ALL
from trunkline_gateway.registry import Method

TARGET: Final = "libs/trunkline_client"
_PLAIN: Final[dict[type[structure.Type], str]] = {
    structure.StrType: "str",
    structure.IntType: "int",
    structure.FloatType: "float",
    structure.BoolType: "bool",
    structure.NoneType: "None",
    structure.StructType: "Mapping[str, Any]",
}
_NEW_SESSIONS: Final = {"session.create": "session", "terminal.shell": "id"}
"""Methods whose parameter of this name is the id of the session that they make."""

_MINTS: Final = {"cmd": "new_command_id()", "ses": "new_session_id()"}
_HEAD: Final = '''"""The gateway's methods. Generated from its registry by `just schema`: a test compares them."""

# fmt: off

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from trunkline_wire.ids import new_command_id, new_session_id

if TYPE_CHECKING:
    from trunkline_client import results

WITHIN = 60.0
"""Seconds that a method may take to answer."""

Call = Callable[..., Awaitable[Any]]
"""Calls a method of this name: `call(name, within=…, **params)`."""


class _Methods:
    def __init__(self, call: Call) -> None:
        self._call = call
'''


def sources() -> dict[str, str]:
    """The modules by the names of their files; the same registry gives the same text."""
    types = (ALL[name].result for name in sorted(ALL))
    return {"api.py": source(), "results.py": client_results.source(types)}


def source() -> str:
    """The module of the methods."""
    spaces: dict[str, list[Method]] = {}
    for name in sorted(ALL):
        spaces.setdefault(name.partition(".")[0], []).append(ALL[name])
    classes = [_class(space, methods) for space, methods in spaces.items()]
    lines = [f"        self.{space} = {_title(space)}(call)" for space in spaces]
    api = '\n\nclass Api:\n    """Every method by its name: `api.session.list()`. What is None is left out."""\n\n'
    return _HEAD + "".join(classes) + api + "    def __init__(self, call: Call) -> None:\n" + "\n".join(lines) + "\n"


def _class(space: str, methods: list[Method]) -> str:
    return f'\n\nclass {_title(space)}(_Methods):\n    """`{space}.*`"""\n' + "".join(map(_method, methods))


def _title(space: str) -> str:
    return "".join(part.title() for part in space.split("_")) + "Methods"


def minted(method: Method) -> tuple[str, str] | None:
    """The parameter, and the kind of its id, that makes a repetition harmless: clients mint it, so that they may repeat."""
    given = {field.name for field in _fields_of(method.params) if not field.required}
    if method.name in _NEW_SESSIONS:
        return _NEW_SESSIONS[method.name], "ses"
    return ("id", "cmd") if "id" in given else None


def _method(method: Method) -> str:
    fields = list(msgspec.structs.fields(method.params)) if issubclass(method.params, msgspec.Struct) else []
    known = {field.name: field.type for field in _fields_of(method.params)}
    required = [f"{field.encode_name}: {_type(known[field.name])}" for field in fields if field.required]
    given = [f"{field.encode_name}: {_optional(known[field.name])}" for field in fields if not field.required]
    names = [field.encode_name for field in fields]
    parts = ["self", "*", *required, *given, "within: float = WITHIN"]
    mints = dict([made]) if (made := minted(method)) is not None else {}
    values = {name: f"{name} or {_MINTS[mints[name]]}" if name in mints else name for name in names}
    sends = [f'"{method.name}"', "within=within", *(f"{name}={value}" for name, value in values.items())]
    summary = method.summary.splitlines()[0]
    return (
        f"\n    async def {method.name.partition('.')[2]}({_spread(parts, 8)}\n    ) -> {_answer(method)}:\n"
        f'        """{textwrap.shorten(summary, 100, placeholder=" …")}\n\n        Needs the role `{method.role}`.\n        """\n'
        f"        return await self._call({_spread(sends, 12)}\n        )\n"
    )


def _answer(method: Method) -> str:
    name = client_results.name_of(method.result)
    return name if name == "Any" else f'"{name}"'


def _spread(parts: list[str], indent: int) -> str:
    """One a line."""
    return "".join(f"\n{' ' * indent}{part}," for part in parts)


def _fields_of(kind: Any) -> tuple[structure.Field, ...]:
    shown = structure.type_info(kind)
    return shown.fields if isinstance(shown, structure.StructType) else ()


def _optional(kind: structure.Type) -> str:
    shown = _type(kind)
    return f"{shown} = None" if shown == "Any" or "None" in shown.split(" | ") else f"{shown} | None = None"


def _type(kind: structure.Type) -> str:
    match kind:
        case structure.LiteralType(values=values):
            return f"Literal[{', '.join(_quoted(value) for value in values)}]"
        case structure.Metadata(type=marked):
            return _type(marked)
        case structure.ListType(item_type=item) | structure.VarTupleType(item_type=item):
            return f"Sequence[{_type(item)}]"
        case structure.DictType(value_type=value):
            return f"Mapping[str, {_type(value)}]"
        case structure.UnionType(types=types):
            return " | ".join(dict.fromkeys(_type(one) for one in types))
        case _:
            return _PLAIN.get(type(kind), "Any")


def _quoted(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m trunkline_gateway.client_source", description=__doc__)
    parser.add_argument("target", nargs="?", type=Path, default=Path(TARGET))
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is not current")
    options = parser.parse_args(arguments)
    wanted = {options.target / name: text for name, text in sources().items()}
    if options.check:
        return int(any(path.read_text(encoding="utf-8") != text for path, text in wanted.items()))
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
