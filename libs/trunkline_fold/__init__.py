"""The pure folds: session state, asks, commands, policy rulings, and the check of a log. No I/O, no clock."""
