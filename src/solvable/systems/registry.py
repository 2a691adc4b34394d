"""Face: the systems that are installed."""

from solvable.frame.registry import GROUP, Listing, available, load

__all__ = ["GROUP", "Listing", "available", "load"]
