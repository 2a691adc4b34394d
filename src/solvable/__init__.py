"""Solvable models of feature learning: theory and experiment on the same axes.

One function per command, each returning what the command prints:

- ``run``, ``theory_of``, ``load``: measure a system, predict it, and load a finished run.
- ``compare``: several runs side by side.
- ``probe``: which hidden features a learner of your own finds, and at which number of rows.
- ``learn_features``, ``predict_rows``, ``diagnose_weights``, ``forecast_curve``: the tools for real data.
- ``activations_of``: noise sensitivity of activation functions.
- ``train_retriever``, ``index_documents``, ``search_documents``: late-interaction retrieval.
- ``scale_network``: how data, width and depth must scale for a network to learn a target.

The parts load on first use:

- ``targets``: distributions with known latent features; ``learners``: estimators after
  scikit-learn's conventions; ``theory``: predictions as plain functions.
- ``systems``: classes for writing a system; ``study``: a system over a grid, its verdicts
  and report; ``plots``: figures as plain data.
- ``learn``, ``diagnose``, ``forecast``, ``scale``, ``retrieve``: the tools for real data;
  ``data``: data sets.
- ``inference``: priors, outputs and losses of models of one's own, with their theory and algorithms.
- ``spectra``: laws of random matrices; ``message_passing``: state evolution; ``operators``: matrix-free
  operators built from data; ``hermite``, ``arrays``, ``errors``: basic tools.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from solvable.lazy import attach

_load_verb, _, _VERBS = attach(__name__, __file__)

__all__ = [
    "__version__",
    *_VERBS,
    "arrays",
    "data",
    "diagnose",
    "errors",
    "forecast",
    "hermite",
    "inference",
    "learn",
    "learners",
    "message_passing",
    "operators",
    "plots",
    "retrieve",
    "scale",
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
    if name in _VERBS:
        return _load_verb(name)
    if name in __all__:
        return import_module(f"solvable.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
