"""The `trunkline` command."""

import contextlib
import gc
import os
import sys

from trunkline_cli.root import run

GARBAGE = 50_000
"""Objects between two collections: a command is mostly the loading of modules, among which there is no garbage."""


def main() -> None:
    """Run the command line of this process and end with its exit code, at once: no module is taken apart."""
    gc.set_threshold(GARBAGE)
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
