#!/usr/bin/env python3
"""A fake of programs that have only a terminal: a prompt, answers that come slowly, dialogs, Ctrl-C. What it is told it does."""

import os
import sys
import time
from pathlib import Path


def put(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def say(text: str, delay: float = 0.02) -> None:
    """In pieces, each line written anew as it grows."""
    shown = ""
    for word in text.split(" "):
        shown = f"{shown} {word}".lstrip()
        put(f"\r\x1b[2K\x1b[34m{shown}\x1b[0m")
        time.sleep(delay)
    put("\r\n")


def ask(command: str) -> bool:
    return input(f"Run `{command}`? [y/n] ").strip() == "y"


def do(prompt: str) -> None:
    match prompt.split():
        case ["say"]:
            say("Hello from the stand-in, which says this in several pieces.")
        case ["long"]:
            say(" ".join(f"word{n}" for n in range(2000)), 0.05)
        case ["slow"]:
            say("one two three", 1.0)
        case ["until", "released"]:
            say("It waits for a file.")
            while not Path("released").exists():
                time.sleep(0.1)
                put(".")
            put("\r\n")
            say("Released.")
        case ["huge"]:
            for n in range(10_000):
                put(f"{n:06d} " + "x" * 93 + "\r\n")
        case ["ask"]:
            if ask("touch asked"):
                Path("asked").touch()
                say("It was allowed.")
            else:
                say("It was refused.")
        case ["crash"]:
            say("I am about to break")
            put("fatal: it broke\r\n")
            os._exit(3)
        case ["err401"]:
            put("model error: 401 unauthorized\r\n")
        case ["err500"]:
            put("model error: 500\r\n")
        case ["size"]:
            put(f"{os.get_terminal_size().columns}x{os.get_terminal_size().lines}\r\n")
        case ["cursor"]:
            put("\x1b[6n")
            answer = ""
            while not answer.endswith("R"):
                answer += sys.stdin.read(1)
            put(f"\r\n{answer[1:]}\r\n")
        case _:
            say(f"You said: {prompt}")


def main() -> None:
    put("The stand-in.\r\n\x1b[?2004h")
    while True:
        try:
            prompt = input("you> ")
            if prompt == "leave":
                return
            do(prompt.replace("\x1b[200~", "").replace("\x1b[201~", ""))
        except KeyboardInterrupt:
            put("\r\nstopped\r\n")
        except EOFError:
            return


if __name__ == "__main__":
    main()
