"""Medians of several rounds with their spread, and ratios of figures of the same round."""

import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    median: float
    least: float
    most: float


def spread(values: list[float]) -> Spread:
    return Spread(statistics.median(values), min(values), max(values))


def ratios(of: list[float], to: list[float]) -> Spread:
    """Divides round by round, so that a slower machine affects both figures alike."""
    if len(of) != len(to):
        raise ValueError(f"{len(of)} rounds against {len(to)}")
    return spread([a / b for a, b in zip(of, to)])


def digits(value: float) -> str:
    """Formats a figure with its significant digits: 0.021, 0.94, 12.3, 154."""
    for limit, places in ((0.1, 3), (10, 2), (100, 1)):
        if abs(value) < limit:
            return f"{value:.{places}f}"
    return f"{value:.0f}"


def text(s: Spread) -> str:
    if s.least == s.most:
        return digits(s.median)
    return f"{digits(s.median)} ({digits(s.least)}–{digits(s.most)})"
