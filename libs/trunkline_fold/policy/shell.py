"""Shell commands by their text: covered by an allowing pattern as a whole and narrowly, or mentioned anywhere, widely.

What is read here is text. A program may start others, a variable may hold a command: a pattern that allows refuses what
could hide one (operators, substitutions, options that name a program, ways up the tree), one that denies looks at every
word that could be a command.
"""

import contextlib
import fnmatch
import functools
import itertools
import posixpath
import re
import shlex
from collections.abc import Iterator
from typing import Any, Final

LONGEST: Final = 8192
"""Characters of a command that an allowing pattern still reads."""

_MOST_SUFFIXES: Final = 40
_MOST_PARTS: Final = 4000
_DEPTH: Final = 4

_SIGNS: Final = ("\n", "\r", ";", "&", "|", "`", "$", "<", ">", "(", "{", "!")
_OPERATORS: Final = re.compile(r"&&|\|\||[;&|\n\r()`{}]|\$\(|<<<|<<|[<>]")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=.*", re.DOTALL)
_SPACE_VARIABLES: Final = re.compile(r"\$\{IFS[^}]*\}|\$IFS\b")
_QUOTES: Final = re.compile(r"""'[^']*'|\$'((?:[^'\\]|\\.)*)'|\$(?=")""", re.DOTALL)
"""Plain quotes, which stay as they are, and the shell's `$'…'` and `$"…"`."""
_VARIABLES: Final = re.compile(r"\$(?:\w+|\{[^}]*\}|[@*#?!$-])")
_BACKTICKS: Final = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)
_ESCAPED_IN_BACKTICKS: Final = re.compile(r"\\([$`\\])")
_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")
_REDIRECTION: Final = re.compile(
    r"""(?:\d+|&)?(?:<<<|<<-?|>>|>\||<>|[<>]&?)\s*(?:"[^"]*"|'[^']*'|\\.|[^\s;&|()<>"'\\])+"""
)
_SEPARATORS: Final = re.compile(r"[/=:,]")
_CLIMBS: Final = re.compile(r"\.\.|\.[^/]*[*?\[].*")

_SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "eval", "trap", "source", "."})
_STARTERS: Final = frozenset(
    [
        "sudo",
        "doas",
        "su",
        "runuser",
        "env",
        "command",
        "exec",
        "nohup",
        "time",
        "nice",
        "ionice",
        "setsid",
        "xargs",
        "parallel",
        "builtin",
        "stdbuf",
        "timeout",
        "watch",
        "busybox",
        "toybox",
        "chroot",
        "unshare",
        "nsenter",
        "flock",
        "strace",
        "ltrace",
        "script",
        "tmux",
        "screen",
        "ssh",
        "docker",
        "podman",
        "kubectl",
        "npx",
        "uvx",
        "pipx",
        "systemd-run",
        "firejail",
        "bwrap",
        "taskset",
        "chrt",
        "setarch",
        "entr",
        "caffeinate",
        "arch",
        "unbuffer",
        "then",
        "do",
        "else",
        "elif",
        "if",
        "while",
        "until",
        "!",
        "coproc",
        "case",
        "for",
        "select",
        "function",
    ]
)
"""Programs and words of the shell behind which another command may stand."""
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
_EXECUTES: Final = re.compile(r"-(exec|execdir|ok|okdir|x|X)|--(exec|exec-batch|command)")


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


def mentioned(pattern: str, parts: list[str]) -> bool:
    """Whether a denying or asking pattern matches one of the parts of a command."""
    return any(fnmatch.fnmatchcase(part, pattern) for part in parts)


def parts_of(command: str) -> list[str]:
    """The command, each command within it, and each of those from its program on, the program without its directory.

    `cd x && FOO=1 sudo /usr/bin/git push` has the parts itself, `cd x`, `FOO=1 sudo /usr/bin/git push`, `git push` and
    more. What a shell is given, be it by `-c` or through a pipe, is taken apart likewise.
    """
    found: dict[str, None] = {command.strip(): None}
    _take_apart(command, found, depth=0)
    return list(found)


def _take_apart(command: str, found: dict[str, None], *, depth: int) -> None:
    # A backslash joins two lines, but not in a comment: there the second one is a command of its own.
    joined = command.replace("\\\r\n", "").replace("\\\n", "")
    variants: dict[str, None] = {}
    for one in dict.fromkeys((joined, command)):
        text = _plainly_quoted(_SPACE_VARIABLES.sub(" ", one))
        expanded = _BRACES.sub(lambda braces: f" {braces[1].replace(',', ' ')} ", text)
        variants.update(dict.fromkeys((text, expanded, _REDIRECTION.sub(" ", expanded), _VARIABLES.sub("", text))))
    # Each piece between operators, and the whole, for what looks like an operator may stand in quotes.
    lines = [piece.strip() for one in variants for piece in (one, *_OPERATORS.split(one))]
    found.update(dict.fromkeys(line for line in lines if line))
    if depth < _DEPTH:
        for quote in _BACKTICKS.finditer(joined):
            _take_apart(_ESCAPED_IN_BACKTICKS.sub(r"\1", quote[1]), found, depth=depth + 1)
    pieces = [words for line in lines if line for words in _readings(line)]
    fed = any(_reads_commands(words) for words in pieces)
    for words in pieces:
        if len(found) > _MOST_PARTS:
            return
        for start in _starts(words, anywhere=fed):
            program = posixpath.basename(words[start])
            found[" ".join([program, *words[start + 1 :]])] = None
        if depth < _DEPTH and (fed or any(posixpath.basename(word) in _SHELLS | _STARTERS for word in words)):
            for word in words:
                if any(c.isspace() or c in ";&|`$(" for c in word) and word != command:
                    _take_apart(word, found, depth=depth + 1)


def _plainly_quoted(text: str) -> str:
    """With plain quotes in place of the shell's `$'…'`, whose escapes are read, and `$"…"`."""

    def plain(quote: re.Match[str]) -> str:
        if quote[1] is None:
            return "" if quote[0] == "$" else quote[0]
        with contextlib.suppress(UnicodeError):
            read = quote[1].encode("latin-1", "backslashreplace").decode("unicode_escape")
            return "'" + read.replace("'", "'\"'\"'") + "'"
        return quote[0][1:]

    return _QUOTES.sub(plain, text)


def _starts(words: list[str], *, anywhere: bool) -> Iterator[int]:
    """Where in a simple command a program may stand: at its beginning, and anywhere behind one that starts others."""
    begun = False
    for start, word in enumerate(words):
        if is_assignment(word):
            continue
        if (start < _MOST_SUFFIXES and (anywhere or not begun)) or (
            start > 0 and _EXECUTES.fullmatch(words[start - 1]) is not None
        ):
            yield start
        begun = True
        anywhere = anywhere or posixpath.basename(word) in _STARTERS | _SHELLS


def _reads_commands(words: list[str]) -> bool:
    """Whether this is a shell that takes its commands from a pipe or a text."""
    while words and (is_assignment(words[0]) or posixpath.basename(words[0]) in _STARTERS):
        words = words[1:]
    return (
        bool(words)
        and posixpath.basename(words[0]) in _SHELLS
        and all(word.startswith("-") or word == "/dev/stdin" for word in words[1:])
    )


def _readings(piece: str) -> list[list[str]]:
    """The words of a piece; where an operator stood inside a quote and cut it open, each way to close it."""
    try:
        return [shlex.split(piece)]
    except ValueError:
        found = [piece.replace("'", " ").replace('"', " ").split()]
    for end in ("'", '"', "\\", "\\'", '\\"'):
        with contextlib.suppress(ValueError):
            found.append(shlex.split(piece + end))
    return found


def words_of(command: str) -> list[str]:
    """Every word of a command that could be a path: dequoted, and without what an option or a redirection puts before it."""
    text = _plainly_quoted(command)
    found: dict[str, None] = {}
    for piece in re.split(r"[;&|\n\r()`<>]", text):
        for word in itertools.chain.from_iterable(_readings(piece)):
            for one in (word, *_SEPARATED.split(word)):
                if one and not one.startswith("-"):
                    found[one.removeprefix("@")] = None
    return list(found)


_SEPARATED: Final = re.compile(r"[=:,]")
