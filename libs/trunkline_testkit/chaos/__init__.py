"""Chaos: parts of the product as processes that a test attacks, faults and points to attack at, and what judges a run."""
