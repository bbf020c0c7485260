"""Codex: `codex app-server` over stdio or a WebSocket, and `codex exec --json` where that is missing."""
