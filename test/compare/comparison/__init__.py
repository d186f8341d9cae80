"""Compares builder with other tools: the same work, in turn, on one machine."""
