"""The `trunkline` command."""

import sys

from trunkline_cli.root import run


def main() -> None:
    """Run the command line of this process and end with its exit code."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
