"""Learners after scikit-learn's conventions: layer-wise spectral features and the baselines."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solvable.learners.baselines import KernelRidgeBaseline, RandomFeatureRidge
    from solvable.learners.layerwise import LayerwiseSpectralRegressor
    from solvable.learners.power_iteration import block_power_iteration
    from solvable.learners.readout import SplineReadout
    from solvable.learners.second_layer import SecondLayer
    from solvable.learners.selection import Rejection
    from solvable.learners.spectral_layer import SpectralLayer

_HOMES = {
    "KernelRidgeBaseline": "baselines",
    "LayerwiseSpectralRegressor": "layerwise",
    "RandomFeatureRidge": "baselines",
    "Rejection": "selection",
    "SecondLayer": "second_layer",
    "SpectralLayer": "spectral_layer",
    "SplineReadout": "readout",
    "block_power_iteration": "power_iteration",
}

__all__ = [
    "KernelRidgeBaseline",
    "LayerwiseSpectralRegressor",
    "RandomFeatureRidge",
    "Rejection",
    "SecondLayer",
    "SpectralLayer",
    "SplineReadout",
    "block_power_iteration",
]


def __getattr__(name: str) -> Any:
    """Import the parts on first use, because they load scikit-learn."""
    if name in _HOMES:
        return getattr(import_module(f"solvable.learners.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
