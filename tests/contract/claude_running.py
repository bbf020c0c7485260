"""A running session of the Claude adapter, for tests."""

from tests.contract import running

from trunkline_adapters.claude.session import ClaudeSession


class Running(running.Running[ClaudeSession]):
    """A session of the CLI and all that it has said so far."""
