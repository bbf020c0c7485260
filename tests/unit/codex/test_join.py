"""The command with which Codex's own terminal joins a server: its token is in no argument."""

import shlex

from trunkline_adapters.codex import launch


def test_a_server_without_a_token() -> None:
    assert launch.join("ws://127.0.0.1:4500", None) == "codex resume --remote ws://127.0.0.1:4500"


def test_the_token_is_read_when_the_command_is_run() -> None:
    command = launch.join("unix:///tmp/a b.sock", "/home/dev/the token")
    assert shlex.split(command) == [
        "CODEX_REMOTE_TOKEN=$(cat '/home/dev/the token')",
        *("codex", "resume", "--remote", "unix:///tmp/a b.sock"),
        *("--remote-auth-token-env", "CODEX_REMOTE_TOKEN"),
    ]
