"""Path globs, and the paths in a tool's input.

All of it reads text alone. Where the disk can be asked, `policy.judge` looks behind symbolic links too.
"""

import fnmatch
import functools
import posixpath
import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

_PATH_KEY: Final = re.compile(
    r"(^|_|[a-z])(path|paths|file|files|filename|dir|directory|folder|cwd|root|uri|destination|target|source)$",
    re.IGNORECASE,
)
_DIRECTORY_KEYS: Final = ("cwd", "workdir", "working_directory", "working_dir", "workingDirectory")
_PATCHED: Final = re.compile(
    r"^(?:\*\*\* (?:Add|Update|Delete) File: |\*\*\* Move to: |\+\+\+ (?:b/)?|--- (?:a/)?|rename (?:from|to) |copy (?:from|to) )(\S.*)$",
    re.MULTILINE,
)
"""Where a patch in a text names the files that it changes."""
_DEPTH: Final = 6
_NULL: Final = "/dev/null"


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
    if path[:7].lower() == "file://":
        path = unquote(path[7:].removeprefix("localhost"))
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    whole = posixpath.normpath(posixpath.join(cwd, path))
    return f"/{whole.lstrip('/')}" if whole.startswith("//") else whole


def path_matches(pattern: str, path: str, *, cwd: str, home: str) -> bool:
    """Whether a resolved `path` matches. A pattern without a slash is about the last part of a path, anywhere."""
    if "/" not in pattern and pattern != "~":
        return path_glob(pattern).fullmatch(posixpath.basename(path)) is not None
    ends_in_dir = pattern.endswith("/")
    whole = resolve(pattern, cwd=cwd, home=home) + ("/**" if ends_in_dir else "")
    return path_glob(whole).fullmatch(path) is not None


def fixed_part(pattern: str, *, cwd: str, home: str) -> tuple[str, str]:
    """A path pattern in two: the directory before the first glob, resolved, and the rest with its slash."""
    whole = resolve(pattern, cwd=cwd, home=home) + ("/**" if pattern.endswith("/") else "")
    globbed = re.search(r"[*?]", whole)
    end = whole.rfind("/", 0, globbed.start()) if globbed else len(whole)
    return whole[:end], whole[end:]


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
            elif "\n" in value:
                yield from (path for path in _PATCHED.findall(value) if path != _NULL)
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
    if len(value) > 4096 or "\n" in value:
        return False
    begins = value.startswith(("/", "~/", "./", "../")) or value[:7].lower() == "file://"
    return begins or "/../" in value or value.endswith("/..")


def directories_in(value: Any) -> list[str]:
    """The directories that a tool's input says it works in."""
    found = [value.get(key) for key in _DIRECTORY_KEYS] if isinstance(value, dict) else []
    return [one for one in found if isinstance(one, str) and one]


def is_hidden(value: Any, depth: int = 0) -> bool:
    """Whether the input, or a part of it, was moved to the blob store or lies too deep to be matched."""
    if depth > _DEPTH:
        return isinstance(value, dict | list) and bool(value)
    match value:
        case dict():
            return {"sha256", "size"} <= value.keys() or any(is_hidden(entry, depth + 1) for entry in value.values())
        case list():
            return any(is_hidden(entry, depth + 1) for entry in value)
        case _:
            return False


def mcp_server_of(name: str, value: Any) -> str | None:
    """The MCP server of a tool: from a name of the form `mcp__server__tool`, or a `server` in its input."""
    if name.startswith("mcp__"):
        return name.split("__")[1]
    server = value.get("server") if isinstance(value, dict) else None
    return server if isinstance(server, str) else None
