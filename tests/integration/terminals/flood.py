"""Prints coloured lines, each with the time, as quick as they are taken: `flood.py MEGABYTES`. Ctrl-C ends it with a word."""

import sys
import time

FILLING = "abcdefghijklmnopqrstuvwxyz0123456789" * 2


def main(limit: float) -> None:
    printed = number = 0
    try:
        while printed < limit:
            clock = time.time_ns()
            lines = "".join(
                f"\x1b[3{(number + n) % 8}m{number + n:08d}\x1b[0m t{clock} \x1b[1m{FILLING}\x1b[0m\n"
                for n in range(100)
            )
            sys.stdout.write(lines)
            printed += len(lines)
            number += 100
    except KeyboardInterrupt:
        pass
    sys.stdout.write("\x1b[0mthe flood is over\n")


if __name__ == "__main__":
    main(float(sys.argv[1]) * 1e6)
