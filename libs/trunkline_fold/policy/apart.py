"""Shell commands by their text, as a denying or asking pattern reads them: mentioned anywhere, and widely.

What is read here is text: every word that could be a command is looked at, in each way in which a shell could come to it.
"""

import contextlib
import fnmatch
import itertools
import posixpath
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from trunkline_fold.policy.shell import is_assignment

_MOST_SUFFIXES: Final = 40
_MOST_READ: Final = 300_000
"""Characters that are read of a command, again in every way in which a shell could read it."""
_WORD: Final = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+""", re.DOTALL)
_QUOTED: Final = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)""", re.DOTALL)
_ESCAPED_IN_QUOTES: Final = re.compile(r"""\\(["\\])""")
_DEPTH: Final = 4


_OPERATORS: Final = re.compile(r"&&|\|\||[;&|\n\r()`{}]|\$\(|<<<|<<|[<>]")
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


def _spread(braces: re.Match[str]) -> str:
    return f" {braces[1].replace(',', ' ')} "


_MAY_VANISH: Final = (
    (_BRACES, _spread),
    (_REDIRECTION, " "),
    (_VARIABLES, ""),
)
"""What a shell replaces before it looks for programs, and by what."""
_SEPARATED: Final = re.compile(r"[=:,]")
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
_EXECUTES: Final = re.compile(r"-(exec|execdir|ok|okdir|x|X)|--(exec|exec-batch|command)")


def mentioned(pattern: str, parts: list[str]) -> bool:
    """Whether a denying or asking pattern matches one of the parts of a command."""
    return any(fnmatch.fnmatchcase(part, pattern) for part in parts)


class Parts(msgspec.Struct, frozen=True):
    """`whole`: nothing was left unread for its length."""

    texts: list[str]
    whole: bool = True


def parts_of(command: str) -> Parts:
    """The command, each command within it, and each of those from its program on, the program without its directory.

    `cd x && FOO=1 sudo /usr/bin/git push` has the parts itself, `cd x`, `FOO=1 sudo /usr/bin/git push`, `git push` and
    more. What a shell is given, be it by `-c` or through a pipe, is taken apart likewise.
    """
    reading = _Reading(command)
    reading.take_apart(command, depth=0)
    return Parts(list(reading.found), whole=reading.left >= 0)


class _Reading:
    """What was found so far, and how much may still be read."""

    def __init__(self, command: str) -> None:
        self.found: dict[str, None] = {command.strip(): None}
        self.left = _MOST_READ
        self._seen: set[str] = set()

    def take_apart(self, command: str, *, depth: int) -> None:
        if command in self._seen:
            return
        self._seen.add(command)
        # Each piece between operators, and the whole, for what looks like an operator may stand in quotes.
        variants = _variants(command)
        lines = dict.fromkeys(piece.strip() for one in variants for piece in (one, *_OPERATORS.split(one)))
        lines.pop("", None)
        self.found.update(lines)
        if depth < _DEPTH:
            for quote in _BACKTICKS.finditer(_joined(command)):
                self.take_apart(_ESCAPED_IN_BACKTICKS.sub(r"\1", quote[1]), depth=depth + 1)
        pieces: list[list[str]] = []
        for line in lines:
            self.left -= len(line)
            if self.left < 0:
                return
            pieces += _readings(line)
        fed = any(_reads_commands(words) for words in pieces)
        for words in pieces:
            for start in _starts(words, anywhere=fed):
                program = posixpath.basename(words[start])
                part = " ".join([program, *words[start + 1 :]])
                self.left -= len(part)
                self.found[part] = None
            if self.left < 0:
                return
            if depth < _DEPTH and (fed or any(posixpath.basename(word) in _SHELLS | _STARTERS for word in words)):
                for word in words:
                    if any(c.isspace() or c in ";&|`$(" for c in word):
                        self.take_apart(word, depth=depth + 1)


def _joined(command: str) -> str:
    """With lines joined that a backslash continues."""
    return command.replace("\\\r\n", "").replace("\\\n", "")


def _variants(command: str) -> dict[str, None]:
    """The ways in which a shell could see a text, depending on where quotes and comments begin and what variables hold."""
    variants: dict[str, None] = {}
    joined = _joined(command)
    # A backslash joins two lines, but not in a comment: there the second one is a command of its own. A quote in backticks
    # ends with them.
    for one in dict.fromkeys((joined, command, _BACKTICKS.sub("", joined))):
        forms = {_plainly_quoted(_SPACE_VARIABLES.sub(" ", one)): None}
        for pattern, instead in _MAY_VANISH:
            forms.update(dict.fromkeys([pattern.sub(instead, form) for form in forms]))
        variants.update(forms)
    return variants


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
    if (words := _split(piece)) is not None:
        return [words]
    bare = piece.removesuffix("\\")
    closed = (_split(f"{one}{end}") for one in dict.fromkeys((piece, bare)) for end in ("", "'", '"'))
    return [bare.replace("'", " ").replace('"', " ").split(), *(words for words in closed if words is not None)]


def _split(text: str) -> list[str] | None:
    """The words of a text, dequoted; None where a quote is open. As `shlex.split`, which takes quadratic time for long words."""
    if _WORD.sub("", text).strip():
        return None
    return [_QUOTED.sub(_dequoted, word[0]) for word in _WORD.finditer(text)]


def _dequoted(quote: re.Match[str]) -> str:
    if quote[1] is not None:
        return quote[1]
    return quote[3] if quote[2] is None else _ESCAPED_IN_QUOTES.sub(r"\1", quote[2])


def words_of(command: str) -> Iterator[str]:
    """Every word of a command that could be a path: dequoted, and without what an option or a redirection puts before it."""
    found: set[str] = set()
    for piece in dict.fromkeys(re.split(r"[;&|\n\r()`<>]", _plainly_quoted(command))):
        for word in itertools.chain.from_iterable(_readings(piece)):
            for one in (word, *_SEPARATED.split(word)):
                if one and not one.startswith("-") and one not in found:
                    found.add(one)
                    yield one.removeprefix("@")
