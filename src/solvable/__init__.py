"""Solvable models of feature learning: theory and experiment on the same axes."""

from importlib.metadata import version as _version

__version__ = _version("solvable")

__all__ = ["__version__"]
