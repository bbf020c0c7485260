"""One module a command; nothing heavy is imported before the command runs."""
