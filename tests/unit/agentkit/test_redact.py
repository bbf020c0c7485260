"""Secrets are taken out of what an agent printed."""

import pytest

from trunkline_agentkit.redact import redact


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x-api-key: sk-ant-REDACTED", "x-api-key: [redacted]"),
        ("failed with sk-proj-abcdefghijklmnop.", "failed with [redacted]."),
        ('{"api_key": "hunter2", "model": "m"}', '{"api_key": "[redacted]", "model": "m"}'),
        ("ANTHROPIC_AUTH_TOKEN=abc123 claude", "ANTHROPIC_AUTH_TOKEN=[redacted] claude"),
        ("password: correct-horse", "password: [redacted]"),
        ("clone https://me:geheim@example.org/x", "clone https://[redacted]@example.org/x"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: [redacted]"),
        ("got ghp_012345678901234567890123456789012345", "got [redacted]"),
        ("AKIAIOSFODNN7EXAMPLE", "[redacted]"),
        ("Error: ENOENT: no such file, open 'keyboard.txt'", "Error: ENOENT: no such file, open 'keyboard.txt'"),
        ("tokens used: many", "tokens used: many"),
    ],
)
def test_secrets_go_and_the_rest_stays(text: str, shown: str) -> None:
    assert redact(text) == shown


def test_values_of_the_agents_own_secret_variables_go_in_any_form() -> None:
    environment = {"MY_TOKEN": "plain-words-here", "HOME": "/home/someone", "SHORT_KEY": "abc"}
    assert redact("at /home/someone: plain-words-here, abc", environment) == "at /home/someone: [redacted], abc"


def test_private_keys_go_whole() -> None:
    key = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\nBBBB\n-----END OPENSSH PRIVATE KEY-----"
    assert redact(f"before\n{key}\nafter") == "before\n[redacted]\nafter"
    assert redact("x -----BEGIN PRIVATE KEY-----\nAAAA") == "x [redacted]"
