"""The adapter for Claude by its Agent SDK for Python."""
