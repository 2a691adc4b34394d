"""What the spectra of trained weight matrices say."""

from solvable.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
