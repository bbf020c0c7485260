"""Agents that print a line of JSON for each thing they do, one process a turn."""
