"""What a policy rule matches with: path globs, shell commands taken apart, and the paths in a tool's input.

All of it reads text alone. A symbolic link, a variable in a command or a program that starts another can hide what a tool
really touches: rules narrow what people are asked about, they are no sandbox.
"""

import fnmatch
import functools
import posixpath
import re
import shlex
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

_OPERATORS: Final = re.compile(r"&&|\|\||[;&|\n\r()`{}]|\$\(")
_SHELL: Final = ("\n", "\r", ";", "&", "|", "`", "$", "<", ">", "(", "{")
_WRAPPERS: Final = frozenset(
    {
        "sudo",
        "env",
        "command",
        "exec",
        "nohup",
        "time",
        "nice",
        "setsid",
        "xargs",
        "builtin",
        "stdbuf",
        "timeout",
        "doas",
    }
)
_SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ksh", "fish"})
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_PATH_KEY: Final = re.compile(
    r"(^|_|[a-z])(path|paths|file|files|filename|dir|directory|folder|cwd|root|uri|destination|target|source)$",
    re.IGNORECASE,
)
_DEPTH: Final = 6


@functools.lru_cache(maxsize=1024)
def path_glob(pattern: str) -> re.Pattern[str]:
    """`*` and `?` stay within a directory, `**` crosses directories; `dir/**` is also `dir` itself."""
    out: list[str] = []
    n = 0
    while n < len(pattern):
        if pattern.startswith("/**", n) and n + 3 == len(pattern):
            out.append("(/.*)?")
            n += 3
        elif pattern.startswith("**/", n):
            out.append("(.*/)?")
            n += 3
        elif pattern.startswith("**", n):
            out.append(".*")
            n += 2
        elif pattern[n] == "*":
            out.append("[^/]*")
            n += 1
        elif pattern[n] == "?":
            out.append("[^/]")
            n += 1
        else:
            out.append(re.escape(pattern[n]))
            n += 1
    return re.compile("".join(out), re.DOTALL)


def text_glob(pattern: str, value: str) -> bool:
    """Whether the whole of `value` matches; `*` matches anything, line ends too. Case counts."""
    return fnmatch.fnmatchcase(value, pattern)


def resolve(path: str, *, cwd: str, home: str) -> str:
    """An absolute, normalised path, without looking at the disk: links stay what they are."""
    if path.startswith("file://"):
        path = unquote(path.removeprefix("file://"))
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    return posixpath.normpath(posixpath.join(cwd, path))


def path_matches(pattern: str, path: str, *, cwd: str, home: str) -> bool:
    """Whether a resolved `path` matches. A pattern without a slash is about the last part of a path, anywhere."""
    if "/" not in pattern and pattern != "~":
        return path_glob(pattern).fullmatch(posixpath.basename(path)) is not None
    ends_in_dir = pattern.endswith("/")
    whole = resolve(pattern, cwd=cwd, home=home) + ("/**" if ends_in_dir else "")
    return path_glob(whole).fullmatch(path) is not None


def paths_in(value: Any, *, cwd: str, home: str) -> list[str]:
    """Every path that a tool's input names, resolved: what stands under a path-like key, and what looks like a path."""
    found: dict[str, None] = {}
    for path in _paths(value, under_path=False, depth=0):
        found[resolve(path, cwd=cwd, home=home)] = None
    return list(found)


def _paths(value: Any, *, under_path: bool, depth: int) -> Iterator[str]:
    if depth > _DEPTH:
        return
    match value:
        case str():
            if value and (under_path or _looks_like_path(value)):
                yield value
        case list():
            for entry in value:
                yield from _paths(entry, under_path=under_path, depth=depth + 1)
        case dict():
            for key, entry in value.items():
                if key in ("changes", "edits", "files") and isinstance(entry, dict):
                    yield from (str(name) for name in entry)  # patches: path -> change
                yield from _paths(entry, under_path=_PATH_KEY.search(str(key)) is not None, depth=depth + 1)
        case _:
            return


def _looks_like_path(value: str) -> bool:
    return len(value) <= 4096 and "\n" not in value and value.startswith(("/", "~/", "./", "../", "file://"))


def command_of(value: Any) -> str | None:
    """The command line in a tool's input: `command` or `cmd`, a text or a list of words."""
    if not isinstance(value, dict):
        return None
    command = value.get("command", value.get("cmd"))
    if isinstance(command, list):
        return shlex.join(str(word) for word in command)
    return command if isinstance(command, str) else None


def is_hidden(value: Any) -> bool:
    """Whether the input, or a part of it, was moved to the blob store and can't be matched."""
    if not isinstance(value, dict):
        return False
    if {"sha256", "size"} <= value.keys():
        return True
    return any(is_hidden(entry) for entry in value.values())


def command_parts(command: str) -> list[str]:
    """The command, each command within it, and each of those from its program on, the program without its directory.

    `cd x && FOO=1 sudo /usr/bin/git push` has the parts itself, `cd x`, `FOO=1 sudo /usr/bin/git push`, `git push`.
    What a shell is given with `-c` is taken apart likewise.
    """
    found: dict[str, None] = {command.strip(): None}
    _take_apart(command, found, depth=0)
    return list(found)


def _take_apart(command: str, found: dict[str, None], *, depth: int) -> None:
    for part in _OPERATORS.split(command):
        part = part.strip()  # noqa: PLW2901  # the loop is about the stripped text
        if not part:
            continue
        found[part] = None
        words = _words(part)
        while words:
            program = posixpath.basename(words[0])
            if _ASSIGNMENT.fullmatch(words[0]) is not None or words[0].startswith("-"):
                words = words[1:]
                continue
            found[" ".join([program, *words[1:]])] = None
            if program in _SHELLS and depth < 3:
                for word in words[1:]:
                    if not word.startswith("-"):
                        _take_apart(word, found, depth=depth + 1)
                break
            if program not in _WRAPPERS:
                break
            words = words[1:]
            if program == "timeout":
                words = [word for n, word in enumerate(words) if n or not word[:1].isdigit()]


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part)
    except ValueError:  # an open quote: the operator stood inside it
        return part.replace("'", " ").replace('"', " ").split()


def command_allowed(pattern: str, command: str) -> bool:
    """Whether an allowing pattern covers the whole command: it may hold no shell operator that the pattern lacks."""
    command = command.strip()
    if any(command.count(sign) > pattern.count(sign) for sign in _SHELL):
        return False
    return text_glob(pattern, command)


def command_mentioned(pattern: str, command: str) -> bool:
    """Whether a denying or asking pattern matches the command or any command within it."""
    return any(text_glob(pattern, part) for part in command_parts(command))


def mcp_server_of(name: str, value: Any) -> str | None:
    """The MCP server of a tool: from a name of the form `mcp__server__tool`, or a `server` in its input."""
    if name.startswith("mcp__"):
        return name.split("__")[1]
    server = value.get("server") if isinstance(value, dict) else None
    return server if isinstance(server, str) else None
