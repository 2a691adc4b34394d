"""Public functions that list and load the installed systems."""

from solvable.frame.registry import GROUP, Listing, available, load

__all__ = ["GROUP", "Listing", "available", "load"]
