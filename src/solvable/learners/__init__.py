"""Learners after scikit-learn's conventions: layer-wise spectral features and the baselines."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solvable.learners.backlofi import BackLoFiClassifier, BackLoFiRegressor
    from solvable.learners.baselines import KernelRidgeBaseline, RandomFeatureRidge
    from solvable.learners.early_gradient import EarlyAlignment, early_alignment
    from solvable.learners.gradient_network import (
        GradientNetworkClassifier,
        GradientNetworkRegressor,
    )
    from solvable.learners.layerwise import LayerwiseSpectralRegressor
    from solvable.learners.lofi import (
        NeuralLoFiClassifier,
        NeuralLoFiRegressor,
        NeuralLoFiTransformer,
    )
    from solvable.learners.lofi_blocks import Block, network_blocks
    from solvable.learners.lofi_files import load_model, model_notes, save_model
    from solvable.learners.lofi_filter import FilterReport
    from solvable.learners.lofi_layers import Network
    from solvable.learners.power_iteration import block_power_iteration
    from solvable.learners.quadratic import QuadraticNetRegressor
    from solvable.learners.readout import SplineReadout
    from solvable.learners.second_layer import SecondLayer
    from solvable.learners.selection import Rejection
    from solvable.learners.spectral_layer import SpectralLayer

_HOMES = {
    "BackLoFiClassifier": "backlofi",
    "BackLoFiRegressor": "backlofi",
    "Block": "lofi_blocks",
    "EarlyAlignment": "early_gradient",
    "FilterReport": "lofi_filter",
    "GradientNetworkClassifier": "gradient_network",
    "GradientNetworkRegressor": "gradient_network",
    "KernelRidgeBaseline": "baselines",
    "LayerwiseSpectralRegressor": "layerwise",
    "Network": "lofi_layers",
    "NeuralLoFiClassifier": "lofi",
    "NeuralLoFiRegressor": "lofi",
    "NeuralLoFiTransformer": "lofi",
    "QuadraticNetRegressor": "quadratic",
    "RandomFeatureRidge": "baselines",
    "Rejection": "selection",
    "SecondLayer": "second_layer",
    "SpectralLayer": "spectral_layer",
    "SplineReadout": "readout",
    "block_power_iteration": "power_iteration",
    "early_alignment": "early_gradient",
    "load_model": "lofi_files",
    "model_notes": "lofi_files",
    "network_blocks": "lofi_blocks",
    "save_model": "lofi_files",
}

__all__ = [
    "BackLoFiClassifier",
    "BackLoFiRegressor",
    "Block",
    "EarlyAlignment",
    "FilterReport",
    "GradientNetworkClassifier",
    "GradientNetworkRegressor",
    "KernelRidgeBaseline",
    "LayerwiseSpectralRegressor",
    "Network",
    "NeuralLoFiClassifier",
    "NeuralLoFiRegressor",
    "NeuralLoFiTransformer",
    "QuadraticNetRegressor",
    "RandomFeatureRidge",
    "Rejection",
    "SecondLayer",
    "SpectralLayer",
    "SplineReadout",
    "block_power_iteration",
    "early_alignment",
    "load_model",
    "model_notes",
    "network_blocks",
    "save_model",
]


def __getattr__(name: str) -> Any:
    """Import the parts on first use, because they load scikit-learn."""
    if name in _HOMES:
        return getattr(import_module(f"solvable.learners.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
