"""Programs that have only a terminal: run in one, read from its screen."""
