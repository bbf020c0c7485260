"""Claude Code: the CLI's stream-json protocol over stdio."""
