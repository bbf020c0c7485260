"""Shell commands by their text, as an allowing pattern reads them: covered as a whole, and narrowly.

A program may start others, a variable may hold a command: what could hide one is refused (operators, substitutions, options
that name a program, ways up the tree). How a denying pattern reads them is in `apart`.
"""

import functools
import posixpath
import re
import shlex
from typing import Any, Final

LONGEST: Final = 8192
"""Characters of a command that an allowing pattern still reads."""

_SIGNS: Final = ("\n", "\r", ";", "&", "|", "`", "$", "<", ">", "(", "{", "!")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=.*", re.DOTALL)
_SEPARATORS: Final = re.compile(r"[/=:,]")
_CLIMBS: Final = re.compile(r"\.\.|\.[^/]*[*?\[].*")

_STEERING: Final = frozenset({"env", "environment", "stdin", "shell", "interpreter"})
_PLAIN_SHELLS: Final = frozenset(
    f"{where}{name}" for where in ("", "/bin/", "/usr/bin/") for name in ("sh", "bash", "zsh", "dash")
)
_SCRIPT_FLAGS: Final = frozenset({"-c", "-lc", "-cl"})
_RUNS_ANOTHER: Final = re.compile(
    r"-(exec|execdir|ok|okdir|delete|fprint0?|fprintf|fls)$"
    r"|--(exec|exec-path|exec-batch|upload-pack|receive-pack|ext-diff|textconv|open-files-in-pager|to-command|checkpoint-action"
    r"|use-compress-program|compress-program|pre|rsh|rsync-path|eval|pager|script-shell|config-env|init-command|command|post-checkout)(=|$)"
    r"|-o?(Proxy|Local)Command\b|.*(Proxy|Local)Command="
)
"""Options of widespread programs that name a command, a file to write or a file of commands."""


def commands_of(value: Any) -> list[str]:
    """The command lines in a tool's input: `command` and `cmd`, texts or lists of words, with `args` where there are any."""
    if not isinstance(value, dict):
        return []
    more = [_line(value[key]) for key in ("args", "arguments", "argv") if isinstance(value.get(key), str | list)]
    found = [_line(value[key]) for key in ("command", "cmd") if isinstance(value.get(key), str | list)]
    return list(dict.fromkeys(" ".join([command, *more]) for command in found))


def is_assignment(word: str) -> bool:
    """Whether a word that stands before a program sets a variable."""
    return _ASSIGNMENT.fullmatch(word) is not None


def is_steered(value: Any) -> bool:
    """Whether the input changes by other means what its command does: an environment, an input, another shell."""
    return isinstance(value, dict) and any(value.get(key) for key in _STEERING)


def _line(value: Any) -> str:
    return shlex.join(str(word) for word in value) if isinstance(value, list) else str(value)


def allowed(pattern: str, command: str) -> bool:
    """Whether an allowing pattern covers the whole command, or the script that a plain `bash -c` runs."""
    command = command.strip()
    if _covers(pattern, command):
        return True
    script = _script(command)
    return script is not None and _covers(pattern, script.strip())


def _covers(pattern: str, command: str) -> bool:
    if len(command) > LONGEST or any(not (c.isprintable() or c in "\t\n\r") for c in command):
        return False
    if any(command.count(sign) > pattern.count(sign) for sign in _SIGNS):
        return False
    if _whole(pattern).fullmatch(command) is None:
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    known = pattern.split()
    if sum(map(_climbs, words)) > sum(map(_climbs, known)) or _assigned(words) > _assigned(known):
        return False
    return not any(_starts_another(words, word) and word not in known for word in words)


def _script(command: str) -> str | None:
    """What `bash -c '…'` runs, where it is nothing but that."""
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    if len(words) == 3 and words[0] in _PLAIN_SHELLS and words[1] in _SCRIPT_FLAGS:
        return words[2]
    return None


def _climbs(word: str) -> int:
    """How often a word goes up the tree."""
    return sum(_CLIMBS.fullmatch(part) is not None for part in _SEPARATORS.split(word))


def _assigned(words: list[str]) -> int:
    """How many words before the program set a variable: `echo*` is not `echoX=1 rm`."""
    return next((n for n, word in enumerate(words) if not is_assignment(word)), len(words))


def _starts_another(words: list[str], word: str) -> bool:
    if _RUNS_ANOTHER.match(word) is not None:
        return True
    return posixpath.basename(words[0]) == "git" and word.startswith("-c") and "=" in " ".join(words)


@functools.lru_cache(maxsize=1024)
def _whole(pattern: str) -> re.Pattern[str]:
    """A glob over a command line. `*` matches anything; in a word with a slash it stays within the word."""
    out: list[str] = []
    for token in re.split(r"(\s+)", pattern):
        anything, one = (r"\S*", r"\S") if "/" in token else (".*", ".")
        n = 0
        while n < len(token):
            close = token.find("]", n + 2) if token[n] == "[" else -1
            if token[n] == "*":
                out.append(anything)
            elif token[n] == "?":
                out.append(one)
            elif close > 0:
                inner = token[n + 1 : close].replace("\\", r"\\").replace("[", r"\[").replace("^", r"\^")
                out.append(f"[{'^' + inner[1:] if inner.startswith('!') else inner}]")
                n = close
            else:
                out.append(re.escape(token[n]))
            n += 1
    return re.compile("".join(out), re.DOTALL)
