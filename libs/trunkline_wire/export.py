"""`python -m trunkline_wire.export [--check] [DIRECTORY]` writes the schemas, or says which of them are not current."""

import argparse
import sys
from pathlib import Path
from typing import Final

import msgspec

from trunkline_wire.asyncapi import asyncapi
from trunkline_wire.schema import Schema, commands_schema, events_schema

DIRECTORY: Final = Path(__file__).parent / "schema"


def documents() -> dict[str, bytes]:
    """The content of every generated file by name; the same schema gives the same bytes."""
    return {
        "events.schema.json": _text(events_schema()),
        "commands.schema.json": _text(commands_schema()),
        "asyncapi.json": _text(asyncapi()),
    }


def stale(directory: Path = DIRECTORY) -> list[str]:
    """Names of the files in `directory` that are missing or differ from what the classes say."""
    return [
        name
        for name, content in documents().items()
        if not (directory / name).is_file() or (directory / name).read_bytes() != content
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m trunkline_wire.export", description=__doc__)
    parser.add_argument("directory", nargs="?", type=Path, default=DIRECTORY)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is not current")
    options = parser.parse_args(arguments)
    if options.check:
        old = stale(options.directory)
        for name in old:
            sys.stderr.write(f"{options.directory / name} is not current: run python -m trunkline_wire.export\n")
        return 1 if old else 0
    options.directory.mkdir(parents=True, exist_ok=True)
    for name, content in documents().items():
        (options.directory / name).write_bytes(content)
    return 0


def _text(schema: Schema) -> bytes:
    return msgspec.json.format(msgspec.json.encode(schema, order="sorted"), indent=2) + b"\n"


if __name__ == "__main__":
    sys.exit(main())
