"""Agents that serve the Agent2Agent protocol on this machine."""
