"""Trunkline from anywhere: the relay that hosts and devices meet at, and the host's way to it."""
