"""Adapters of coding agents, and the worker process that runs them."""
