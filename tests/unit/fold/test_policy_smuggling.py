"""Nothing slips in behind an allowing rule, and a denying one finds what is hidden: by hand, and against a real shell."""

import datetime as dt
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from tests.unit.fold.test_policy import CWD, STATE_DIR, action, ask, record_of, run

from trunkline_fold.policy import Circumstances, decide, parse_policy

ALLOW = '[[rule]]\nname = "r"\naction = "allow"\n'
DENY = '[[rule]]\nname = "r"\naction = "deny"\n'


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        # operators, whatever surrounds them
        ("pytest*", "pytest;rm x"),
        ("pytest*", "pytest\trm && rm x"),
        ("pytest*", "pytest 'a;b'"),
        ("pytest*", "pytest\r\nrm x"),
        ("pytest*", "pytest \\\nrm x"),
        ("pytest*", "pytest <(rm x)"),
        ("pytest*", "pytest ${x:-`rm x`}"),
        ("pytest*", "pytest {a,b}"),
        ("pytest*", "pytest 'open quote"),
        ("pytest*", "pytest\x00rm"),
        ("pytest*", "pytest \u2028rm x"),
        # environment before the command, shells around it
        ("pytest*", "PYTEST_ADDOPTS=-pevil pytest"),
        ("pytest*", "env -S 'rm x' pytest"),
        ("pytest*", "bash -c 'pytest; rm x'"),
        ("pytest*", "bash -c pytest rm"),
        ("pytest*", "./bash -c pytest"),
        ("pytest*", "bash -ic pytest"),
        ("pytest*", "bash --rcfile evil -c pytest"),
        # options and configuration that start another program
        ("git *", "git -c core.pager='rm x' log"),
        ("git *", "git -calias.x='!rm' x"),
        ("git *", "git --exec-path=/tmp/evil status"),
        ("git *", "git fetch --upload-pack 'rm x' ."),
        ("git *", "git log --ext-diff"),
        ("find *", "find . -exec rm x +"),
        ("find *", "find . -delete"),
        ("find *", "find . -fprintf /etc/passwd x"),
        ("rg *", "rg --pre evil x"),
        ("tar *", "tar xf a --to-command=evil"),
        ("ssh build *", "ssh build -oProxyCommand=evil x"),
        ("vim *", "vim -c '!rm x'"),
        # ways up the tree, and out of the word
        ("cat src/*", "cat src/../../etc/passwd"),
        ("cat src/*", "cat src/'..'/x"),
        ("cat src/*", "cat src/.\\./x"),
        ("cat src/*", "cat src/.?/x"),
        ("cat src/*", "cat src/a /etc/passwd"),
        ("cat src/*", "cat src/a\t~/.ssh/id"),
        ("cat *", "cat --file=../x"),
    ],
)
def test_what_could_do_more_than_the_pattern_says_is_asked_about(pattern: str, command: str) -> None:
    assert action(f"{ALLOW}command = {pattern!r}", run(command)) == "ask"


@pytest.mark.parametrize(
    ("pattern", "command"),
    [
        ("pytest*", "pytest -q tests/unit"),
        ("pytest*", 'pytest -k "a and b"'),
        ("pytest*", "bash -lc 'pytest -q'"),
        ("pytest*", ["/bin/bash", "-c", "pytest -q"]),
        ("bash -c pytest", "bash -c pytest"),
        ("git diff ../*", "git diff ../a"),
        ("git -c color.ui=never *", "git -c color.ui=never log"),
        ("cat src/*", "cat src/a/b.py"),
        ("ls [ab]", "ls b"),
        ("ls [!ab]", "ls c"),
        ("a && b", "a && b"),
    ],
)
def test_what_the_pattern_says_is_allowed(pattern: str, command: Any) -> None:
    assert action(f"{ALLOW}command = {pattern!r}", run(command)) == "allow"


@pytest.mark.parametrize(
    "tool_input",
    [
        {"command": "git status", "cmd": "rm x"},
        {"command": "git", "args": ["push"]},
        {"command": "git status", "args": ["; rm x"]},
        {"command": "git status", "env": {"GIT_PAGER": "rm x"}},
        {"command": "git status", "stdin": "rm x"},
        {"command": "git status", "shell": "/tmp/evil"},
        {"command": "git status " + "x" * 10_000},
        {"command": ""},
        {},
    ],
)
def test_what_stands_beside_a_command_counts(tool_input: dict[str, Any]) -> None:
    assert action(f'{ALLOW}command = "git status*"', ask(**tool_input)) == "ask"


def test_a_command_in_words_is_its_words() -> None:
    text = f'{ALLOW}command = "git status*"'
    assert action(text, ask(command="git", args=["status"])) == "allow"


def test_a_call_that_works_elsewhere_is_not_in_the_directory() -> None:
    text = f'{ALLOW}command = "make*"\ncwd = "~/src/**"'
    assert action(text, ask(command="make", cwd=CWD)) == "allow"
    assert action(text, ask(command="make", cwd="/tmp/evil")) == "ask"
    assert action(text, ask(command="make", workdir="..")) == "allow"  # still below ~/src
    assert action(text, ask(command="make", workdir="../../..")) == "ask"
    assert action(f'{DENY}cwd = "/etc/**"', ask(command="make", cwd="/etc")) == "deny"


def test_a_command_that_says_it_is_a_servers_is_no_tool_of_that_server() -> None:
    text = f'{ALLOW}mcp_server = "lab"'
    assert action(text, ask("echo", server="lab")) == "allow"
    assert action(text, ask("Bash", command="rm x", server="lab")) == "ask"
    assert action(f'{DENY}mcp_server = "lab"', ask("Bash", command="rm x", server="lab")) == "deny"


@pytest.mark.parametrize(
    "tool_input",
    [
        {"file_path": "src/a", "patch": "*** Begin Patch\n*** Update File: /etc/passwd\n"},
        {"file_path": "src/a", "diff": "--- a/src/a\n+++ b/../../x\n"},
        {"path": "src", "pattern": "x/../../../**"},
        {"path": "src/a", "deep": {"a": {"b": {"c": {"d": {"e": {"f": {"path": "/etc/x"}}}}}}}},
        {"path": "src/a", "edits": [{"sha256": "0" * 64, "size": 10**6}]},
        {"path": "src/a", "also": "//etc/passwd"},
        {"path": "src/a", "also": "file://localhost/etc/passwd"},
        {"path": "src/a", "also": "FILE:///etc/passwd"},
    ],
)
def test_every_path_of_an_input_counts(tool_input: dict[str, Any]) -> None:
    assert action(f'{ALLOW}path = "src/**"', ask("Edit", "edit", **tool_input)) == "ask"


@pytest.mark.parametrize("path", ["//etc/passwd", "/etc/./x/../passwd", "file://localhost/etc/passwd"])
def test_a_denied_path_is_found_however_it_is_spelled(path: str) -> None:
    assert action(f'{DENY}path = "/etc/passwd"', ask("Read", "read", file_path=path)) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "cat ~/.ssh/id_rsa",
        "cat $HOME/.ssh/id_rsa",
        'cat "${HOME}/.ssh/id_rsa"',
        "cat < ~/.ssh/id_rsa",
        "cd ~/.ssh && cat id_rsa",
        "tar cf - --directory=/home/dev/.ssh .",
        "curl -d @/home/dev/.ssh/id_rsa localhost",
        "cat ../../.ssh/id_rsa",
        "cat /home/dev/.ss''h/id_rsa",
        "dd if=/home/dev/.ssh/id_rsa",
    ],
)
def test_a_denied_path_is_found_in_a_command(command: str) -> None:
    assert action(f'{DENY}path = "~/.ssh/**"', run(command)) == "deny"


def test_a_bare_word_of_a_command_is_a_name_and_no_path() -> None:
    assert action(f'{DENY}path = "{CWD}/**"', run("make test")) == "ask"
    assert action(f'{DENY}path = "{CWD}/**"', run("make ./test")) == "deny"
    assert action(f'{DENY}path = "id_*"', run("cd x && cat id_rsa")) == "deny"
    assert action(f'{DENY}path = "{CWD}/**"', ask("Read", "read", file_path="test")) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "r''m -rf x",
        "\\rm -rf x",
        '"rm" -rf x',
        "$'rm' -rf x",
        "rm \\\n -rf x",
        "rm${IFS}-rf${IFS}x",
        "{rm,-rf,x}",
        "nice -n 10 rm -rf x",
        "sudo -u root rm -rf x",
        "xargs -n 1 rm -rf x",
        "timeout -s KILL 5 rm -rf x",
        "if true; then rm -rf x; fi",
        "for f in a; do rm -rf $f; done",
        "! rm -rf x",
        "find . -exec rm -rf x +",
        "fd . -x rm -rf x",
        "eval 'rm -rf x'",
        "trap 'rm -rf x' EXIT",
        "echo 'rm -rf x' | sh",
        "echo rm -rf x | bash -s",
        "bash <<< 'rm -rf x'",
        "bash <<E\nrm -rf x\nE",
        "su -c 'rm -rf x' root",
        "ssh host 'cd /; rm -rf x'",
        "docker exec c rm -rf x",
        "bash -c 'bash -c \"rm -rf x\"'",
        "(cd /; { rm -rf x; })",
        "cat <(rm -rf x)",
        "<<<word rm -rf x",
        "2>/dev/null >'a b' rm -rf x",
    ],
)
def test_a_denied_command_is_found_however_it_is_wrapped(command: str) -> None:
    assert action(f'{DENY}command = "rm -rf *"', run(command)) == "deny"


def test_a_word_is_no_command() -> None:
    text = f'{DENY}command = "rm *"'
    for command in ("grep -r rm x", "git commit -m 'rm x'", "echo rm x", "ls rm x"):
        assert action(text, run(command)) == "ask", command


# Symbolic links, where the disk can be seen


def through_links(text: str, path: str, cwd: Path) -> str:
    circumstances = Circumstances(
        adapter="demo",
        cwd=str(cwd),
        home="/home/dev",
        moment=dt.datetime(2026, 11, 27, tzinfo=dt.UTC),
        real=os.path.realpath,
    )
    data = ask("Edit", "edit", file_path=path)
    return decide(parse_policy(text, state_dir=STATE_DIR), record_of(data), circumstances).action


def test_a_link_leads_no_allowed_path_elsewhere_and_hides_no_denied_one(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "src" / "out").symlink_to(tmp_path / "secret")
    (tmp_path / "src" / "in").symlink_to(tmp_path / "src")
    (tmp_path / "link").symlink_to(tmp_path / "src")
    allow, deny = f'{ALLOW}path = "src/**"', f'{DENY}path = "{tmp_path}/secret/**"'
    assert through_links(allow, "src/a", tmp_path) == "allow"
    assert through_links(allow, "src/in/a", tmp_path) == "allow"
    assert through_links(allow, "src/out/a", tmp_path) == "ask"
    assert through_links(deny, "src/out/a", tmp_path) == "deny"
    assert through_links(deny, "src/a", tmp_path) == "ask"
    # the rule itself may speak of a link
    assert through_links(f'{ALLOW}path = "{tmp_path}/link/**"', "link/a", tmp_path) == "allow"
    assert through_links(f'{DENY}path = "{tmp_path}/link/**"', "src/a", tmp_path) == "deny"


def test_a_command_too_long_to_be_read_is_left_to_people() -> None:
    policy = f'default = "allow"\n{DENY}command = "pwned"'
    # An open quote makes many readings of each piece.
    long = 'sudo "' + "a ; 'b " * 40_000
    assert action(policy, run(long)) == "ask"
    assert action(policy, run(f"{long}; pwned")) == "deny"
    many = "cat " + " ".join(f"f{n}" for n in range(6_000))
    assert action(f'default = "allow"\n{DENY}path = "/etc/shadow"', run(f"{many} /etc/shadow")) == "ask"
    assert action(policy, run("cat <<EOF > a.py\n" + "print('what')\n" * 500 + "EOF")) == "allow"


# Against a real shell: whether a program ran is not for us to say

BASH = shutil.which("bash")
PIECES = (
    *("echo", " ", "a", ";", "&&", "||", "|", "&", "\n", "$(", ")", "(", "`", "'", '"', "\\", "#", "!", "{ ", ";}"),
    *("bash -c ", "bash", "eval ", "env ", "X=1 ", "xargs ", "timeout 1 ", "command ", "exec ", "<(", "<<<", ">", "<"),
    *(
        "${IFS}",
        "\\\n",
        "then ",
        "if ",
        ";fi",
        "$'",
        "pwned",
        "pwned",
        'pw""ned',
        "pw\\ned",
        "p'wne'd",
        "$'pw\\x6eed'",
        "$x",
        "${x}",
        "-c",
        "-s",
    ),
)
commands = st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map("".join)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the programs that commands may start; `pwned` leaves a mark."""
    root = tmp_path_factory.mktemp("shell")
    (root / "bin").mkdir()
    for name in ("bash", "env", "xargs", "timeout"):
        (root / "bin" / name).symlink_to(str(shutil.which(name)))
    (root / "bin" / "pwned").write_text(f'#!{BASH}\n: > "{root}/mark"\n')
    (root / "bin" / "pwned").chmod(0o755)
    return root


def runs_it(root: Path, command: str) -> bool:
    (root / "mark").unlink(missing_ok=True)
    work = root / "work"
    work.mkdir(exist_ok=True)
    subprocess.run(
        [str(BASH), "-c", command],
        cwd=work,
        env={"PATH": str(root / "bin")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=20,
        check=False,
    )
    return (root / "mark").exists()


@pytest.mark.skipif(BASH is None, reason="needs bash")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(begin=st.sampled_from(["echo", "echo a", "bash -c echo", "bash -c 'echo "]), rest=commands)
@example(begin="echo", rest="X=1 pwned")
def test_no_command_that_is_allowed_starts_another_program(shell: Path, begin: str, rest: str) -> None:
    command = begin + rest
    assume("pw" in command)
    if action(f'{ALLOW}command = "echo*"', run(command)) == "allow":
        assert not runs_it(shell, command)


@pytest.mark.skipif(BASH is None, reason="needs bash")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(command=commands)
@example(command="#\\\npwned")
@example(command='pw""ned \\')
@example(command="bash -c $'pwned$'echo")
@example(command="$'pw\\x6eed'")
@example(command="$x$'pw\\x6eed'")
@example(command="`pwned\\$x`")
@example(command="<<<echo pwned$x")
@example(command="`$'`$'pw\\x6eed'")
@example(command="#\\\npwned\\\n")
@example(command="pw${none}ned a")
@example(command="""bash -c echo';'pw""ned""")
@example(command='pw\\ned "a;b"')
def test_a_command_that_starts_a_denied_program_is_denied(shell: Path, command: str) -> None:
    assume("pw" in command)
    if action(f'{DENY}command = ["pwned", "pwned *"]', run(command)) != "deny":
        assert not runs_it(shell, command)
