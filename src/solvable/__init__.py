"""Solvable models of feature learning: theory and experiment on the same axes.

The parts load on first use, so that ``import solvable`` costs next to nothing:

- ``targets``: distributions with known latent features.
- ``learners``: estimators after scikit-learn's conventions; ``data``: what they are given.
- ``analysis``: features of a data set, measured on unseen rows; ``forecast``: learning curves.
- ``theory``: predictions as plain functions; ``spectra``: laws of random matrices.
- ``systems``: a target, a learner, a theory and claims under one name.
- ``study``: a system over a grid; ``report``: its figures, tables and HTML page.
- ``operators``, ``hermite``, ``arrays``, ``errors``: what these are built from.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = [
    "__version__",
    "analysis",
    "arrays",
    "data",
    "errors",
    "forecast",
    "hermite",
    "learners",
    "operators",
    "report",
    "spectra",
    "study",
    "systems",
    "targets",
    "theory",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("solvable")
    if name in __all__:
        return import_module(f"solvable.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
